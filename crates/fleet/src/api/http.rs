//! Calls over the real network.

use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use lavra_tasks::outbound;
use reqwest::header::{HeaderMap, HeaderValue};
use secrecy::ExposeSecret;

use super::{Answer, Call, Lost, Method, Transport};
use crate::error::{Error, Result};

/// What is read of an answer. A finished job may carry all its data, which nobody needs here; the
/// words that count stand before it, or there is a status that says so.
const MOST: usize = 4 << 20;
const CONNECT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Http(reqwest::Client);

impl Http {
    pub fn new() -> Result<Self> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(lavra_db::tls())
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .http1_only()
            .build()
            .map_err(|error| Error::Invalid(format!("no HTTP client can be made: {error}")))?;
        Ok(Self(client))
    }

    async fn exchange(&self, call: &Call) -> Result<Answer, Lost> {
        let method = match call.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut request = self.0.request(method, &call.url).headers(headers(call)?);
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let mut response = request.send().await.map_err(|error| lost(&error))?;
        let status = response.status().as_u16();
        let retry_after = outbound::retry_after(response.headers());
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
            if body.len() + chunk.len() > MOST {
                return Ok(Answer { status, retry_after, body: without_data(&body) });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, retry_after, body: body.freeze() })
    }
}

#[async_trait]
impl Transport for Http {
    async fn send(&self, call: Call) -> Result<Answer, Lost> {
        match tokio::time::timeout(call.timeout, self.exchange(&call)).await {
            Ok(answer) => answer,
            Err(_) => Err(Lost::Timeout(format!("no answer within {:?}", call.timeout))),
        }
    }
}

fn headers(call: &Call) -> Result<HeaderMap, Lost> {
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static("application/json"));
    if let Some(key) = &call.api_key {
        let mut value = HeaderValue::from_str(key.expose_secret())
            .map_err(|_| Lost::Broken("the API key cannot be sent in a header".into()))?;
        value.set_sensitive(true);
        headers.insert("x-api-key", value);
    }
    if let Some(key) = &call.idempotency_key
        && let Ok(value) = HeaderValue::from_str(key)
    {
        headers.insert("idempotency-key", value);
    }
    Ok(headers)
}

/// The innermost reason, without the URL.
fn lost(error: &reqwest::Error) -> Lost {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let text = reason.to_string();
    if error.is_timeout() {
        return Lost::Timeout(text);
    }
    if error.is_connect() { Lost::Refused(text) } else { Lost::Broken(text) }
}

/// An object that was cut, up to its `data`: closed there, it can be read.
fn without_data(body: &[u8]) -> Bytes {
    let name = b"\"data\"";
    let Some(at) = body.windows(name.len()).position(|part| part == name) else {
        return Bytes::new();
    };
    let mut kept = body[..at].trim_ascii_end().to_vec();
    if kept.last() == Some(&b',') {
        kept.pop();
    }
    kept.push(b'}');
    kept.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_too_long_is_read_up_to_its_data() {
        let cut = without_data(br#"{"status": "completed", "ads_count": 3, "data": [{"id": 1"#);
        let read: serde_json::Value = serde_json::from_slice(&cut).unwrap();
        assert_eq!(read["ads_count"], 3);
        assert!(without_data(b"<html>").is_empty());
    }
}
