//! Creations that may be repeated: with an `Idempotency-Key` each is carried out once, and answered
//! the same way ever after. A key is its caller's: the same one of another API key is another request.
//!
//! What is made under a key gets its id from the reservation of the key. So a request whose process
//! died half-way, and that comes again, makes nothing twice. Tasks have keys of their own, in the
//! transaction that makes them.

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lavra_db::{IdempotencyKeys, Reserved, hex, key_as_said, key_of};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::access::Caller;
use crate::app::Site;
use crate::body::{self, LARGE};
use crate::headers::idempotency_key;
use crate::problem::{Code, Problem};
use crate::tasks::LONGEST_KEY;
use crate::verbs::documented;

/// What creates, apart from tasks.
const CREATIONS: [&str; 6] = [
    "/missions",
    "/missions:import",
    "/missions/{id}:copy",
    "/fleet/workers",
    "/fleet/proxies",
    "/fleet/writers",
];
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;
const KEPT_HEADERS: [HeaderName; 2] = [header::CONTENT_TYPE, header::LOCATION];

/// The id that what is made should have, where the request has a key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given(pub(crate) Option<Uuid>);

impl<S: Send + Sync> FromRequestParts<S> for Given {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}

/// An answer, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    headers: Vec<(String, String)>,
    body: String,
}

pub(crate) async fn keep(State(site): State<Site>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| documented(path.as_str()));
    let creates = path.is_some_and(|path| CREATIONS.contains(&&*path));
    if !creates || request.method() != axum::http::Method::POST {
        return next.run(request).await;
    }
    match idempotency_key(request.headers(), LONGEST_KEY) {
        Ok(None) => next.run(request).await,
        Ok(Some(key)) => {
            let whose = request.extensions().get::<Caller>().and_then(Caller::whose);
            let key = key_of(whose, &key);
            once(&site, &key, request, next).await.unwrap_or_else(Problem::into_response)
        }
        Err(problem) => problem.into_response(),
    }
}

async fn once(site: &Site, key: &str, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let bytes = body::read(body, LARGE).await?;
    let mut hasher = Sha256::new();
    for part in [parts.method.as_str(), &parts.uri.to_string(), &body::essence(&parts.headers)] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    hasher.update(&bytes);
    let fingerprint = hex(&hasher.finalize());

    let keys = IdempotencyKeys::new(site.app.database.clone());
    let id = match keys.reserve(key, &fingerprint).await? {
        Reserved::New(id) => id,
        Reserved::Answered(answer) => return repeated(&answer),
        Reserved::UnderWay => {
            let detail = "a request with this Idempotency-Key is being carried out";
            return Err(Problem::new(Code::RequestUnderWay, detail));
        }
        Reserved::Reused => {
            let key = key_as_said(key);
            let detail = format!("the Idempotency-Key {key:?} was used for another request before");
            return Err(Problem::new(Code::IdempotencyKeyReused, detail));
        }
    };
    parts.extensions.insert(Given(Some(id)));
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    if !response.status().is_success() {
        keys.release(key, id).await?;
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, LARGEST_ANSWER).await;
    let body = body.map_err(|error| Problem::new(Code::InternalError, error.to_string()))?;
    let kept = KEPT_HEADERS.iter().filter_map(|name| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some((name.to_string(), value.to_owned()))
    });
    let answer =
        Answer { headers: kept.collect(), body: String::from_utf8_lossy(&body).into_owned() };
    keys.answer(key, id, &serde_json::json!(answer).to_string()).await?;
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// The answer of the first time; 200, as nothing was made now.
fn repeated(answer: &str) -> Result<Response, Problem> {
    let answer: Answer = serde_json::from_str(answer)
        .map_err(|error| Problem::new(Code::InternalError, format!("a kept answer: {error}")))?;
    let mut response = (StatusCode::OK, answer.body).into_response();
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}
