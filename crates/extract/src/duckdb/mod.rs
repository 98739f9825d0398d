//! The store in a DuckDB file. The writer thread is the lock: a job reads the tokens and then
//! writes, and nothing comes in between.

mod look;
mod read;
mod write;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use async_trait::async_trait;
use jiff::civil::Date;
use lavra_db::duckdb::{self, Connection, Params, Row};
use lavra_db::{Clock, Duck, micros};
use serde::Serialize;
use uuid::Uuid;

use crate::error::Result;
use crate::model::{Cell, Extraction, ExtractionId, Page, PageFailure, Status, Stored, Window};
use crate::store::{Planned, Progress, Scope, Slice, Store, Volume, Want, Write, Written};

/// A source's tables in a DuckDB file.
#[derive(Clone, Debug)]
pub struct DuckDb {
    duck: Duck,
    source: String,
}

impl DuckDb {
    /// The tables of `source`, which have been migrated.
    pub fn new(duck: Duck, source: &str) -> Self {
        Self { duck, source: source.to_owned() }
    }

    /// The statement for this source and this file's schema.
    fn sql(&self, sql: &str) -> String {
        self.duck.schema().apply(sql).replace("{source}", &self.source)
    }

    fn now(&self) -> i64 {
        micros(self.duck.clock().now())
    }

    async fn select<T, P>(
        &self,
        operation: &'static str,
        sql: &str,
        params: P,
        read: fn(&Row<'_>) -> duckdb::Result<T>,
    ) -> Result<Vec<T>>
    where
        T: Send + 'static,
        P: Params + Send + 'static,
    {
        let sql = self.sql(sql);
        let job = move |connection: &Connection| all(connection, &sql, params, read);
        Ok(self.duck.read(operation, job).await?)
    }
}

#[async_trait]
impl Store for DuckDb {
    fn clock(&self) -> &Clock {
        self.duck.clock()
    }

    async fn plan(&self, tasks: Vec<Planned>) -> Result<usize> {
        let sql = self.sql(
            "INSERT INTO psa.{source}_extraction_tasks
                 (task_id, endpoint_name, data_date, created_at, updated_at)
             SELECT p.task_id, p.endpoint_name, p.data_date::DATE, make_timestamp($2), make_timestamp($2)
             FROM (SELECT unnest(from_json($1,
                 '[{\"task_id\":\"VARCHAR\",\"endpoint_name\":\"VARCHAR\",\"data_date\":\"VARCHAR\"}]'),
                 recursive := true)) p
             ON CONFLICT DO NOTHING RETURNING task_id",
        );
        let (set, now) = (set(&tasks)?, self.now());
        let job = move |tx: &Connection| all(tx, &sql, (&set, now), |_| Ok(()));
        Ok(self.duck.write("plan the extraction", job).await?.len())
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
        self.apply(writes).await
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

/// Runs one statement to its end, and reads every row with `read`.
fn all<T, P: Params>(
    connection: &Connection,
    sql: &str,
    params: P,
    read: impl FnMut(&Row<'_>) -> duckdb::Result<T>,
) -> duckdb::Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params, read)?;
    rows.collect()
}

/// A set as the JSON text that a statement takes.
fn set<T: Serialize>(rows: &[T]) -> Result<String> {
    serde_json::to_string(rows).map_err(|error| crate::Error::Unreadable(error.to_string()))
}

fn wrong(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> duckdb::Error {
    duckdb::Error::ToSqlConversionFailure(error.into())
}

fn date(text: &str) -> duckdb::Result<Date> {
    text.parse().map_err(wrong)
}
