//! Jobs and tables in a DuckDB file. The owner of the file is alone: no job is anyone else's.

mod catalog;
mod jobs;
mod sql;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::Duck;
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
pub(crate) struct DuckDb {
    duck: Duck,
    /// The only tables that are written, where there are any.
    tables: Vec<String>,
}

impl DuckDb {
    pub(crate) fn new(duck: Duck, config: &Config) -> Self {
        Self { duck, tables: config.access.tables.clone() }
    }
}

#[async_trait]
impl Store for DuckDb {
    async fn probe(&self) -> Result<(), Failure> {
        let look = |connection: &lavra_db::duckdb::Connection| connection.execute_batch("SELECT 1");
        Ok(self.duck.read("look whether the database answers", look).await?)
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

    /// Nobody else could miss it.
    async fn beat(&self, _: Uuid, _: Duration) -> Result<(), Failure> {
        Ok(())
    }

    async fn claim(&self, process: Uuid, _: Duration) -> Result<Option<Claim>, Failure> {
        self.claim_next(process).await
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

    async fn leave(&self, _: Uuid) -> Result<(), Failure> {
        Ok(())
    }

    async fn forget(&self, kept: Duration) -> Result<(), Failure> {
        self.remove_old_jobs(kept).await
    }
}
