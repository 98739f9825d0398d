//! Errors as answers: `application/problem+json` (RFC 9457) with a stable code.

mod code;
mod extract;
mod fleet;
mod notify;
mod tasks;

use std::fmt::Display;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use code::Code;

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"lavra\"");

/// What went wrong, as it is answered.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    status: StatusCode,
    detail: String,
    fields: Map<String, Value>,
    retry_after: Option<u32>,
    /// The methods that there are, where one was asked for that is not.
    allow: Option<String>,
}

/// The document that is sent.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Problem, example = json!({
    "type": "/docs/errors#illegal_transition",
    "title": "The state of the task does not allow that",
    "status": 409,
    "code": "illegal_transition",
    "detail": "a task that is COMPLETED cannot be cancelled",
    "task_status": "COMPLETED",
}))]
pub(crate) struct Document {
    /// Where the code is explained.
    #[serde(rename = "type")]
    about: String,
    title: &'static str,
    status: u16,
    /// Stable; scripts may match it.
    code: &'static str,
    /// What happened here, and what to do.
    detail: String,
    /// Fields of this code alone, such as `actual` of `version_mismatch`.
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let status = code.status();
        let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        Self { code, status, detail: detail.into(), fields: Map::new(), retry_after, allow: None }
    }

    pub fn code(&self) -> Code {
        self.code
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// A field of the body is wrong; `rule` goes on after its name.
    pub(crate) fn field(name: &str, rule: impl Display) -> Self {
        Self::invalid(format!("{name} {rule}")).with("field", name)
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// When the same call may succeed.
    pub(crate) fn after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    pub(crate) fn allowing(self, methods: &str) -> Self {
        Self { allow: Some(methods.to_owned()), ..self }
    }

    /// What the answer says beside its body, whatever form that has.
    pub(crate) fn add_headers(&self, response: &mut Response) {
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(methods) = self.allow.as_deref().and_then(|methods| methods.parse().ok()) {
            headers.insert(header::ALLOW, methods);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, CHALLENGE);
        }
    }

    /// The same call may succeed a little later.
    fn passing(mut self) -> Self {
        self.status = StatusCode::SERVICE_UNAVAILABLE;
        self.retry_after = Some(1);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let problem = self.clone();
        let document = Document {
            about: format!("/docs/errors#{}", self.code.as_str()),
            title: self.code.title(),
            status: self.status.as_u16(),
            code: self.code.as_str(),
            detail: self.detail.clone(),
            fields: self.fields.clone(),
        };
        let body = json!(document).to_string();
        let mut response =
            (self.status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        self.add_headers(&mut response);
        // For those who say it otherwise, as pages do.
        response.extensions_mut().insert(problem);
        response
    }
}
