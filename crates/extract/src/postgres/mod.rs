//! The store on PostgreSQL. Each verb is one statement, so one round trip and one transaction, and
//! works through a pooler. Several processes share a plan by claiming its rows.

mod look;
mod read;
mod write;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use async_trait::async_trait;
use jiff::civil::Date;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::tokio_postgres::{self, Row};
use lavra_db::{Clock, Param, Pg};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::model::{Cell, Extraction, ExtractionId, Page, PageFailure, Status, Stored, Window};
use crate::store::{Planned, Progress, Scope, Slice, Store, Volume, Want, Write, Written};

/// A source's tables on a PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Postgres {
    pg: Pg,
    source: String,
}

impl Postgres {
    /// The tables of `source`, which have been migrated.
    pub fn new(pg: Pg, source: &str) -> Self {
        Self { pg, source: source.to_owned() }
    }

    /// Runs the statement for this source, and reads every row with `read`.
    async fn query<T>(
        &self,
        operation: &'static str,
        sql: &str,
        params: &[Param<'_>],
        read: impl Fn(&Row) -> Result<T, tokio_postgres::Error>,
    ) -> Result<Vec<T>> {
        let sql = sql.replace("{source}", &self.source);
        let rows = self.pg.query(operation, &sql, params).await?;
        let all: Result<Vec<T>, _> = rows.iter().map(read).collect();
        all.map_err(|source| Error::Database(lavra_db::Error::Postgres { operation, source }))
    }
}

#[async_trait]
impl Store for Postgres {
    fn clock(&self) -> &Clock {
        self.pg.clock()
    }

    async fn plan(&self, tasks: Vec<Planned>) -> Result<usize> {
        let sql = "INSERT INTO psa.{source}_extraction_tasks (task_id, endpoint_name, data_date)
                   SELECT * FROM unnest($1::text[], $2::text[], $3::date[])
                   ON CONFLICT DO NOTHING RETURNING task_id";
        let ids: Vec<&str> = tasks.iter().map(|task| task.task_id.0.as_str()).collect();
        let names: Vec<&str> = tasks.iter().map(|task| task.endpoint_name.as_str()).collect();
        let dates: Vec<Date> = tasks.iter().map(|task| task.data_date).collect();
        let params = [
            (&ids as _, Type::TEXT_ARRAY),
            (&names as _, Type::TEXT_ARRAY),
            (&dates as _, Type::DATE_ARRAY),
        ];
        Ok(self.query("plan the extraction", sql, &params, |_| Ok(())).await?.len())
    }

    async fn candidates(
        &self,
        scope: &Scope,
        want: Want,
        stale: Duration,
        limit: usize,
    ) -> Result<Vec<Extraction>> {
        self.candidates_of(scope, want, stale, limit).await
    }

    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        self.apply(&writes).await
    }

    async fn task(&self, id: &ExtractionId) -> Result<Option<Extraction>> {
        self.one(id).await
    }

    async fn tasks(&self, scope: &Scope) -> Result<Vec<Extraction>> {
        self.all_of(scope).await
    }

    async fn progress(&self, scope: &Scope) -> Result<Vec<Progress>> {
        self.progress_of(scope).await
    }

    async fn windows(&self, id: &ExtractionId) -> Result<Vec<Window>> {
        self.windows_of(id).await
    }

    async fn stored(&self, id: &ExtractionId) -> Result<Vec<Stored>> {
        self.stored_of(id).await
    }

    async fn pages(&self, id: &ExtractionId) -> Result<Vec<Page>> {
        self.pages_of(id).await
    }

    async fn bodies(
        &self,
        id: &ExtractionId,
        responses: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, Option<String>)>> {
        self.bodies_of(id, responses).await
    }

    async fn volume(&self) -> Result<Volume> {
        self.whole_volume().await
    }

    async fn statuses(&self) -> Result<BTreeMap<Status, i64>> {
        self.count_statuses().await
    }

    async fn progress_slice(&self, scope: &Scope, slice: &Slice) -> Result<Vec<Progress>> {
        self.slice_of(scope, slice).await
    }

    async fn grid(&self, scope: &Scope) -> Result<Vec<Cell>> {
        self.grid_of(scope).await
    }

    async fn pages_after(&self, id: &ExtractionId, after: i64, limit: usize) -> Result<Vec<Page>> {
        self.pages_above(id, after, limit).await
    }

    async fn pages_named(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<Page>> {
        self.pages_of_numbers(id, pages).await
    }

    async fn missing_after(
        &self,
        id: &ExtractionId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RangeInclusive<i64>>> {
        self.missing_above(id, after, limit).await
    }

    async fn missing_count(&self, id: &ExtractionId) -> Result<i64> {
        self.count_missing(id).await
    }

    async fn page_failures(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<PageFailure>> {
        self.failures_of(id, pages).await
    }

    async fn opening(
        &self,
        id: &ExtractionId,
        response: Uuid,
        most: usize,
    ) -> Result<Option<String>> {
        self.opening_of(id, response, most).await
    }

    async fn distrust(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<()> {
        self.forget(id, pages).await
    }
}
