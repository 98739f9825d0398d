//! Holds each request against the door.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use lavra_db::door::{Caller, Door, Stranger};

use crate::web::problem;

pub(crate) async fn check(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let caller = Caller {
        key: headers.get("x-api-key").map(HeaderValue::as_bytes),
        host: headers.get(header::HOST).map(HeaderValue::as_bytes),
        has_origin: headers.contains_key(header::ORIGIN),
    };
    let (status, text) = match door.admit(&caller) {
        Ok(()) => return next.run(request).await,
        Err(Stranger::WrongKey) => {
            (StatusCode::UNAUTHORIZED, "the header x-api-key is missing or wrong")
        }
        Err(Stranger::TooManyKeys) => {
            (StatusCode::TOO_MANY_REQUESTS, "too many wrong API keys: wait a minute")
        }
        Err(Stranger::Foreign) => (
            StatusCode::FORBIDDEN,
            "without an API key only programs of this machine are answered: set LAVRA_WRITER_API_KEY",
        ),
    };
    problem(status, text)
}
