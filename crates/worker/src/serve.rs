//! A worker behind a socket.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::worker::Worker;

/// How long what is under way at the end has left.
const GRACE: Duration = Duration::from_secs(10);

impl Worker {
    /// Serves until told to stop; then takes no more connections, stops the scrape between two pages
    /// (the next process on this directory goes on with it), lets requests finish, and returns.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && !self.inner.door.has_key() {
            return Err(Error::Invalid(format!(
                "{address} can be reached from other machines, and there is no API key: set \
                 LAVRA_WORKER_API_KEY, or listen on 127.0.0.1"
            )));
        }
        let server = axum::serve(listener, self.router())
            .with_graceful_shutdown(stop.clone().cancelled_owned());
        let overdue = async {
            stop.cancelled().await;
            self.drain(GRACE).await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            ended = server => ended?,
            () = overdue => tracing::warn!("requests that were still under way were cut"),
        }
        self.drain(GRACE).await;
        Ok(())
    }
}
