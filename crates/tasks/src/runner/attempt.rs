//! One attempt of one task in this process, and the handler's view of it.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::pulse::Pulse;
use super::report::Reporter;
use crate::machine::Snapshot;
use crate::model::{Actor, Claimed, ProcessId, Status, TaskId, Token};
use crate::store::Step;

/// Why an attempt was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Someone cancelled the task.
    Cancelled,
    /// Another process has it now.
    Lost,
    /// This process shuts down.
    Shutdown,
}

/// What the handler has told since the last write.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) progress: i16,
    pub(super) state: String,
    pub(super) steps: Vec<Step>,
    /// A change of progress or state that stands in no step yet.
    pub(super) moved: bool,
    pub(super) metadata: Option<Value>,
}

#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) task: Claimed,
    process: ProcessId,
    pulse: Pulse,
    told: Mutex<Told>,
    /// Whether the reporter knows already that something was told.
    pub(super) noted: AtomicBool,
    stop: CancellationToken,
    reason: AtomicU8,
}

impl Attempt {
    pub(crate) fn new(task: Claimed, process: ProcessId, pulse: Pulse) -> Self {
        let told = Told { state: "Started".into(), ..Told::default() };
        Self {
            task,
            process,
            pulse,
            told: Mutex::new(told),
            noted: AtomicBool::new(false),
            stop: CancellationToken::new(),
            reason: AtomicU8::new(0),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::from(&self.task);
        snapshot.progress = self.told().progress;
        snapshot
    }

    pub(super) fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self, reason: Stop) {
        let code = match reason {
            Stop::Cancelled => 1,
            Stop::Lost => 2,
            Stop::Shutdown => 3,
        };
        // The first reason stands: a cancelled task stays cancelled when we shut down as well.
        let _ = self.reason.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
        self.stop.cancel();
    }

    pub(crate) fn stopped_for(&self) -> Option<Stop> {
        match self.reason.load(Ordering::Relaxed) {
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::Lost),
            3 => Some(Stop::Shutdown),
            _ => None,
        }
    }
}

/// What a handler is given beside its input.
#[derive(Clone, Debug)]
pub struct Context {
    attempt: Arc<Attempt>,
    reporter: Reporter,
}

impl Context {
    pub(super) fn new(attempt: Arc<Attempt>, reporter: Reporter) -> Self {
        Self { attempt, reporter }
    }

    pub fn id(&self) -> TaskId {
        self.attempt.task.id
    }

    /// For fencing outside calls: each claim of this task has a greater one, so whoever keeps the
    /// greatest seen refuses an attempt that was taken over and does not know it yet.
    pub fn token(&self) -> Token {
        self.attempt.task.token
    }

    /// The process that runs it: what it takes in tables of its own is lost when this process is.
    pub fn process(&self) -> ProcessId {
        self.attempt.process
    }

    /// Whether that process says in time that it lives.
    pub fn pulse(&self) -> Pulse {
        self.attempt.pulse.clone()
    }

    /// Counts the claims of this task from 1 and never goes back.
    pub fn attempt(&self) -> i32 {
        self.attempt.task.attempts
    }

    pub fn created_at(&self) -> Timestamp {
        self.attempt.task.created_at
    }

    /// Attempts that failed since creation or the last `:retry`: 0 at the first.
    pub fn retry_count(&self) -> i32 {
        self.attempt.task.retry_count
    }

    /// For calls to the outside: the same for nothing else, ever.
    pub fn idempotency_key(&self) -> String {
        format!("{}:{}", self.id(), self.attempt())
    }

    /// How far the work is, 0 to 100, and the human step. Written now and then, the newest wins;
    /// it never goes back within an attempt.
    pub fn progress(&self, percent: i16, state: impl Into<String>) {
        let mut told = self.attempt.told();
        told.progress = told.progress.max(percent.clamp(0, 100));
        told.state = state.into();
        told.moved = true;
        drop(told);
        self.reporter.note(&self.attempt);
    }

    /// A step worth an event of its own; none is lost.
    pub fn step(&self, state: impl Into<String>, detail: Value) {
        let state = state.into();
        let mut told = self.attempt.told();
        let mut fields = json!({ "action": "update", "progress": told.progress });
        if let (Value::Object(fields), Value::Object(extra)) = (&mut fields, detail) {
            fields.extend(extra);
        }
        told.steps.push(Step {
            status: Status::InProgress,
            state: state.clone(),
            actor: Actor::Worker,
            detail: fields,
        });
        told.state = state;
        drop(told);
        self.reporter.note(&self.attempt);
    }

    /// Merges `fields` into the task's metadata with the next write.
    pub fn metadata(&self, fields: Value) {
        let mut told = self.attempt.told();
        match (&mut told.metadata, fields) {
            (Some(Value::Object(known)), Value::Object(new)) => known.extend(new),
            (slot, fields) => *slot = Some(fields),
        }
        drop(told);
        self.reporter.note(&self.attempt);
    }

    pub fn is_stopping(&self) -> bool {
        self.attempt.stop.is_cancelled()
    }

    pub fn is_cancelled(&self) -> bool {
        self.attempt.stopped_for() == Some(Stop::Cancelled)
    }

    /// Returns when the attempt is told to stop, and says why.
    pub async fn stopped(&self) -> Stop {
        self.attempt.stop.cancelled().await;
        self.attempt.stopped_for().unwrap_or(Stop::Lost)
    }
}
