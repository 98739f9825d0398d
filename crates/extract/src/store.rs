//! The questions that extraction asks of a database, for one source.
//!
//! One verb changes anything: [`Writes::write`], which takes what happened to some tasks, each
//! guarded by the token of whoever holds it, and stores state, windows, pages and bodies in one
//! transaction. A page is there with its body or not at all.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use jiff::civil::Date;
use lavra_db::Clock;
use lavra_tasks::model::{ProcessId, Token};
use serde::Serialize;
use uuid::Uuid;

use crate::error::Result;
use crate::machine::Next;
use crate::model::{
    Cell, Extraction, ExtractionId, Page, PageFailure, Status, Stored, Totals, Window,
};

/// A task that the plan needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    pub task_id: ExtractionId,
    pub endpoint_name: String,
    pub data_date: Date,
}

/// A part of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// None are all.
    pub endpoints: Vec<String>,
    pub from: Date,
    pub to: Date,
}

/// What a process looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Tasks that wait for their totals.
    Discovery,
    /// Tasks with pages missing; those that others left first.
    Pages,
}

/// What happened to a task.
#[derive(Clone, Debug)]
pub struct Write {
    pub task: ExtractionId,
    /// The token that the task must have, or nothing is written.
    pub token: Token,
    pub change: Option<Change>,
    pub arrivals: Vec<Arrival>,
}

#[derive(Clone, Debug)]
pub struct Change {
    pub next: Next,
    pub held: Held,
    /// The sums over all windows, when they are known anew.
    pub totals: Option<Totals>,
    pub windows: Option<Vec<Window>>,
    /// For people to see; what counts is derived.
    pub missing: Option<Vec<i64>>,
}

/// Whose a task is afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// As before.
    Same,
    /// This process's, with a new token; `begun` when it is at work on the pages.
    Claimed {
        by: ProcessId,
        begun: bool,
    },
    /// Its holder's still, for anyone to take who has time.
    Offered,
    Nobody,
}

/// An answer, as it is kept.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub id: Uuid,
    pub at: Timestamp,
    pub url: String,
    pub endpoint_name: String,
    pub data_date: Date,
    pub run: String,
    /// The query, as JSON.
    pub parameters: String,
    pub code: u16,
    /// As JSON.
    pub headers: String,
    pub body: Option<Bytes>,
    /// Within the window, and within the task.
    pub current_page: i64,
    pub page: i64,
    pub page_size: i64,
    pub total_records: Option<i64>,
    pub total_pages: Option<i64>,
    pub elapsed: Duration,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A page, with records or none: it is done.
    Done(Done),
    Failed {
        error: String,
    },
}

/// What is known of a page without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub records: i64,
    pub total_records: i64,
    pub generation: i32,
    pub body_hash: String,
    pub content_hash: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// With the token that the task has now.
    Applied { token: Token },
    /// Another process has it.
    Lost,
}

/// How much of a task is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    pub task: Extraction,
    pub pages: i64,
    pub records: i64,
    pub bytes: i64,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Volume {
    pub pages: i64,
    pub records: i64,
    pub bytes: i64,
}

/// A part of a long list by date and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Only tasks that are so.
    pub status: Option<Status>,
    /// The date and name of the last one that was shown.
    pub after: Option<(Date, String)>,
    pub limit: usize,
}

pub trait Store: Reads + Looks + Writes + Send + Sync + Debug {
    fn clock(&self) -> &Clock;
}

#[async_trait]
pub trait Writes {
    /// Adds the tasks that are not there yet, and says how many were not.
    async fn plan(&self, tasks: Vec<Planned>) -> Result<usize>;

    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>>;

    /// Forgets what these pages contain, so that whatever comes next is stored anew.
    async fn distrust(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<()>;
}

#[async_trait]
pub trait Reads {
    /// Tasks that may be taken now: nobody holds them, or whoever does has not renewed its row for
    /// `stale`, or offers them.
    async fn candidates(
        &self,
        scope: &Scope,
        want: Want,
        stale: Duration,
        limit: usize,
    ) -> Result<Vec<Extraction>>;

    async fn task(&self, id: &ExtractionId) -> Result<Option<Extraction>>;
    /// By date and name.
    async fn tasks(&self, scope: &Scope) -> Result<Vec<Extraction>>;
    /// The same with what is stored of each.
    async fn progress(&self, scope: &Scope) -> Result<Vec<Progress>>;
    async fn windows(&self, id: &ExtractionId) -> Result<Vec<Window>>;
    /// By page.
    async fn stored(&self, id: &ExtractionId) -> Result<Vec<Stored>>;
    /// By page, with their hashes and where their bodies are.
    async fn pages(&self, id: &ExtractionId) -> Result<Vec<Page>>;
    /// The bodies of these responses of a task, as far as they are there; an id that was stored
    /// twice comes twice.
    async fn bodies(
        &self,
        id: &ExtractionId,
        responses: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, Option<String>)>>;
}

/// What people look at.
#[async_trait]
pub trait Looks {
    /// All that is stored, of all tasks.
    async fn volume(&self) -> Result<Volume>;
    /// How many tasks are in which state.
    async fn statuses(&self) -> Result<BTreeMap<Status, i64>>;
    /// A part of [`Reads::progress`].
    async fn progress_slice(&self, scope: &Scope, slice: &Slice) -> Result<Vec<Progress>>;
    /// By name and date. Pages are counted only of what is not complete.
    async fn grid(&self, scope: &Scope) -> Result<Vec<Cell>>;
    /// The first `limit` pages that are stored above `after`, whether they count or not.
    async fn pages_after(&self, id: &ExtractionId, after: i64, limit: usize) -> Result<Vec<Page>>;
    /// Those of these pages that are stored, by page.
    async fn pages_named(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<Page>>;
    /// The first `limit` runs of pages above `after` that are promised and not stored as promised.
    /// Those of a task whose totals nobody knows yet are not promised.
    async fn missing_after(
        &self,
        id: &ExtractionId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RangeInclusive<i64>>>;
    /// How many pages that are.
    async fn missing_count(&self, id: &ExtractionId) -> Result<i64>;
    /// The last failure of each of these pages that has one, by page.
    async fn page_failures(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<PageFailure>>;
    /// The first `most` characters of a response of a task, if it is there and has a body.
    async fn opening(
        &self,
        id: &ExtractionId,
        response: Uuid,
        most: usize,
    ) -> Result<Option<String>>;
}
