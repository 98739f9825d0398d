//! The router behind a socket.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::serve::ListenerExt;
use axum::{Extension, Router};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long requests that are under way at the end have left.
const GRACE: Duration = Duration::from_secs(10);

/// The mark of a request that came through a socket, with what tells streams to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    pub(crate) stop: CancellationToken,
}

impl<S: Send + Sync> FromRequestParts<S> for Served {
    type Rejection = Infallible;

    /// Within a process there is nothing to be told: the caller drops the stream.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

/// Serves until `stop`; then takes no more connections, ends the streams, lets what is under way
/// finish, and returns.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    let router = router.layer(Extension(Served { stop: stop.clone() }));
    // Each request is told where it comes from.
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    // Small answers and events must not wait for the acknowledgement of earlier ones.
    let listener = listener.tap_io(|socket| {
        let _slower_without = socket.set_nodelay(true);
    });
    let server =
        axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = server => ended,
        () = overdue => {
            tracing::warn!("requests that were still under way were cut at the shutdown");
            Ok(())
        }
    }
}
