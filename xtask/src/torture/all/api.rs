//! The servers, to whoever asks them: one of them answers, or nobody does.

use serde_json::Value;

use super::parts::Parts;
use crate::http;

pub(super) struct Api {
    servers: Vec<u16>,
}

impl Api {
    pub(super) fn new(parts: &Parts) -> Self {
        Self { servers: parts.servers() }
    }

    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> Option<Value> {
        self.ask_with(&[], method, path, body)
    }

    /// What the first server says that answers, if it says yes.
    pub(super) fn ask_with(
        &self,
        headers: &[(&str, &str)],
        method: &str,
        path: &str,
        body: &Value,
    ) -> Option<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.servers.iter().find_map(|port| {
            let (status, answer) = http::send(*port, method, path, headers, &body).ok()?;
            (200..300).contains(&status).then(|| serde_json::from_str(&answer).unwrap_or_default())
        })
    }
}
