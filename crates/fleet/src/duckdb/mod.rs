//! The store on a DuckDB file. The writer thread is the lock: a job reads rows, has the machine
//! decide, and writes; nothing comes in between.
//!
//! Rows are read as JSON and written by the columns that changed, found by their key: an UPDATE
//! without RETURNING stays in its place. Sets travel as JSON text, times as microseconds. A job may
//! run twice, so times come from its caller; what it takes from the clock or the sequence a second
//! time (ids of log entries, tokens) was rolled back the first time.

mod condition;
mod glance;
mod lease;
mod log;
mod mission;
mod report;
mod rows;
mod setting;
mod step;
mod supervise;
mod thing;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::duckdb::{self, Connection, Params, Row};
use lavra_db::{Clock, Duck, micros, timestamp};
use lavra_tasks::model::{ProcessId, Token};
use serde::Serialize;

use crate::code::ErrorCode;
use crate::error::Result;
use crate::machine::Step;
use crate::machine::mission::Wish;
use crate::machine::worker::View;
use crate::model::{LogEntry, LogId, Mission, MissionId, Proxy, Worker, WorkerId, Writer};
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::settings::Adjustable;
use crate::store::{
    Assigned, Control, Counts, Edit, Edited, Filter, Leased, LogFilter, NewMission, NewProxy,
    NewWorker, NewWriter, Opened, Opening, Pace, Store, Thing, Wait, WriterLoad,
};

/// The fleet's tables in a DuckDB file.
#[derive(Clone, Debug)]
pub struct DuckDb {
    duck: Duck,
}

impl DuckDb {
    /// The fleet of a file that has been migrated.
    pub fn new(duck: Duck) -> Self {
        Self { duck }
    }

    /// As the tables keep it: whole microseconds.
    fn now(&self) -> Timestamp {
        timestamp(micros(self.duck.clock().now()))
    }

    /// Asks on a reading connection, and reads every row with `read`.
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
        let sql = sql.to_owned();
        let job = move |connection: &Connection| all(connection, &sql, params, read);
        Ok(self.duck.read(operation, job).await?)
    }
}

#[async_trait]
impl Store for DuckDb {
    fn clock(&self) -> &Clock {
        self.duck.clock()
    }

    async fn add_missions(&self, missions: Vec<NewMission>, again: bool) -> Result<Vec<MissionId>> {
        self.fill_bank(missions, again).await
    }

    async fn wish(&self, filter: &Filter, wish: Wish, by: &str) -> Result<Vec<MissionId>> {
        self.grant(filter, wish, by).await
    }

    async fn missions(
        &self,
        filter: &Filter,
        before: Option<MissionId>,
        limit: usize,
    ) -> Result<Vec<Mission>> {
        self.newest_missions(filter, before, limit).await
    }

    async fn counts(&self) -> Result<Counts> {
        self.count_missions().await
    }

    async fn count(&self, filter: &Filter) -> Result<i64> {
        self.how_many(filter).await
    }

    async fn stamp(&self) -> Result<String> {
        self.stamped().await
    }

    async fn pace(&self, since: Timestamp, step: Duration) -> Result<Vec<Pace>> {
        self.ended(since, step).await
    }

    async fn failures_by_code(&self, since: Timestamp) -> Result<Vec<(ErrorCode, i64)>> {
        self.failed(since).await
    }

    async fn waits(&self) -> Result<Vec<Wait>> {
        self.waiting().await
    }

    async fn writer_loads(&self, since: Timestamp) -> Result<Vec<WriterLoad>> {
        self.loads(since).await
    }

    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>> {
        self.entries(filter).await
    }

    async fn failures(
        &self,
        window: Window,
        before: Option<(Timestamp, LogId)>,
        limit: usize,
    ) -> Result<Vec<Failure>> {
        self.failures_of(window, before, limit).await
    }

    async fn performance(&self, window: Window) -> Result<Vec<Performance>> {
        self.performance_of(window).await
    }

    async fn troubled_proxies(&self, window: Window) -> Result<Vec<ProxyTrouble>> {
        self.troubles_of(window).await
    }

    async fn add_worker(&self, worker: NewWorker) -> Result<Edited> {
        self.new_worker(worker).await
    }

    async fn add_proxy(&self, proxy: NewProxy) -> Result<Edited> {
        self.new_proxy(proxy).await
    }

    async fn add_writer(&self, writer: NewWriter) -> Result<Edited> {
        self.new_writer(writer).await
    }

    async fn edit(&self, thing: &Thing, edit: Edit) -> Result<Edited> {
        self.change_thing(thing, edit).await
    }

    async fn remove(&self, thing: &Thing) -> Result<Edited> {
        self.remove_thing(thing).await
    }

    async fn tested(&self, thing: &Thing, ok: bool) -> Result<()> {
        self.note_test(thing, ok).await
    }

    async fn secret(&self, thing: &Thing) -> Result<Option<String>> {
        self.secret_of(thing).await
    }

    async fn workers(&self) -> Result<Vec<Worker>> {
        self.select("read the workers", &rows::by_age::<Worker>(), (), rows::read).await
    }

    async fn proxies(&self) -> Result<Vec<Proxy>> {
        self.select("read the proxies", &rows::by_age::<Proxy>(), (), rows::read).await
    }

    async fn writers(&self) -> Result<Vec<Writer>> {
        self.select("read the writers", &rows::by_age::<Writer>(), (), rows::read).await
    }

    async fn settings(&self) -> Result<Adjustable> {
        self.adjustable().await
    }

    async fn set_settings(&self, settings: Adjustable) -> Result<()> {
        self.adjust(settings).await
    }

    async fn control(&self) -> Result<Control> {
        self.orders().await
    }

    async fn set_control(&self, control: Control) -> Result<()> {
        self.order(control).await
    }

    async fn lease(&self, process: ProcessId, stale: Duration) -> Result<Leased> {
        self.take_share(process, stale).await
    }

    async fn release(&self, process: ProcessId, workers: Vec<WorkerId>) -> Result<()> {
        self.give_back(process, workers).await
    }

    async fn leave(&self, process: ProcessId) -> Result<()> {
        self.give_all_back(process).await
    }

    async fn view(&self, worker: &WorkerId, token: Token) -> Result<Option<View>> {
        self.view_of(worker, token).await
    }

    async fn storing(&self, mission: &MissionId, token: Token) -> Result<Option<Mission>> {
        self.held_mission(mission, token).await
    }

    async fn open(&self, opening: Opening) -> Result<Opened> {
        self.begin_session(opening).await
    }

    async fn assign(&self, worker: &WorkerId, token: Token) -> Result<Assigned> {
        self.take_mission(worker, token).await
    }

    async fn apply(&self, steps: Vec<Step>) -> Result<Vec<bool>> {
        self.write_steps(steps).await
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

/// The first row, if there is one.
fn first<T, P: Params>(
    connection: &Connection,
    sql: &str,
    params: P,
    read: impl FnMut(&Row<'_>) -> duckdb::Result<T>,
) -> duckdb::Result<Option<T>> {
    Ok(all(connection, sql, params, read)?.into_iter().next())
}

/// Whether there is a row.
fn exists<P: Params>(connection: &Connection, sql: &str, params: P) -> duckdb::Result<bool> {
    Ok(first(connection, sql, params, |_| Ok(()))?.is_some())
}

/// Runs one statement that returns nothing, and says how many rows it changed.
fn run<P: Params>(connection: &Connection, sql: &str, params: P) -> duckdb::Result<usize> {
    connection.prepare_cached(sql)?.execute(params)
}

/// A set as the JSON text that a statement takes.
fn set<T: Serialize>(rows: &[T]) -> duckdb::Result<String> {
    serde_json::to_string(rows).map_err(wrong)
}

fn wrong(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> duckdb::Error {
    duckdb::Error::ToSqlConversionFailure(error.into())
}

/// A limit that DuckDB takes. It stands in the statement: with a parameter, all rows are sorted.
fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
