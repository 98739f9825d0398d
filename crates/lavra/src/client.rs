//! Commands are written once, against the HTTP router: called in process when this process may
//! open the database, over HTTP to the process that holds it when not.

use anyhow::bail;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use lavra_db::{Database, Holder};
use serde_json::Value;
use tower::ServiceExt;

use crate::exit::{BadUsage, OwnCode, ServerUnreachable};
use crate::node::{Node, Parts};
use crate::settings::Settings;
use crate::variables::Variable;

const LARGEST_ANSWER: usize = 256 * 1024 * 1024;

#[derive(Debug)]
pub(crate) enum Client {
    /// The node stays open as long as the router is used.
    Here { router: Router, node: Box<Node> },
    There {
        http: reqwest::Client,
        base: String,
        /// An API key, or the token of the lock file.
        credential: Option<String>,
    },
}

/// What the interface refused, with its code.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct Refused {
    pub(crate) code: String,
    pub(crate) detail: String,
}

impl Client {
    pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        if let Some(server) = &settings.server {
            let key = Variable::ApiKey.read().filter(|key| !key.is_empty());
            return Ok(Self::there(server, key));
        }
        // Whoever types a command is on this machine already.
        let parts = Parts { private_allowed: true, ..Parts::default() };
        let error = match Node::open(settings, parts).await {
            Ok(node) => return Ok(Self::Here { router: node.router(), node: Box::new(node) }),
            Err(error) => error,
        };
        Self::of_holder(&error).ok_or(error)
    }

    /// The process that has the file, where that is the error and it can be asked.
    pub(crate) fn of_holder(error: &anyhow::Error) -> Option<Self> {
        match error.downcast_ref()? {
            lavra_db::Error::Held { holder: Holder { url: Some(url), token, .. }, .. } => {
                Some(Self::there(url, token.clone()))
            }
            _ => None,
        }
    }

    fn there(base: &str, credential: Option<String>) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        let http = reqwest::Client::builder().tls_backend_preconfigured(lavra_db::tls()).build();
        Self::There { http: http.unwrap_or_default(), base, credential }
    }

    /// Whether nobody else can run what is created: this process holds the file. On a PostgreSQL
    /// server others may be at work.
    pub(crate) fn is_alone(&self) -> bool {
        match self {
            Self::Here { node, .. } => matches!(node.database, Database::Duck(_)),
            Self::There { .. } => false,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.call(Method::GET, path, None, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        self.call(Method::POST, path, Some(body), None).await
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        version: Option<i32>,
    ) -> anyhow::Result<Value> {
        let mut request = Request::builder().method(method).header(header::HOST, "localhost");
        if let Some(version) = version {
            request = request.header(header::IF_MATCH, format!("\"{version}\""));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(|body| body.to_string()).unwrap_or_default();
        let (status, answer) = match self {
            Self::Here { router, .. } => {
                let request = request.uri(path).body(Body::from(bytes))?;
                let answer = router.clone().oneshot(request).await?;
                let status = answer.status();
                (status, to_bytes(answer.into_body(), LARGEST_ANSWER).await?)
            }
            Self::There { http, base, credential } => {
                let request = request.uri(format!("{base}{path}")).body(bytes)?;
                let mut request = reqwest::Request::try_from(request)?;
                request.headers_mut().remove(header::HOST);
                if let Some(credential) = credential {
                    request.headers_mut().insert(header::AUTHORIZATION, bearer(credential)?);
                }
                let away = |error: reqwest::Error| ServerUnreachable {
                    base: base.clone(),
                    source: error.without_url().into(),
                };
                let answer = http.execute(request).await.map_err(away)?;
                (answer.status(), answer.bytes().await?)
            }
        };
        read(status, &answer)
    }
}

/// Not shown where headers are.
fn bearer(credential: &str) -> anyhow::Result<HeaderValue> {
    let value = HeaderValue::try_from(format!("Bearer {credential}"));
    let name = Variable::ApiKey.name();
    let mut value = value.map_err(|_| BadUsage(format!("{name} is not a key")))?;
    value.set_sensitive(true);
    Ok(value)
}

fn read(status: StatusCode, answer: &[u8]) -> anyhow::Result<Value> {
    if answer.is_empty() && status.is_success() {
        return Ok(Value::Null);
    }
    let Ok(value) = serde_json::from_slice::<Value>(answer) else {
        bail!("the answer (HTTP {status}) is not JSON: is this a lavra server?");
    };
    if status.is_success() {
        return Ok(value);
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Err(Refused {
        code: text("code").unwrap_or_else(|| OwnCode::Error.as_str().into()),
        detail: text("detail").or_else(|| text("title")).unwrap_or_else(|| status.to_string()),
    }
    .into())
}
