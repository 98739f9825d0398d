//! No request waits for ever. A stream has begun to answer long before, so it is not cut.

use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::{Code, Problem};
use crate::workers::LONGEST_WAIT;

const LIMIT: Duration = Duration::from_secs(30);

pub(crate) async fn keep(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let polls = path.is_some_and(|path| path.as_str() == "/tasks:claim");
    let limit = if polls { LIMIT + LONGEST_WAIT } else { LIMIT };
    let answer = tokio::time::timeout(limit, next.run(request)).await;
    answer.unwrap_or_else(|_| {
        let seconds = limit.as_secs();
        let detail =
            format!("not done within {seconds} s: look whether it was before you repeat it");
        Problem::new(Code::Timeout, detail).into_response()
    })
}
