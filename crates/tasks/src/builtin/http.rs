//! `http`: one HTTP request; its answer is stored as the artefact, only its pointer as the
//! result.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::artefact::Artefacts;
use crate::error::Error;
use crate::handler::{Context, Failure, Handler, Outcome};
use crate::outbound;

const LARGEST_BODY: u64 = 64 * 1024 * 1024;
const LONGEST: u64 = 3600;

#[derive(Debug)]
pub struct Http {
    client: Client,
    artefacts: Artefacts,
    private_allowed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Sent as it is if it is a string, as JSON otherwise.
    #[serde(default)]
    body: Option<Value>,
    #[serde(default = "half_a_minute")]
    timeout_seconds: u64,
}

fn get() -> String {
    "GET".into()
}

fn half_a_minute() -> u64 {
    30
}

impl Http {
    /// `private_allowed`: whether tasks may call internal addresses.
    pub fn new(artefacts: Artefacts, private_allowed: bool) -> Result<Self, Error> {
        let built = outbound::client(private_allowed).build();
        let client = built.map_err(|error| Error::Invalid(format!("no HTTP client: {error}")))?;
        Ok(Self { client, artefacts, private_allowed })
    }

    fn request(&self, input: &Input, key: &str) -> Result<reqwest::Request, Failure> {
        let wrong = |text: String| Failure::Permanent(text);
        let url = Url::parse(&input.url).map_err(|error| wrong(format!("url: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("url: {} is not http or https", url.scheme())));
        }
        if !self.private_allowed
            && let Some(text) = outbound::refusal_of(&url)
        {
            return Err(wrong(text));
        }
        let method: Method = input
            .method
            .to_ascii_uppercase()
            .parse()
            .map_err(|_| wrong(format!("{:?} is not an HTTP method", input.method)))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &input.headers {
            let name: HeaderName =
                name.parse().map_err(|_| wrong(format!("{name:?} is not a header name")))?;
            // The value may be a credential: it is not repeated.
            let value: HeaderValue = value
                .parse()
                .map_err(|_| wrong(format!("the value of the header {name} is not one")))?;
            headers.insert(name, value);
        }
        if !headers.contains_key("idempotency-key") && !method.is_safe() {
            headers.insert(
                "idempotency-key",
                HeaderValue::from_str(key).map_err(|e| wrong(e.to_string()))?,
            );
        }
        let timeout = Duration::from_secs(input.timeout_seconds.clamp(1, LONGEST));
        let mut request = self.client.request(method, url).headers(headers).timeout(timeout);
        request = match &input.body {
            None => request,
            Some(Value::String(text)) => request.body(text.clone()),
            Some(json) => request.json(json),
        };
        request.build().map_err(|error| wrong(error.without_url().to_string()))
    }
}

impl Handler for Http {
    type Input = Input;

    const KIND: &'static str = "http";

    async fn run(&self, input: Input, context: Context) -> Outcome {
        let request = self.request(&input, &context.idempotency_key())?;
        context.step("Requesting", json!({ "method": request.method().as_str() }));
        let answer = tokio::select! {
            answer = self.client.execute(request) => answer.map_err(|e| outbound::trouble(&e))?,
            _ = context.stopped() => return Err(Failure::Stopped),
        };
        let status = answer.status();
        let after = outbound::retry_after(answer.headers());
        let content_type = content_type(answer.headers());
        let body = tokio::select! {
            body = read(answer, &context) => body?,
            _ = context.stopped() => return Err(Failure::Stopped),
        };
        judge(status, after, &body)?;
        let key = format!("http/{}/{}", context.id(), context.attempt());
        let pointer = self
            .artefacts
            .put(&key, &content_type, body)
            .await
            .map_err(|error| Failure::retry(error.to_string()))?;
        Ok(Some(json!({ "status": status.as_u16(), "artefact": pointer })))
    }
}

async fn read(answer: Response, context: &Context) -> Result<Bytes, Failure> {
    let expected = answer.content_length();
    let too_large =
        || Failure::Permanent(format!("the answer is larger than {} MB", LARGEST_BODY >> 20));
    if expected.is_some_and(|length| length > LARGEST_BODY) {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    let mut stream = answer.bytes_stream();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|error| outbound::trouble(&error))?;
        if (body.len() + part.len()) as u64 > LARGEST_BODY {
            return Err(too_large());
        }
        body.extend_from_slice(&part);
        if let Some(expected) = expected.filter(|length| *length > 0) {
            let percent = (body.len() as u64 * 99 / expected).min(99) as i16;
            context.progress(percent, format!("Received {} of {expected} bytes", body.len()));
        }
    }
    Ok(body.freeze())
}

/// What the answer's status means for the task.
fn judge(status: StatusCode, after: Option<Duration>, body: &Bytes) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    let excerpt = String::from_utf8_lossy(&body[..body.len().min(200)]).replace('\0', "");
    let error = format!("HTTP {status}: {}", excerpt.trim());
    let passing = status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    Err(if passing { Failure::Retry { error, after } } else { Failure::Permanent(error) })
}

fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or("application/octet-stream").to_owned()
}
