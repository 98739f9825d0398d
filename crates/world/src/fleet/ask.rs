//! A request to a fleet and its answer, apart from any socket.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// What is asked of a worker or a writer.
#[derive(Clone, Copy, Debug)]
pub struct FleetRequest<'a> {
    pub method: &'a str,
    /// All of it, or from the path on: the host does not count.
    pub url: &'a str,
    pub api_key: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
    pub body: FleetBody<'a>,
}

impl<'a> FleetRequest<'a> {
    pub fn new(method: &'a str, url: &'a str) -> Self {
        let body = FleetBody::Nothing;
        Self { method, url, api_key: None, idempotency_key: None, body }
    }
}

/// The body of a request, as it is at hand.
#[derive(Clone, Copy, Debug)]
pub enum FleetBody<'a> {
    Nothing,
    Json(&'a Value),
    Bytes(&'a [u8]),
}

/// What comes back, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FleetAnswer {
    pub status: u16,
    pub content_type: &'static str,
    pub retry_after: Option<Duration>,
    pub body: Bytes,
    /// How long the caller waits for it. What never comes is waited for until the caller gives up, or
    /// for so long.
    pub delay: Duration,
    pub fate: Fate,
}

/// How the exchange ends for the caller. Status and body are told only where it is delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    Delivered,
    /// Nobody accepts connections.
    Refused,
    /// No answer comes; the request may have taken effect.
    Timeout,
    /// The connection breaks; the request may have taken effect.
    Reset,
}

const JSON: &str = "application/json";

impl FleetAnswer {
    pub(super) fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type: JSON,
            retry_after: None,
            body: body.into(),
            delay: Duration::ZERO,
            fate: Fate::Delivered,
        }
    }

    pub(super) fn html(status: u16, body: String) -> Self {
        Self { content_type: "text/html; charset=utf-8", ..Self::json(status, body) }
    }

    /// `200 OK`, as the specification has it for calls that tell nothing.
    pub(super) fn done() -> Self {
        Self::json(200, Bytes::from_static(b"{}"))
    }

    pub(super) fn error(status: u16, message: &str) -> Self {
        Self::json(status, serde_json::json!({ "error": message }).to_string())
    }

    pub(super) fn lost(fate: Fate) -> Self {
        Self { fate, ..Self::json(0, Bytes::new()) }
    }

    /// The body, where it is JSON that arrived.
    pub fn value(&self) -> Option<Value> {
        let arrived = self.fate == Fate::Delivered;
        arrived.then(|| serde_json::from_slice(&self.body).ok()).flatten()
    }
}
