//! The library behind a socket: `/v1/ads` for clients; below `/_world/` it talks about itself, without
//! faults and uncounted.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::AdLibrary;
use super::faults::{AdFaults, Fault};
use super::query::Query;
use crate::answer::Body;
use crate::proxy::{ForwardProxy, ProxyFault};
use crate::server::body::Outgoing;
use crate::server::{Answers, NoAnswer, control, listen};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const WALL: &str = "<html><body><h1>Are you human?</h1></body></html>";

impl AdLibrary {
    /// Serves on the listener, which must be on loopback, until told to stop; then all connections are
    /// dropped at once. The base URL of the source is `http://127.0.0.1:{port}/v1`.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
        listen(self, listener, stop).await
    }

    async fn list(&self, query: &str, reset: &AtomicBool) -> Result<Response<Outgoing>, NoAnswer> {
        let number = self.count();
        let faults = self.faults();
        tokio::time::sleep(Duration::from_millis(faults.latency_ms)).await;
        let parsed = match Query::parse(query, self.inner.config.page_cap) {
            Ok(parsed) => parsed,
            Err(reason) => return Ok(self.told(400, None, &json!({ "error": reason }))),
        };
        let more = u64::from(faults.one_more_after.is_some_and(|after| number > after));
        let ill = json!({ "error": "the index is not there at the moment" });
        let response = match faults.draw(self.inner.config.seed, number) {
            None => self.told(200, Some(query), &self.page(&parsed, more)),
            Some(Fault::TooMany) => {
                let mut response = self.told(429, None, &json!({ "error": "too many requests" }));
                if let Some(seconds) = faults.retry_after_seconds {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
            Some(Fault::ServerError) => self.told(500, None, &ill),
            Some(Fault::Blocked) => self.wall(403),
            Some(Fault::Html) => self.wall(200),
            Some(Fault::ZeroLength) => self.text(200, None, JSON, Bytes::new()),
            Some(Fault::Empty) => self.told(200, None, &Self::nothing(&parsed)),
            Some(Fault::Cut) => self.half(&self.page(&parsed, more)),
            Some(Fault::Reset) => {
                reset.store(true, Ordering::Relaxed);
                return Err(self.silence());
            }
            Some(Fault::Hang) => {
                tokio::time::sleep(Duration::from_millis(faults.hang_ms)).await;
                return Err(self.silence());
            }
        };
        Ok(response)
    }

    fn silence(&self) -> NoAnswer {
        self.inner.ledger.lock().answered(0, None);
        NoAnswer
    }

    fn told(&self, status: u16, page: Option<&str>, body: &Value) -> Response<Outgoing> {
        self.text(status, page, JSON, body.to_string().into())
    }

    fn wall(&self, status: u16) -> Response<Outgoing> {
        self.text(status, None, HTML, WALL.into())
    }

    fn text(
        &self,
        status: u16,
        page: Option<&str>,
        kind: HeaderValue,
        body: Bytes,
    ) -> Response<Outgoing> {
        self.inner.ledger.lock().answered(status, page);
        let length = body.len();
        let mut response = Response::new(Outgoing::plain(Body::Bytes(body)));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        response
    }

    /// Half of a page, of which all was announced.
    fn half(&self, page: &Value) -> Response<Outgoing> {
        let whole = page.to_string();
        let half = Bytes::from(whole.clone()).slice(..whole.len() / 2);
        let mut response = self.text(200, None, JSON, half);
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(whole.len()));
        response.map(Outgoing::broken)
    }

    async fn control(&self, request: Request<Incoming>) -> Response<Outgoing> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        match (&head.method, path) {
            (&Method::GET, "/_world/stats") => control::json(&self.stats()),
            (&Method::GET, "/_world/faults") => control::json(&self.faults()),
            (&Method::PUT, "/_world/faults") => match self.set(body).await {
                Ok(()) => control::json(&self.faults()),
                Err(reason) => control::error(400, &reason),
            },
            (&Method::GET, "/_world/ads") => {
                match Query::parse(head.uri.query().unwrap_or_default(), u64::MAX) {
                    Ok(query) => control::json(&json!({ "ads": self.truth(&query.filters) })),
                    Err(reason) => control::error(400, &reason),
                }
            }
            (&Method::GET, "/_world/proxies") => {
                let meters: Vec<_> =
                    self.inner.proxies.lock().iter().map(ForwardProxy::meter).collect();
                control::json(&meters)
            }
            (&Method::PUT, _) if path.starts_with("/_world/proxies/") => {
                match self.turn(path, body).await {
                    Ok(()) => control::json(&json!({})),
                    Err(reason) => control::error(400, &reason),
                }
            }
            _ => {
                let known =
                    "there are GET stats, ads, faults and proxies, PUT faults and proxies/{n}";
                control::error(404, &known)
            }
        }
    }

    async fn set(&self, body: Incoming) -> Result<(), String> {
        let body = control::read(body).await?;
        let faults: AdFaults = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        self.set_faults(faults).map_err(|error| error.to_string())
    }

    /// A proxy's fault, or `null` for none.
    async fn turn(&self, path: &str, body: Incoming) -> Result<(), String> {
        let number: usize = path
            .rsplit_once('/')
            .and_then(|(_, number)| number.parse().ok())
            .ok_or("a proxy is named by its number, from 0")?;
        let body = control::read(body).await?;
        let fault: Option<ProxyFault> =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let proxies = self.inner.proxies.lock();
        proxies.get(number).ok_or("there is no such proxy")?.set_fault(fault);
        Ok(())
    }
}

impl Answers for AdLibrary {
    async fn respond(
        &self,
        request: Request<Incoming>,
        reset: &AtomicBool,
    ) -> Result<Response<Outgoing>, NoAnswer> {
        let path = request.uri().path();
        if path.starts_with("/_world/") {
            return Ok(self.control(request).await);
        }
        match (request.method(), path) {
            (&Method::GET, "/v1/ads") => {
                self.list(request.uri().query().unwrap_or_default(), reset).await
            }
            (&Method::GET, "/v1" | "/v1/") => Ok(control::json(&json!({ "library": "ads" }))),
            _ => Ok(control::error(404, &"there is GET /v1/ads")),
        }
    }
}
