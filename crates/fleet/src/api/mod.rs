//! The Worker API and the Writer API as the orchestrator calls them.
//!
//! A [`Transport`] carries a call and brings an answer or says that there is none; what an answer
//! means is decided here, the same for the real network and for a simulated one.

mod http;
mod meaning;

use std::fmt::{Debug, Write};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

pub use self::http::Http;
use crate::code::{Blame, ErrorCode};
use crate::machine::{worker, writer};
use crate::model::{Mission, Proxy, SessionId, Worker, Writer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Delete,
}

/// A call of an API. Debug shows no secret: the key and the body are left out.
#[derive(Clone)]
pub struct Call {
    pub method: Method,
    pub url: String,
    pub api_key: Option<SecretString>,
    pub idempotency_key: Option<String>,
    pub body: Option<Value>,
    pub timeout: Duration,
}

impl Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.method, self.url)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub retry_after: Option<Duration>,
    /// Cut where it is longer than anything that is read.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    Refused(String),
    Timeout(String),
    Broken(String),
}

#[async_trait]
pub trait Transport: Send + Sync + Debug {
    async fn send(&self, call: Call) -> Result<Answer, Lost>;
}

/// What a worker or a writer said, or why it said nothing that helps.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Done,
    Session(SessionStatus),
    Started {
        job_id: String,
    },
    Job {
        job: JobReport,
        session: Option<SessionStatus>,
    },
    Accepted {
        job_id: Option<String>,
    },
    Write(WriteReport),
    /// 404: it does not know what was asked about.
    Unknown,
    Trouble(Trouble),
}

impl Reply {
    pub(crate) fn session(&self) -> Option<&SessionStatus> {
        match self {
            Self::Session(status) => Some(status),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// 429: later.
    Busy { after: Option<Duration> },
    /// 400, 413, 422: the request will not get better.
    Refused { message: String },
    /// It is not there, or not in its right mind.
    Away { code: ErrorCode, message: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    Initializing,
    Connecting,
    Authenticating,
    WarmingUp,
    Ready,
    Scraping,
    Stuck,
    Disconnected,
    Terminated,
    /// One that nobody knows.
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStatus {
    Pending,
    Queued,
    Running,
    Completed,
    Empty,
    Failed,
    Cancelled,
    Paused,
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReport {
    pub status: JobStatus,
    pub ads_count: Option<i32>,
    pub progress_pct: Option<i32>,
    pub error_code: Option<ErrorCode>,
    pub blame: Option<Blame>,
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteStatus {
    Processing,
    Completed,
    Failed,
    Partial,
    Other(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct WriteReport {
    pub status: WriteStatus,
    pub total: Option<i64>,
    pub processed: Option<i64>,
    pub success_count: Option<i64>,
    pub failed_count: Option<i64>,
    pub failed_items: Vec<Value>,
    pub error_code: Option<ErrorCode>,
    pub message: Option<String>,
}

/// A worker to be called.
#[derive(Debug)]
pub struct WorkerApi<'a> {
    pub transport: &'a dyn Transport,
    pub worker: &'a Worker,
    pub api_key: Option<SecretString>,
    pub timeout: Duration,
}

impl WorkerApi<'_> {
    /// `POST /session`, under the session's own key.
    pub async fn open(
        &self,
        session: &SessionId,
        proxy: &Proxy,
        password: Option<&SecretString>,
    ) -> Reply {
        let mut server = Map::new();
        server.insert("server".into(), json!(proxy.server()));
        if let Some(username) = &proxy.username {
            server.insert("username".into(), json!(username));
        }
        if let Some(password) = password {
            server.insert("password".into(), json!(password.expose_secret()));
        }
        let body = json!({ "force_refresh": true, "proxy": server });
        let answer = self.call(Method::Post, "/session", Some(session.0.clone()), Some(body)).await;
        meaning::of_worker(answer, |_| Some(Reply::Done))
    }

    pub async fn session(&self) -> Reply {
        let answer = self.call(Method::Get, "/session/status", None, None).await;
        match meaning::of_worker(answer, meaning::session) {
            // Without a session there is none to be asked about.
            Reply::Unknown => Reply::Session(SessionStatus::Terminated),
            reply => reply,
        }
    }

    pub async fn close(&self) -> Reply {
        let answer = self.call(Method::Delete, "/session", None, None).await;
        match meaning::of_worker(answer, |_| Some(Reply::Done)) {
            Reply::Unknown => Reply::Done,
            reply => reply,
        }
    }

    pub async fn start(&self, mission: &Mission) -> Reply {
        let body = Value::Object(worker::scrape_body(mission));
        let key = Some(mission.idempotency_key());
        let answer = self.call(Method::Post, "/scrape", key, Some(body)).await;
        let refused = match meaning::of_worker(answer, meaning::started) {
            refused @ Reply::Trouble(Trouble::Refused { .. }) => refused,
            reply => return reply,
        };
        // Whether the mission is at fault, or a session that broke since it was last looked at.
        match self.session().await {
            Reply::Session(SessionStatus::Ready) | Reply::Trouble(_) => refused,
            session => session,
        }
    }

    /// The job, and unless it is done the session beside it.
    pub async fn job(&self, job_id: &str) -> Reply {
        let path = format!("/scrape/{}", segment(job_id));
        let answer = self.call(Method::Get, &path, None, None).await;
        match meaning::of_worker(answer, meaning::job) {
            Reply::Job { job, .. }
                if !matches!(job.status, JobStatus::Completed | JobStatus::Empty) =>
            {
                let session = self.session().await.session().cloned();
                Reply::Job { job, session }
            }
            reply => reply,
        }
    }

    pub async fn cancel(&self, job_id: &str) -> Reply {
        let path = format!("/scrape/{}/cancel", segment(job_id));
        let answer = self.call(Method::Post, &path, None, None).await;
        meaning::of_worker(answer, |_| Some(Reply::Done))
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        idempotency_key: Option<String>,
        body: Option<Value>,
    ) -> Result<Answer, Lost> {
        let url = format!("{}{path}", self.worker.url.trim_end_matches('/'));
        let (api_key, timeout) = (self.api_key.clone(), self.timeout);
        let call = Call { method, url, api_key, idempotency_key, body, timeout };
        self.transport.send(call).await
    }
}

/// A writer to be called.
#[derive(Debug)]
pub struct WriterApi<'a> {
    pub transport: &'a dyn Transport,
    pub writer: &'a Writer,
    pub api_key: Option<SecretString>,
    pub timeout: Duration,
}

impl WriterApi<'_> {
    pub async fn process(&self, mission: &Mission) -> Reply {
        let body = writer::process_body(mission);
        let key = Some(mission.idempotency_key());
        let answer = self.call(Method::Post, "/process", key, Some(body)).await;
        meaning::of_writer(answer, meaning::accepted)
    }

    pub async fn status(&self, job_id: &str) -> Reply {
        let path = format!("/status/{}", segment(job_id));
        let answer = self.call(Method::Get, &path, None, None).await;
        meaning::of_writer(answer, meaning::write)
    }

    pub async fn health(&self) -> Reply {
        let answer = self.call(Method::Get, "/health", None, None).await;
        meaning::of_writer(answer, |body| {
            (body.get("status")?.as_str()? == "healthy").then_some(Reply::Done)
        })
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        idempotency_key: Option<String>,
        body: Option<Value>,
    ) -> Result<Answer, Lost> {
        let url = format!("{}{path}", self.writer.url.trim_end_matches('/'));
        let (api_key, timeout) = (self.api_key.clone(), self.timeout);
        let call = Call { method, url, api_key, idempotency_key, body, timeout };
        self.transport.send(call).await
    }
}

/// An id that someone else made, as one segment of a path.
fn segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                segment.push(char::from(byte));
            }
            _ => {
                let _infallible = write!(segment, "%{byte:02X}");
            }
        }
    }
    segment
}
