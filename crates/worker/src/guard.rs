//! Holds each request against the door.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lavra_db::door::{Caller, Door, Stranger};

use crate::refusal::Refusal;

pub(crate) async fn check(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let caller = Caller {
        key: headers.get("x-api-key").map(HeaderValue::as_bytes),
        host: headers.get(header::HOST).map(HeaderValue::as_bytes),
        has_origin: headers.contains_key(header::ORIGIN),
    };
    let refusal = match door.admit(&caller) {
        Ok(()) => return next.run(request).await,
        Err(Stranger::WrongKey) => Refusal::WrongKey,
        Err(Stranger::TooManyKeys) => Refusal::TooMany,
        Err(Stranger::Foreign) => Refusal::Foreign,
    };
    refusal.into_response()
}
