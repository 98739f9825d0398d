//! The words of the Worker API, and what a job is.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// `scrape_` and 128 random bits: whoever knows it may read the results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(String);

impl JobId {
    pub(crate) fn new() -> Self {
        Self(format!("scrape_{}", Uuid::new_v4().simple()))
    }

    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SessionId(Uuid);

impl SessionId {
    pub(crate) fn new() -> Self {
        Self(Uuid::new_v4())
    }
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// The nine statuses of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Accepted; its client is being made.
    Initializing,
    /// The proxy is being reached.
    Connecting,
    /// The proxy is asked to pass a first request on.
    Authenticating,
    /// The source is asked until it answers as it should.
    WarmingUp,
    Ready,
    Scraping,
    /// Nothing comes any more, or nothing that helps: the source does not want this proxy.
    Stuck,
    /// The proxy refuses, or breaks off.
    Disconnected,
    /// Over: closed, replaced, or unused for too long.
    Terminated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    Pending,
    /// Waits to be gone on with, after a restart.
    Queued,
    Running,
    Completed,
    Empty,
    Failed,
    Cancelled,
}

impl JobStatus {
    pub fn is_over(self) -> bool {
        match self {
            Self::Pending | Self::Queued | Self::Running => false,
            Self::Completed | Self::Empty | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// What a scrape looks for, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) start: Date,
    pub(crate) end: Date,
    pub(crate) media: Media,
    pub(crate) languages: Vec<String>,
    pub(crate) sort_by: Option<String>,
    /// `None` is all.
    pub(crate) max_ads: Option<u64>,
    pub(crate) batch_size: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Media {
    #[default]
    All,
    Video,
    Image,
}

impl Media {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Video => "video",
            Self::Image => "image",
        }
    }
}

/// Why a session broke or a job failed, in the orchestrator's codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) error_code: Code,
    pub(crate) blame: Blame,
    pub(crate) error_message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Code {
    /// The session could not be taken up again.
    Error100,
    /// The session is stuck.
    Error102,
    /// The session was disconnected.
    Error103,
    /// The scrape failed.
    Error200,
    /// The storage failed.
    Error400,
    /// The storage refuses the credentials.
    Error401,
    /// The source refuses the request as wrong.
    Error500,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Blame {
    Proxy,
    Worker,
    Storage,
    Mission,
    Nobody,
}

/// A scrape, as its file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) session: SessionId,
    pub(crate) order: Order,
    pub(crate) status: JobStatus,
    pub(crate) ads_count: u64,
    /// How far it was when it ended: pages that came, of so many.
    #[serde(default)]
    pub(crate) pages: (u64, u64),
    #[serde(flatten)]
    pub(crate) failure: Option<Failure>,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    /// How often a process has taken it up.
    pub(crate) attempts: u32,
}
