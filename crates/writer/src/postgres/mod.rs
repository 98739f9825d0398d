//! Jobs and tables in PostgreSQL, also behind a pooler in transaction mode.

mod catalog;
mod doubts;
mod jobs;
mod lanes;
mod rows;
mod sql;
mod write;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lavra_db::{Listener, Pg};
use uuid::Uuid;

use crate::batch::Batch;
use crate::config::Config;
use crate::failure::Failure;
use crate::infer::Shape;
use crate::model::{FailedItem, Job, JobId, Outcome, Progress};
use crate::order::Destination;
use crate::store::{Added, Claim, Keep, Look, Stopped, Store};
use crate::table::Table;

#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    pg: Pg,
    /// The only tables that are written, where there are any.
    tables: Vec<String>,
    /// As long as it hears something, connections are sessions, and COPY can be used.
    _listener: Arc<Listener>,
}

impl Postgres {
    pub(crate) fn new(pg: Pg, config: &Config) -> Self {
        let tables = config.access.tables.clone();
        let listener = Arc::new(pg.listen("lavra_writer"));
        Self { pg: pg.with_limit(config.timing.statement), tables, _listener: listener }
    }
}

#[async_trait]
impl Store for Postgres {
    async fn probe(&self) -> Result<(), Failure> {
        self.pg.query("look whether the database answers", "SELECT 1", &[]).await?;
        Ok(())
    }

    async fn add(
        &self,
        id: &JobId,
        request: &str,
        has_secret: bool,
        waiting: usize,
    ) -> Result<Added, Failure> {
        self.add_job(id, request, has_secret, waiting).await
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, Failure> {
        self.read_job(id).await
    }

    async fn failed_items(
        &self,
        id: &JobId,
        after: Option<u64>,
        most: usize,
    ) -> Result<Vec<FailedItem>, Failure> {
        self.read_failed_items(id, after, most).await
    }

    async fn beat(&self, process: Uuid, stale: Duration) -> Result<(), Failure> {
        self.renew(process, stale).await
    }

    async fn claim(&self, process: Uuid, stale: Duration) -> Result<Option<Claim>, Failure> {
        self.claim_next(process, stale).await
    }

    async fn restart(&self, claim: &Claim) -> Result<(), Stopped> {
        self.reset(claim).await
    }

    async fn look(&self, destination: &Destination) -> Result<Look, Failure> {
        self.look_up(destination).await
    }

    async fn create(&self, destination: &Destination, shape: &Shape) -> Result<(), Failure> {
        self.create_table(destination, shape).await
    }

    async fn write(
        &self,
        claim: &Claim,
        table: &Table,
        batch: &Batch,
        progress: &mut Progress,
        keep: Keep,
    ) -> Result<Option<String>, Stopped> {
        self.write_batch(claim, table, batch, progress, keep).await
    }

    async fn end(
        &self,
        claim: &Claim,
        progress: &Progress,
        outcome: &Outcome,
    ) -> Result<(), Stopped> {
        self.end_job(claim, progress, outcome).await
    }

    async fn release(&self, claim: &Claim) -> Result<(), Failure> {
        self.give_back(claim).await
    }

    async fn leave(&self, process: Uuid) -> Result<(), Failure> {
        self.remove_process(process).await
    }

    async fn forget(&self, kept: Duration) -> Result<(), Failure> {
        self.remove_old_jobs(kept).await
    }
}
