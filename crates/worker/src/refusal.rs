//! What a caller is told when it cannot be, with the statuses of the specification.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the body is not JSON: {0}")]
    MalformedJson(String),
    #[error("x-api-key is missing, or not this worker's")]
    WrongKey,
    #[error("without an API key only programs of this machine are answered: set one")]
    Foreign,
    #[error("there is no job {0}")]
    NoJob(String),
    #[error("there is no session: POST /session opens one")]
    NoSession,
    #[error("there are no such results")]
    NoResults,
    #[error("there is no {0}")]
    NoPath(String),
    #[error("not by this method")]
    WrongMethod,
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    #[error("{0}")]
    Invalid(String),
    #[error("the session is {0}, not ready: a scrape needs one that is, and one job at a time")]
    Unready(&'static str),
    #[error("the Idempotency-Key was used for another request before")]
    KeyReused,
    #[error("too many wrong API keys: wait a minute")]
    TooMany,
    #[error("this worker is shutting down")]
    Stopping,
    #[error("{0}")]
    Internal(String),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::MalformedJson(_) => StatusCode::BAD_REQUEST,
            Self::WrongKey => StatusCode::UNAUTHORIZED,
            Self::Foreign => StatusCode::FORBIDDEN,
            Self::NoJob(_) | Self::NoSession | Self::NoResults | Self::NoPath(_) => {
                StatusCode::NOT_FOUND
            }
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Invalid(_) | Self::Unready(_) | Self::KeyReused => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// A word that stays, whatever the message says.
    fn code(&self) -> &'static str {
        match self {
            Self::MalformedJson(_) => "malformed_json",
            Self::WrongKey => "wrong_key",
            Self::Foreign => "key_needed",
            Self::NoJob(_) => "no_such_job",
            Self::NoSession => "no_session",
            Self::NoResults => "no_such_results",
            Self::NoPath(_) => "no_such_path",
            Self::WrongMethod => "wrong_method",
            Self::TooLarge(_) => "too_large",
            Self::Invalid(_) => "invalid_request",
            Self::Unready(_) => "session_not_ready",
            Self::KeyReused => "key_reused",
            Self::TooMany => "too_many",
            Self::Stopping => "stopping",
            Self::Internal(_) => "internal",
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.code(), "message": self.to_string() });
        let mut response = (self.status(), axum::Json(body)).into_response();
        if matches!(self, Self::TooMany | Self::Stopping) {
            let wait = HeaderValue::from_static("60");
            response.headers_mut().insert(header::RETRY_AFTER, wait);
        }
        response
    }
}
