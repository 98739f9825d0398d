//! What the fleet is made of: the columns of its five tables, ours after the specification's.
//!
//! A row travels between the program and both engines as JSON, so these types are the only list of
//! columns beside the tables themselves.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use lavra_tasks::model::{ProcessId, Token};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::words::words;

/// Declares a text id that cannot be taken for another one.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// A new one; later ones are greater.
            pub fn new(clock: &lavra_db::Clock) -> Self {
                Self::of(clock.new_id())
            }

            /// The one that is made of an id of the clock's.
            pub fn of(id: uuid::Uuid) -> Self {
                Self(format!(concat!($prefix, "{}"), id.simple()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

id!(MissionId, "mis_");
id!(WorkerId, "wrk_");
id!(ProxyId, "prx_");
id!(WriterId, "wrt_");
id!(LogId, "log_");
id!(
    /// One session of a worker, from its first request to its end.
    SessionId,
    "ses_"
);

words!(MissionStatus {
    /// In the queue; in the bank while `queued_at` is not set.
    Queued = "queued",
    Running = "running",
    Completed = "completed",
    Failed = "failed",
    Canceled = "canceled",
});

impl MissionStatus {
    pub fn is_over(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Completed | Self::Failed | Self::Canceled => true,
        }
    }
}

words!(
    /// How far a mission is.
    Checkpoint {
        Atribuido = "atribuido",
        Extracao = "extracao",
        Armazenamento = "armazenamento",
        Finalizado = "finalizado",
    }
);

words!(MediaType {
    All = "all",
    Video = "video",
    Image = "image",
});

words!(WorkerStatus {
    /// Without a session.
    Idle = "idle",
    /// A session is being opened.
    Initializing = "initializing",
    /// A session stands and waits for a mission.
    Ready = "ready",
    Scraping = "scraping",
    /// The session failed and is being closed.
    Error = "error",
});

words!(
    /// The specification's twenty events.
    EventKind {
        MissionQueued = "mission_queued",
        MissionAssigned = "mission_assigned",
        MissionCanceled = "mission_canceled",
        SessionStarted = "session_started",
        SessionReady = "session_ready",
        SessionFailed = "session_failed",
        SessionTerminated = "session_terminated",
        ScrapeStarted = "scrape_started",
        ScrapeProgress = "scrape_progress",
        ScrapeCompleted = "scrape_completed",
        ScrapeFailed = "scrape_failed",
        ScrapeEmpty = "scrape_empty",
        WriterStarted = "writer_started",
        WriterProgress = "writer_progress",
        WriterCompleted = "writer_completed",
        WriterFailed = "writer_failed",
        MissionCompleted = "mission_completed",
        MissionFailed = "mission_failed",
        RetryTriggered = "retry_triggered",
        ProxyRotated = "proxy_rotated",
    }
);

words!(
    /// Why a session ends.
    CloseReason {
        SessionLimit = "session_limit",
        Shutdown = "shutdown",
        Error = "error",
        Canceled = "canceled",
        Deactivated = "deactivated",
    }
);

words!(
    /// What something waits for. Nothing just waits.
    Waiting {
        Proxy = "proxy",
        Mission = "mission",
        Session = "session",
        Job = "job",
        JobStop = "job_stop",
        SessionEnd = "session_end",
        /// The next attempt has its time.
        Retry = "retry",
        Worker = "worker",
        WorkerBusy = "worker_busy",
        ActiveWriter = "active_writer",
        Writer = "writer",
        WriterBusy = "writer_busy",
        WriterJob = "writer_job",
        Orchestrator = "orchestrator",
    }
);

impl Waiting {
    /// For people.
    pub fn says(self) -> &'static str {
        match self {
            Self::Proxy => "a free proxy",
            Self::Mission => "a mission",
            Self::Session => "its session to be ready",
            Self::Job => "the scrape job",
            Self::JobStop => "the scrape job to stop",
            Self::SessionEnd => "the end of its session",
            Self::Retry => "its next attempt",
            Self::Worker => "the worker to answer",
            Self::WorkerBusy => "the worker, which asked for a pause",
            Self::ActiveWriter => "an active writer",
            Self::Writer => "the writer to answer",
            Self::WriterBusy => "the writer, which asked for a pause",
            Self::WriterJob => "the writer job",
            Self::Orchestrator => "the orchestrator",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mission {
    pub id: MissionId,
    pub date_start: Date,
    pub date_end: Date,
    pub media_type: MediaType,
    pub languages: Vec<String>,

    pub status: MissionStatus,
    pub checkpoint: Option<Checkpoint>,

    pub worker_id: Option<WorkerId>,
    pub worker_job_id: Option<String>,
    pub worker_data_url: Option<String>,
    pub proxy_used: Option<String>,
    pub writer_job_id: Option<String>,
    pub ads_count: Option<i32>,

    pub error_code: Option<ErrorCode>,
    pub error_message: Option<String>,
    /// Retries of the current phase.
    pub retry_count: i32,

    pub created_at: Timestamp,
    pub queued_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,

    /// Scrape and writer jobs asked for so far; never goes back.
    pub attempts: i32,
    /// When the job that runs was asked for; timeouts count from here.
    pub phase_started_at: Option<Timestamp>,
    pub writer_id: Option<WriterId>,
    pub writer_accepted_at: Option<Timestamp>,
    /// What the writer had done when it last moved, and when that was.
    pub writer_processed: Option<i64>,
    pub writer_moved_at: Option<Timestamp>,
    pub next_attempt_at: Option<Timestamp>,
    pub waiting: Option<Waiting>,
    /// When progress was last written to the log.
    pub told_at: Option<Timestamp>,
    /// The time of its newest log entry: the next one is later.
    pub logged_at: Option<Timestamp>,
    /// Who may write: raised whenever someone else takes it over.
    pub token: Option<Token>,
    pub held_by: Option<ProcessId>,
}

impl Mission {
    /// The key of the outside call that is being made.
    pub fn idempotency_key(&self) -> String {
        format!("{}:{}", self.id, self.attempts)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    pub id: WorkerId,
    pub name: String,
    pub url: String,
    pub storage_domain: Option<String>,

    pub status: WorkerStatus,
    /// Missions done in this session.
    pub session_count: i32,
    pub current_mission_id: Option<MissionId>,
    pub active: bool,
    pub last_test_at: Option<Timestamp>,
    pub last_test_ok: Option<bool>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,

    pub last_proxy_id: Option<ProxyId>,
    pub session_id: Option<SessionId>,
    /// When the session that stands was asked for.
    pub session_started_at: Option<Timestamp>,
    /// Whether the worker has taken the request for it.
    pub session_accepted: bool,
    /// Failures in a row, while no mission was assigned.
    pub session_errors: i32,
    /// What the session before ended with: the next one rotates.
    pub error_code: Option<ErrorCode>,
    pub error_message: Option<String>,
    pub next_attempt_at: Option<Timestamp>,
    /// The session is to be closed, why, and by when at the latest.
    pub close_reason: Option<CloseReason>,
    pub close_by: Option<Timestamp>,
    /// A session whose end was never confirmed.
    pub unclosed: bool,
    /// By when a job that was told to stop must have.
    pub stop_by: Option<Timestamp>,
    pub unreachable_since: Option<Timestamp>,
    pub waiting: Option<Waiting>,
    pub token: Option<Token>,
    pub held_by: Option<ProcessId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proxy {
    pub id: ProxyId,
    pub name: Option<String>,
    pub host: String,
    pub port: Option<i32>,
    pub username: Option<String>,
    pub active: bool,
    pub in_use_by_worker_id: Option<WorkerId>,
    pub fail_count: i32,
    pub last_used_at: Option<Timestamp>,
    pub last_test_at: Option<Timestamp>,
    pub last_test_ok: Option<bool>,
    pub created_at: Timestamp,
}

impl Proxy {
    /// As reports know it.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id.0)
    }

    /// As the worker is told.
    pub fn server(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Writer {
    pub id: WriterId,
    pub name: String,
    pub url: String,
    pub active: bool,
    pub last_test_at: Option<Timestamp>,
    pub last_test_ok: Option<bool>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A row of `mission_logs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    pub id: LogId,
    pub mission_id: Option<MissionId>,
    pub event: EventKind,
    pub details: Map<String, Value>,
    pub timestamp: Timestamp,
    /// The session that it is about, until a mission is known.
    pub session_id: Option<SessionId>,
}

words!(
    /// What the orchestrators are to do.
    Mode {
        /// Nothing: no run is in progress.
        Off = "off",
        Run = "run",
        /// Finish what runs, take nothing new.
        Drain = "drain",
        /// Cancel jobs, put their missions back, close sessions.
        Stop = "stop",
    }
);
