//! The life of a task as one pure function: a task and what happened to it in, the next state and
//! its event out. Live work, takeover after a crash, cancellation and the HTTP interface all go
//! through [`next`]; the stores only apply what it decided, under the guard it names.
//!
//! ```text
//!            claim                complete
//! PENDING ──────────► IN_PROGRESS ─────────► COMPLETED
//!  ▲  │ cancel          │  │  │
//!  │  └──────────┐      │  │  └─ fail, lose (no retries left, or permanent) ─► FAILED ──┐
//!  │             ▼      │  └──── fail, lose, interrupt (again later) ──► PENDING        │
//!  │         CANCELLED ◄┘ cancel                                                        │
//!  └──────────────┴───────────────────────── retry (a person) ◄─────────────────────────┘
//! ```

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::model::{Actor, Claimed, Status, Task};

/// What the machine needs to know of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub status: Status,
    pub progress: i16,
    pub retry_count: i32,
    pub max_retries: i32,
    /// Whether the worker of a cancelled attempt has yet to confirm that it stopped.
    pub stopping: bool,
}

impl From<&Task> for Snapshot {
    fn from(task: &Task) -> Self {
        Self {
            status: task.status,
            progress: task.progress,
            retry_count: task.retry_count,
            max_retries: task.max_retries,
            stopping: task.stop_by.is_some(),
        }
    }
}

impl From<&Claimed> for Snapshot {
    fn from(claimed: &Claimed) -> Self {
        Self {
            status: Status::InProgress,
            progress: 0,
            retry_count: claimed.retry_count,
            max_retries: claimed.max_retries,
            stopping: false,
        }
    }
}

/// What happens to a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A process takes it.
    Claim,
    /// The handler tells how far it is.
    Step {
        progress: i16,
        state: String,
        detail: Option<Value>,
    },
    Complete,
    /// The attempt failed; `retry_in` is absent when trying again cannot help.
    Fail {
        error: String,
        retry_in: Option<Duration>,
    },
    /// The process shuts down: the attempt is given back and does not count.
    Interrupt,
    /// The process died or froze past its lease: the attempt counts.
    Lose {
        reason: String,
        retry_in: Duration,
    },
    Cancel {
        stop_within: Duration,
    },
    /// The worker of a cancelled attempt has stopped.
    ConfirmStop,
    /// It has not, and its time is over.
    GiveUpStop,
    /// A person asks for another go.
    Retry,
    /// Its message could not be delivered time and again.
    Bury {
        reason: String,
    },
}

/// What the row becomes, and the event that says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    pub status: Status,
    pub state: String,
    pub progress: i16,
    pub error: Option<String>,
    pub retry_count: i32,
    /// Not to be claimed before this long from now.
    pub wait: Option<Duration>,
    /// How long the worker has to confirm that it stopped.
    pub stop_within: Option<Duration>,
    pub actor: Actor,
    pub detail: Value,
}

/// A happening that the state of the task does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task that is {status} cannot {verb}")]
pub struct Illegal {
    pub status: Status,
    pub verb: &'static str,
}

/// The state texts that the specification names.
pub const QUEUED: &str = "Queued";
pub const CANCELLED_BY_USER: &str = "Cancelled by user";

pub fn next(task: &Snapshot, happening: &Happening, now: Timestamp) -> Result<Next, Illegal> {
    match task.status {
        Status::Pending => pending(task, happening),
        Status::InProgress => in_progress(task, happening, now),
        Status::Completed => Err(illegal(task, happening)),
        Status::Failed => failed(task, happening),
        Status::Cancelled => cancelled(task, happening),
    }
}

fn pending(task: &Snapshot, happening: &Happening) -> Result<Next, Illegal> {
    match happening {
        Happening::Claim => {
            Ok(Next::of(task, Status::InProgress, "Started", Actor::Worker, "start").fresh())
        }
        Happening::Cancel { .. } => {
            Ok(Next::of(task, Status::Cancelled, CANCELLED_BY_USER, Actor::Api, "cancel"))
        }
        Happening::Bury { reason } => Ok(failure(task, Actor::System, reason)),
        Happening::Step { .. }
        | Happening::Complete
        | Happening::Fail { .. }
        | Happening::Interrupt
        | Happening::Lose { .. }
        | Happening::ConfirmStop
        | Happening::GiveUpStop
        | Happening::Retry => Err(illegal(task, happening)),
    }
}

fn in_progress(task: &Snapshot, happening: &Happening, now: Timestamp) -> Result<Next, Illegal> {
    match happening {
        Happening::Step { progress, state, detail } => {
            let mut next = Next::of(task, Status::InProgress, state, Actor::Worker, "update");
            next.progress = task.progress.max(*progress).clamp(0, 100);
            if let (Some(Value::Object(extra)), Value::Object(fields)) = (detail, &mut next.detail)
            {
                fields.extend(extra.clone());
            }
            Ok(next)
        }
        Happening::Complete => {
            let mut next =
                Next::of(task, Status::Completed, "Completed", Actor::Worker, "complete");
            next.progress = 100;
            Ok(next)
        }
        Happening::Fail { error, retry_in } => Ok(match retry_in {
            Some(wait) if task.retry_count < task.max_retries => {
                again(task, Actor::Worker, error, *wait, now)
            }
            Some(_) | None => failure(task, Actor::Worker, error),
        }),
        Happening::Lose { reason, retry_in } => Ok(if task.retry_count < task.max_retries {
            again(task, Actor::System, reason, *retry_in, now)
        } else {
            failure(task, Actor::System, reason)
        }),
        Happening::Interrupt => {
            Ok(Next::of(task, Status::Pending, QUEUED, Actor::System, "interrupt").fresh())
        }
        Happening::Cancel { stop_within } => {
            let mut next =
                Next::of(task, Status::Cancelled, CANCELLED_BY_USER, Actor::Api, "cancel");
            next.stop_within = Some(*stop_within);
            Ok(next)
        }
        Happening::Claim
        | Happening::ConfirmStop
        | Happening::GiveUpStop
        | Happening::Retry
        | Happening::Bury { .. } => Err(illegal(task, happening)),
    }
}

fn failed(task: &Snapshot, happening: &Happening) -> Result<Next, Illegal> {
    match happening {
        Happening::Retry => Ok(by_a_person(task)),
        Happening::Claim
        | Happening::Step { .. }
        | Happening::Complete
        | Happening::Fail { .. }
        | Happening::Interrupt
        | Happening::Lose { .. }
        | Happening::Cancel { .. }
        | Happening::ConfirmStop
        | Happening::GiveUpStop
        | Happening::Bury { .. } => Err(illegal(task, happening)),
    }
}

fn cancelled(task: &Snapshot, happening: &Happening) -> Result<Next, Illegal> {
    match happening {
        Happening::Retry => Ok(by_a_person(task)),
        Happening::ConfirmStop if task.stopping => Ok(Next::of(
            task,
            Status::Cancelled,
            CANCELLED_BY_USER,
            Actor::Worker,
            "stop-confirmed",
        )),
        Happening::GiveUpStop if task.stopping => Ok(Next::of(
            task,
            Status::Cancelled,
            CANCELLED_BY_USER,
            Actor::System,
            "stop-not-confirmed",
        )),
        Happening::ConfirmStop
        | Happening::GiveUpStop
        | Happening::Claim
        | Happening::Step { .. }
        | Happening::Complete
        | Happening::Fail { .. }
        | Happening::Interrupt
        | Happening::Lose { .. }
        | Happening::Cancel { .. }
        | Happening::Bury { .. } => Err(illegal(task, happening)),
    }
}

fn again(task: &Snapshot, actor: Actor, error: &str, wait: Duration, now: Timestamp) -> Next {
    let retry = task.retry_count + 1;
    let at = now.saturating_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::ZERO));
    let at = at.map_or_else(|_| "later".to_owned(), |at| at.strftime("%H:%M:%S").to_string());
    let state = format!("Retry {retry}/{} at {at}", task.max_retries);
    let mut next = Next::of(task, Status::Pending, &state, actor, "retry");
    next.retry_count = retry;
    next.progress = 0;
    next.wait = Some(wait);
    next.error = Some(error.to_owned());
    next.detail["error"] = json!(error);
    next
}

fn failure(task: &Snapshot, actor: Actor, error: &str) -> Next {
    let mut next = Next::of(task, Status::Failed, "Failed", actor, "fail");
    next.error = Some(error.to_owned());
    next.detail["error"] = json!(error);
    next
}

fn by_a_person(task: &Snapshot) -> Next {
    let mut next = Next::of(task, Status::Pending, QUEUED, Actor::Api, "retry").fresh();
    next.retry_count = 0;
    next
}

fn illegal(task: &Snapshot, happening: &Happening) -> Illegal {
    Illegal { status: task.status, verb: happening.verb() }
}

impl Next {
    fn of(task: &Snapshot, status: Status, state: &str, actor: Actor, action: &str) -> Self {
        Self {
            status,
            state: state.to_owned(),
            progress: task.progress,
            error: None,
            retry_count: task.retry_count,
            wait: None,
            stop_within: None,
            actor,
            detail: json!({ "action": action }),
        }
    }

    fn fresh(mut self) -> Self {
        self.progress = 0;
        self
    }
}

impl Happening {
    fn verb(&self) -> &'static str {
        match self {
            Self::Claim => "be claimed",
            Self::Step { .. } => "make progress",
            Self::Complete => "be completed",
            Self::Fail { .. } => "fail",
            Self::Interrupt => "be interrupted",
            Self::Lose { .. } => "be taken over",
            Self::Cancel { .. } => "be cancelled",
            Self::ConfirmStop | Self::GiveUpStop => "stop",
            Self::Retry => "be retried",
            Self::Bury { .. } => "be buried",
        }
    }
}

#[cfg(test)]
mod tests;
