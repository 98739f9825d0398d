//! The questions that a writer asks of its database, and the two engines that answer.
//!
//! Jobs stand beside the tables that they fill, so that a batch and how far the job got by it are one
//! transaction: what is told is stored, and after a crash an insert goes on where it was.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::batch::Batch;
use crate::failure::Failure;
use crate::infer::Shape;
use crate::model::{FailedItem, Job, JobId, Outcome, Progress};
use crate::order::Destination;
use crate::table::Table;

/// Someone else has the job now, or it has ended: stop, and touch nothing more.
#[derive(Debug)]
pub(crate) enum Stopped {
    Replaced,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// What became of an order.
#[derive(Debug)]
pub(crate) enum Added {
    New(Job),
    /// The same one came before.
    Known(Job),
    /// The id belongs to another order.
    Differs,
    /// Too many wait already.
    Full,
}

/// A job that this process has taken.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) id: JobId,
    pub(crate) token: i64,
    /// One text for all clones: an inline source is in it.
    pub(crate) request: Arc<str>,
    pub(crate) has_secret: bool,
    pub(crate) progress: Progress,
}

/// How the table of an order stands.
#[derive(Debug)]
pub(crate) enum Look {
    Table(Table),
    Missing,
}

/// What is kept of failed items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    pub(crate) items: u64,
}

impl Keep {
    /// How many of those that come after `before` others are stored.
    pub(crate) fn room(self, before: u64) -> usize {
        self.items.saturating_sub(before) as usize
    }
}

/// All that is asked of an engine.
pub(crate) trait Store: Jobs + Tables + Writes + Send + Sync + Debug {}

impl<T: Jobs + Tables + Writes + Send + Sync + Debug> Store for T {}

#[async_trait]
pub(crate) trait Jobs {
    /// Whether the database answers.
    async fn probe(&self) -> Result<(), Failure>;

    /// With `holder` only that process may run the job, as long as it lives.
    async fn add(
        &self,
        id: &JobId,
        request: &str,
        has_secret: bool,
        holder: Option<Uuid>,
        waiting: usize,
    ) -> Result<Added, Failure>;

    async fn job(&self, id: &JobId) -> Result<Option<Job>, Failure>;

    /// The indices of failed items above `after`, in their order, with how many bytes each is.
    async fn failed_sizes(
        &self,
        id: &JobId,
        after: Option<u64>,
    ) -> Result<Vec<(u64, usize)>, Failure>;

    /// Failed items with an index above `after` and up to `last`, in their order.
    async fn failed_items(
        &self,
        id: &JobId,
        after: Option<u64>,
        last: u64,
    ) -> Result<Vec<FailedItem>, Failure>;

    /// Says that the process is alive, and forgets those that have been silent for long.
    async fn beat(&self, process: Uuid, stale: Duration) -> Result<(), Failure>;

    /// The oldest job that nobody alive has. One that is this process's own and not `in_hand` is such a
    /// job as well: the answer to its claim was lost.
    async fn claim(
        &self,
        process: Uuid,
        stale: Duration,
        in_hand: &[String],
    ) -> Result<Option<Claim>, Failure>;

    /// From the beginning: what came of it before is gone.
    async fn restart(&self, claim: &Claim) -> Result<(), Stopped>;

    /// Told twice it is told once: the answer to the first time may have been lost.
    async fn end(
        &self,
        claim: &Claim,
        progress: &Progress,
        outcome: &Outcome,
    ) -> Result<(), Stopped>;

    /// Gives a job back, for anyone to go on with.
    async fn release(&self, claim: &Claim) -> Result<(), Failure>;

    async fn leave(&self, process: Uuid) -> Result<(), Failure>;

    /// Removes some of the jobs that ended long ago, at most so many; how many there were.
    async fn forget(&self, kept: Duration, most: usize) -> Result<usize, Failure>;
}

#[async_trait]
pub(crate) trait Tables {
    async fn look(&self, destination: &Destination) -> Result<Look, Failure>;

    async fn create(&self, destination: &Destination, shape: &Shape) -> Result<(), Failure>;
}

#[async_trait]
pub(crate) trait Writes {
    /// Stores a batch with what is known of the job after it. `progress` is that before it.
    async fn write(
        &self,
        claim: &Claim,
        table: &Table,
        batch: &Batch,
        progress: &mut Progress,
        keep: Keep,
    ) -> Result<(), Stopped>;
}

/// Why a destination is refused whatever its catalog says.
pub(crate) fn refusal(destination: &Destination, own: &str, allowed: &[String]) -> Option<Failure> {
    let Destination { schema, table, .. } = destination;
    let is_system = schema.starts_with("pg_") || schema == "information_schema";
    if is_system || schema == own || OF_LAVRA.contains(&schema.as_str()) {
        return Some(Failure::schema(format!("the schema {schema:?} is not for data")));
    }
    let name = format!("{schema}.{table}");
    if !allowed.is_empty() && !allowed.contains(&name) {
        let text = format!("the table {name:?} is not among those that may be written");
        return Some(Failure::schema(text));
    }
    None
}

/// Secrets, and what extractions know of their pages: no place for data either.
const OF_LAVRA: [&str; 2] = ["lavra", "psa"];

/// The tables of a fleet: they are no place for data, where there is a fleet.
pub(crate) const OF_THE_FLEET: [&str; 7] = [
    "missions",
    "workers",
    "proxies",
    "writers",
    "mission_logs",
    "fleet_processes",
    "fleet_settings",
];

pub(crate) fn no_table(destination: &Destination) -> Failure {
    let Destination { schema, table, .. } = destination;
    Failure::schema(format!(
        "there is no table {schema}.{table}: make it, or send \"create_table\": true"
    ))
}

pub(crate) fn no_schema(schema: &str) -> Failure {
    Failure::schema(format!("there is no schema {schema:?}: a table is made, a schema is not"))
}

pub(crate) fn no_key(destination: &Destination) -> Failure {
    let key = destination.conflict_key.join(", ");
    let Destination { schema, table, .. } = destination;
    Failure::schema(format!(
        "the conflict_key ({key}) has no unique index on {schema}.{table}: make one, or name the \
         columns of one that is there"
    ))
}
