//! The events of all tasks as they happen, and what all streams share.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::feed::Feed;
use crate::headers::last_cursor;
use crate::problem::Problem;
use crate::serve::Served;
use crate::wire;

const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(follow))
}

/// Where a stream takes its events from, one after the other, until there are no more.
pub(crate) trait Source: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Option<sse::Event>> + Send;
}

/// Sends what a source gives, until its end or the server's.
pub(crate) fn respond(source: impl Source, served: &Served) -> Response {
    let events = stream::unfold(source, |mut source| async {
        let event = source.next().await?;
        Some((Ok::<_, Infallible>(event), source))
    });
    let events = events.take_until(served.stop.clone().cancelled_owned());
    let sse = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Proxies must not hold events back.
    ([("x-accel-buffering", "no")], sse).into_response()
}

/// Follow the events of all tasks (server-sent events)
///
/// In the order of their transactions; an event's id is `TRANSACTION:EVENT`. Without
/// `Last-Event-ID`, from now on; the first message has no data, only the id of that moment.
#[utoipa::path(
    get,
    path = "/events/stream",
    tag = "events",
    operation_id = "follow_all",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received")),
    responses((status = 200, description = "Events, the oldest first", content_type = "text/event-stream", body = wire::Event)),
)]
pub(crate) async fn follow(
    State(feed): State<Arc<Feed>>,
    headers: HeaderMap,
    served: Served,
) -> Result<Response, Problem> {
    let listener = feed.listen(last_cursor(&headers)?).await?;
    Ok(respond(listener, &served))
}
