//! A fleet behind a socket: all of its servers on one port, below `/worker/{n}` and `/writer/{n}`. Below
//! `/_fleet/` it talks about itself.
//!
//! A connection that should have been refused was accepted already, because the port is that of all: it is
//! reset instead.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ask::{Fate, FleetAnswer, FleetBody, FleetRequest};
use super::{FleetFaults, FleetWorld};
use crate::answer::Body;
use crate::server::body::Outgoing;
use crate::server::{Answers, NoAnswer, control, listen};

/// A fleet and its clock, which goes on from the latest time that anyone asked at.
#[derive(Clone, Debug)]
struct Served {
    fleet: FleetWorld,
    began: Instant,
    before: Duration,
}

impl FleetWorld {
    /// Serves on the listener, which must be on loopback, until told to stop; then all connections are
    /// dropped at once. The base URL of worker 3 is `http://127.0.0.1:{port}/worker/3`.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
        let (began, before) = (Instant::now(), self.latest());
        let served = Served { fleet: self.clone(), began, before };
        listen(&served, listener, stop).await
    }
}

impl Served {
    fn now(&self) -> Duration {
        self.before.saturating_add(self.began.elapsed())
    }
}

impl Answers for Served {
    async fn respond(
        &self,
        request: Request<Incoming>,
        reset: &AtomicBool,
    ) -> Result<Response<Outgoing>, NoAnswer> {
        if request.uri().path().starts_with("/_fleet/") {
            return Ok(self.control(request).await);
        }
        let (head, body) = request.into_parts();
        let body = match control::read(body).await {
            Ok(body) => body,
            Err(reason) => return Ok(control::error(413, &reason)),
        };
        let url = head.uri.to_string();
        let asked = FleetRequest {
            method: head.method.as_str(),
            url: &url,
            api_key: text(&head.headers, "x-api-key"),
            idempotency_key: text(&head.headers, "idempotency-key"),
            body: if body.is_empty() { FleetBody::Nothing } else { FleetBody::Bytes(&body) },
        };
        let answer = self.fleet.answer(self.now(), &asked);
        if !answer.delay.is_zero() {
            tokio::time::sleep(answer.delay).await;
        }
        match answer.fate {
            Fate::Delivered => Ok(response(answer)),
            Fate::Timeout => Err(NoAnswer),
            Fate::Refused | Fate::Reset => {
                reset.store(true, Ordering::Relaxed);
                Err(NoAnswer)
            }
        }
    }
}

impl Served {
    /// None of it fails, and none of it is counted.
    async fn control(&self, request: Request<Incoming>) -> Response<Outgoing> {
        let (head, body) = request.into_parts();
        match (&head.method, head.uri.path()) {
            (&Method::GET, "/_fleet/stats") => control::json(&self.fleet.stats(self.now())),
            (&Method::GET, "/_fleet/jobs") => control::json(&self.fleet.jobs(self.now())),
            (&Method::GET, "/_fleet/violations") => control::json(&self.fleet.violations()),
            (&Method::GET, "/_fleet/excused") => control::json(&self.fleet.excused()),
            (&Method::GET, "/_fleet/faults") => control::json(&self.fleet.faults()),
            (&Method::PUT, "/_fleet/faults") => match self.set(body).await {
                Ok(()) => control::json(&self.fleet.faults()),
                Err(reason) => control::error(400, &reason),
            },
            _ => {
                let known =
                    "there are GET stats, jobs, violations, excused and faults, and PUT faults";
                control::error(404, &known)
            }
        }
    }

    async fn set(&self, body: Incoming) -> Result<(), String> {
        let body = control::read(body).await?;
        let faults: FleetFaults =
            serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        self.fleet.set_faults(faults).map_err(|error| error.to_string())
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn response(answer: FleetAnswer) -> Response<Outgoing> {
    let length = answer.body.len();
    let mut response = Response::new(Outgoing::plain(Body::Bytes(answer.body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    if let Some(after) = answer.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs()));
    }
    response
}
