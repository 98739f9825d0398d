//! The questions that the fleet asks of a database.
//!
//! Each verb is one transaction: rows and their log entries together. Whoever supervises a worker
//! or a mission holds a token for it; [`Steps::apply`] writes nothing for a token that is not the
//! row's any more.

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use lavra_db::Clock;
use lavra_tasks::model::{ProcessId, TaskId, Token};
use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::error::Result;
use crate::machine::Step;
use crate::machine::mission::Wish;
use crate::machine::worker::View;
use crate::model::{
    Checkpoint, EventKind, LogEntry, LogId, MediaType, Mission, MissionId, MissionStatus, Mode,
    Proxy, ProxyId, SessionId, Waiting, Worker, WorkerId, Writer, WriterId,
};
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::settings::Adjustable;

/// A mission for the bank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMission {
    pub id: MissionId,
    pub date_start: Date,
    pub date_end: Date,
    pub media_type: MediaType,
    pub languages: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWorker {
    pub id: WorkerId,
    pub name: String,
    pub url: String,
    /// A reference to the secret, or the secret itself where none is kept.
    pub api_key: String,
    pub storage_domain: Option<String>,
    pub active: bool,
}

impl Debug for NewWorker {
    /// Without the secret.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewWorker")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewProxy {
    pub id: ProxyId,
    pub name: String,
    pub host: String,
    pub port: Option<i32>,
    pub username: Option<String>,
    pub password: Option<String>,
    pub active: bool,
}

impl Debug for NewProxy {
    /// Without the secret.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewProxy")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWriter {
    pub id: WriterId,
    pub name: String,
    pub url: String,
    pub api_key: String,
    pub active: bool,
}

impl Debug for NewWriter {
    /// Without the secret.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewWriter")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Something that missions are run with, by its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Thing {
    Worker(WorkerId),
    Proxy(ProxyId),
    Writer(WriterId),
}

impl Thing {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Worker(_) => "worker",
            Self::Proxy(_) => "proxy",
            Self::Writer(_) => "writer",
        }
    }

    pub fn id(&self) -> &str {
        match self {
            Self::Worker(WorkerId(id)) | Self::Proxy(ProxyId(id)) | Self::Writer(WriterId(id)) => {
                id
            }
        }
    }
}

/// What a person changes; what is `None` stays as it is.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub name: Option<String>,
    /// Of a worker or a writer.
    pub url: Option<String>,
    pub storage_domain: Option<String>,
    /// Of a proxy.
    pub host: Option<String>,
    pub port: Option<i32>,
    pub username: Option<String>,
    /// The secret, or a reference to it: `api_key` or `password`.
    pub secret: Option<String>,
    /// A proxy that is made active again starts with no failure.
    pub active: Option<bool>,
}

impl Debug for Edit {
    /// Without the secret.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, url, storage_domain, host, port, username, secret, active } = self;
        f.debug_struct("Edit")
            .field("name", name)
            .field("url", url)
            .field("storage_domain", storage_domain)
            .field("host", host)
            .field("port", port)
            .field("username", username)
            .field("changes_secret", &secret.is_some())
            .field("active", active)
            .finish()
    }
}

/// Why something was not added, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edited {
    Done,
    NotFound,
    NameTaken,
    /// Another worker has it.
    UrlTaken,
    /// It is at work, or missions of the past name it.
    InUse(String),
}

/// Which missions; all conditions together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// None are any.
    pub ids: Vec<MissionId>,
    pub status: Option<MissionStatus>,
    /// Whether it is in the bank: queued, and never put into the queue.
    pub in_bank: Option<bool>,
    pub checkpoint: Option<Checkpoint>,
    pub error_code: Option<ErrorCode>,
    pub media_type: Option<MediaType>,
    pub language: Option<String>,
    pub worker: Option<WorkerId>,
    /// Its days are within these.
    pub from: Option<Date>,
    pub to: Option<Date>,
    pub waiting: Option<Waiting>,
    /// What its id or its error code begins with, or its error message contains, in whatever case.
    pub search: Option<String>,
}

/// How many missions are how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub bank: i64,
    pub queued: i64,
    pub extracao: i64,
    pub armazenamento: i64,
    pub completed: i64,
    pub failed: i64,
    pub canceled: i64,
}

impl Counts {
    pub fn running(&self) -> i64 {
        self.extracao + self.armazenamento
    }

    pub fn has_work(&self) -> bool {
        self.queued + self.running() > 0
    }
}

/// What ended within a piece of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// When the piece begins.
    pub at: Timestamp,
    pub completed: i64,
    pub failed: i64,
    /// Of the missions that were completed.
    pub ads: i64,
}

/// What a writer has to do, and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterLoad {
    pub writer: WriterId,
    /// Missions that it stores now.
    pub under_way: i64,
    pub completed: i64,
    pub failed: i64,
}

/// So many wait for the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub who: Waiter,
    pub what: WaitsFor,
    pub count: i64,
    /// Since when the one does that has waited longest.
    pub since: Option<Timestamp>,
}

impl Wait {
    /// Each thing that is waited for once: a named one comes from a database in two parts, with and
    /// without data.
    pub(crate) fn merged(waits: Vec<Self>) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::with_capacity(waits.len());
        for wait in waits {
            match merged.iter_mut().find(|it| (it.who, it.what) == (wait.who, wait.what)) {
                None => merged.push(wait),
                Some(there) => {
                    there.count += wait.count;
                    there.since = there.since.into_iter().chain(wait.since).min();
                }
            }
        }
        merged.sort_by_key(|wait| (wait.who, std::cmp::Reverse(wait.count), wait.what));
        merged
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Waiter {
    Mission,
    Worker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WaitsFor {
    /// In the queue, until a worker is free.
    Turn,
    /// In the queue with its data there, until it is written.
    Write,
    Named(Waiting),
}

impl WaitsFor {
    /// What a mission of the queue, or one that runs, waits for.
    pub fn of(mission: &Mission) -> Option<Self> {
        match (mission.status, mission.waiting) {
            (MissionStatus::Queued | MissionStatus::Running, Some(waiting)) => {
                Some(Self::Named(waiting))
            }
            (MissionStatus::Queued, None) => match (mission.queued_at, &mission.worker_data_url) {
                (None, _) => None,
                (Some(_), None) => Some(Self::Turn),
                (Some(_), Some(_)) => Some(Self::Write),
            },
            (MissionStatus::Running, None)
            | (MissionStatus::Completed | MissionStatus::Failed | MissionStatus::Canceled, _) => {
                None
            }
        }
    }

    /// From what a statement tells: the word, and whether the data of the mission is there.
    pub(crate) fn read(word: Option<&str>, has_data: bool) -> Self {
        match word.and_then(|word| word.parse().ok()) {
            Some(waiting) => Self::Named(waiting),
            None if has_data => Self::Write,
            None => Self::Turn,
        }
    }
}

/// Which entries of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    pub mission: Option<MissionId>,
    /// Only those that belong to no mission.
    pub without_mission: bool,
    pub events: Vec<EventKind>,
    pub worker: Option<WorkerId>,
    /// The name that reports know a proxy by.
    pub proxy: Option<String>,
    pub session: Option<SessionId>,
    pub error_code: Option<ErrorCode>,
    /// From this time on, and before that one.
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Older than this entry.
    pub before: Option<(Timestamp, LogId)>,
    /// Newer than this entry.
    pub after: Option<(Timestamp, LogId)>,
    /// Newest first, unless this says otherwise.
    pub oldest_first: bool,
    pub limit: usize,
}

/// The most missions that one lease takes for the writer.
pub(crate) const WRITES: usize = 200;

/// What a process looks after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leased {
    pub workers: Vec<(WorkerId, Token)>,
    pub missions: Vec<(MissionId, Token)>,
    /// Workers above its share: for others to take.
    pub surplus: usize,
}

/// A session that is about to be opened.
#[derive(Clone, Debug)]
pub struct Opening {
    pub worker: WorkerId,
    pub token: Token,
    pub session: SessionId,
    /// Which of the free proxies it becomes.
    pub luck: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// The worker is `initializing`, with this proxy.
    With(Box<Proxy>),
    NoProxy,
    /// Others are about to take all that waits.
    NotNeeded,
    /// The worker is someone else's, or in another state.
    Lost,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Assigned {
    /// The worker as it is now, with its mission.
    With(Box<View>),
    NothingQueued,
    Lost,
}

/// What the orchestrators are to do, and the run that said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    pub mode: Mode,
    pub task_id: Option<TaskId>,
}

pub trait Store:
    Wishes
    + Reads
    + Glances
    + Reports
    + Things
    + Adjusts
    + Leases
    + Supervises
    + Steps
    + Send
    + Sync
    + Debug
{
    fn clock(&self) -> &Clock;
}

/// What people want of missions.
#[async_trait]
pub trait Wishes {
    /// Adds missions to the bank, but for those that are there already (the same days, media type
    /// and languages) unless `again`; returns the ids of those that were added.
    async fn add_missions(&self, missions: Vec<NewMission>, again: bool) -> Result<Vec<MissionId>>;
    /// Does what is wished to all missions of the filter for which it may be; returns their ids.
    async fn wish(&self, filter: &Filter, wish: Wish, by: &str) -> Result<Vec<MissionId>>;
}

/// Missions, their log, and who works on them.
#[async_trait]
pub trait Reads {
    /// Newest first, older than `before`.
    async fn missions(
        &self,
        filter: &Filter,
        before: Option<MissionId>,
        limit: usize,
    ) -> Result<Vec<Mission>>;
    async fn counts(&self) -> Result<Counts>;
    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>>;
    /// All of them, oldest first.
    async fn workers(&self) -> Result<Vec<Worker>>;
    async fn proxies(&self) -> Result<Vec<Proxy>>;
    async fn writers(&self) -> Result<Vec<Writer>>;
}

/// How it stands, in a few numbers.
#[async_trait]
pub trait Glances {
    /// How many missions fit.
    async fn count(&self, filter: &Filter) -> Result<i64>;
    /// A text that is another one whenever missions were made, or something of workers, proxies,
    /// writers or settings has changed: what the log does not tell. Cheap, for those who ask often.
    async fn stamp(&self) -> Result<String>;
    /// What ended since a time, in pieces of `step`; those in which nothing did are left out.
    async fn pace(&self, since: Timestamp, step: Duration) -> Result<Vec<Pace>>;
    /// With what missions failed that ended since a time, the most frequent first.
    async fn failures_by_code(&self, since: Timestamp) -> Result<Vec<(ErrorCode, i64)>>;
    /// What missions and active workers wait for; missions first, the most frequent first.
    async fn waits(&self) -> Result<Vec<Wait>>;
    /// Of each writer that missions name: what it stores now, and what ended since a time.
    async fn writer_loads(&self, since: Timestamp) -> Result<Vec<WriterLoad>>;
}

/// What the log says of a time.
#[async_trait]
pub trait Reports {
    /// Newest first, older than the entry `before`.
    async fn failures(
        &self,
        window: Window,
        before: Option<(Timestamp, LogId)>,
        limit: usize,
    ) -> Result<Vec<Failure>>;
    /// By worker.
    async fn performance(&self, window: Window) -> Result<Vec<Performance>>;
    /// Those that failed most often first.
    async fn troubled_proxies(&self, window: Window) -> Result<Vec<ProxyTrouble>>;
}

/// Workers, proxies and writers, as people have them.
#[async_trait]
pub trait Things {
    async fn add_worker(&self, worker: NewWorker) -> Result<Edited>;
    async fn add_proxy(&self, proxy: NewProxy) -> Result<Edited>;
    async fn add_writer(&self, writer: NewWriter) -> Result<Edited>;
    async fn edit(&self, thing: &Thing, edit: Edit) -> Result<Edited>;
    async fn remove(&self, thing: &Thing) -> Result<Edited>;
    async fn tested(&self, thing: &Thing, ok: bool) -> Result<()>;
    /// The column that holds the secret, or its reference.
    async fn secret(&self, thing: &Thing) -> Result<Option<String>>;
}

/// What people set while it runs.
#[async_trait]
pub trait Adjusts {
    async fn settings(&self) -> Result<Adjustable>;
    async fn set_settings(&self, settings: Adjustable) -> Result<()>;
    async fn control(&self) -> Result<Control>;
    /// Unless another run has said something since: `seen` is the run whose orders were read.
    /// Whether it was written.
    async fn set_control(&self, control: Control, seen: Option<TaskId>) -> Result<bool>;
}

/// Which orchestrator looks after what.
#[async_trait]
pub trait Leases {
    /// Says that the process lives, takes its share of what nobody looks after (nobody, or a
    /// process that has not said so for `stale`), and returns all that it has. A worker comes with
    /// its mission; both get a new token.
    async fn lease(&self, process: ProcessId, stale: Duration) -> Result<Leased>;
    /// Gives these back.
    async fn release(&self, process: ProcessId, workers: Vec<WorkerId>) -> Result<()>;
    /// Gives everything back: the process ends.
    async fn leave(&self, process: ProcessId) -> Result<()>;
}

/// What an orchestrator asks of a worker that it looks after.
#[async_trait]
pub trait Supervises {
    /// The worker, if it has this token, with what it holds.
    async fn view(&self, worker: &WorkerId, token: Token) -> Result<Option<View>>;
    /// A mission that is being stored, if it has this token.
    async fn storing(&self, mission: &MissionId, token: Token) -> Result<Option<Mission>>;
    /// Reserves a proxy and begins a session, if the worker is idle and one is needed.
    async fn open(&self, opening: Opening) -> Result<Opened>;
    /// The oldest mission of the queue for a worker that is ready; the entries of its session
    /// become the mission's.
    async fn assign(&self, worker: &WorkerId, token: Token) -> Result<Assigned>;
}

/// What it writes.
#[async_trait]
pub trait Steps {
    /// Writes steps, each as a whole or not at all; says which were.
    async fn apply(&self, steps: Vec<Step>) -> Result<Vec<bool>>;
}
