//! The reports of the specification, with the window as a parameter: its columns, and ours
//! after them. The fourth, a mission's timeline, is the log of that mission.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{LogId, MissionId, MissionStatus, ProxyId, WorkerId};

/// What happened after `since` and before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub since: Timestamp,
    pub until: Timestamp,
}

impl Window {
    pub fn since(since: Timestamp) -> Self {
        Self { since, until: Timestamp::MAX }
    }

    pub fn has(&self, time: Timestamp) -> bool {
        self.since < time && time < self.until
    }
}

/// A mission that failed, each time that it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub id: MissionId,
    /// What it is now.
    pub status: MissionStatus,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub retry_count: i32,
    pub failed_at: Timestamp,
    pub details: Map<String, Value>,
    /// The entry that says so.
    pub log_id: LogId,
}

/// What a worker did: to the one that did it, which the entry names, as a mission may have several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Performance {
    pub worker_name: String,
    pub completed_count: i64,
    pub failed_count: i64,
    /// Of what was completed and says how long it took.
    pub avg_duration_ms: Option<f64>,
    pub worker_id: WorkerId,
}

/// A proxy, with what went wrong behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxyTrouble {
    pub name: Option<String>,
    pub host: String,
    pub fail_count: i32,
    pub active: bool,
    pub session_failures: i64,
    pub rotations: i64,
    pub proxy_id: ProxyId,
}
