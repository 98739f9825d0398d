//! The store on PostgreSQL. A verb is one statement, or one short transaction where it must look
//! before the machine decides; all of it works through a pooler in transaction mode.
//!
//! Rows travel as JSON, so the types of `model` are the only list of columns beside the tables.
//! Whoever locks rows of several tables does so in one order: workers, missions, proxies, each by
//! id. Locks are `FOR NO KEY UPDATE`: a log entry that refers to a mission does not wait for them.

mod claim;
mod conditions;
mod glance;
mod lease;
mod read;
mod report;
mod row;
mod settings;
mod step;
mod things;
mod wish;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::error::SqlState;
use lavra_db::tokio_postgres::types::FromSqlOwned;
use lavra_db::{Clock, Pg};
use lavra_tasks::model::{ProcessId, Token};

use crate::code::ErrorCode;
use crate::error::{Error, Result};
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

/// How long a statement over any number of missions may take.
const LONG: Duration = Duration::from_secs(10 * 60);

/// What waits for a worker; `m` is the mission. The index `idx_missions_next` says the same.
const IS_NEXT: &str =
    "m.status = 'queued' AND m.queued_at IS NOT NULL AND m.worker_data_url IS NULL";

/// Locks that are held to the end of a transaction.
#[derive(Clone, Copy, Debug)]
enum Lock {
    Missions = 1,
    Names = 2,
    Openings = 3,
    Leases = 4,
}

impl Lock {
    /// Any numbers will do, as long as every lavra uses the same.
    fn number(self) -> i64 {
        0x6c61_7672_6100 + self as i64
    }
}

const TAKE_LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

/// The fleet's tables on a PostgreSQL server, which have been migrated.
#[derive(Clone, Debug)]
pub struct Postgres {
    pg: Pg,
    /// The same, with the patience for many rows.
    patient: Pg,
}

impl Postgres {
    pub fn new(pg: Pg) -> Self {
        let patient = pg.clone().with_limit(LONG);
        Self { pg, patient }
    }
}

/// The value of a column, naming the operation in an error.
fn get<T: FromSqlOwned>(operation: &'static str, row: &Row, place: usize) -> Result<T> {
    let value = row.try_get(place);
    value.map_err(|source| Error::Database(lavra_db::Error::Postgres { operation, source }))
}

/// A text that is too long for its column, or holds what no text may, is the asker's mistake.
fn refused(error: lavra_db::Error) -> Error {
    let lavra_db::Error::Postgres { source, .. } = &error else { return error.into() };
    match source.code() {
        Some(&SqlState::STRING_DATA_RIGHT_TRUNCATION) => {
            let message = source.as_db_error().map_or("a text is too long", |db| db.message());
            Error::Invalid(message.to_owned())
        }
        Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE | &SqlState::UNTRANSLATABLE_CHARACTER) => {
            Error::Invalid("a text holds the character U+0000".into())
        }
        _ => error.into(),
    }
}

#[async_trait]
impl Store for Postgres {
    fn clock(&self) -> &Clock {
        self.pg.clock()
    }

    async fn add_missions(&self, missions: Vec<NewMission>, again: bool) -> Result<Vec<MissionId>> {
        self.add_to_the_bank(missions, again).await
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
        self.missions_of(filter, before, limit).await
    }

    async fn counts(&self) -> Result<Counts> {
        self.count().await
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
        self.log_of(filter).await
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
        self.new_worker(&worker).await
    }

    async fn add_proxy(&self, proxy: NewProxy) -> Result<Edited> {
        self.new_proxy(&proxy).await
    }

    async fn add_writer(&self, writer: NewWriter) -> Result<Edited> {
        self.new_writer(&writer).await
    }

    async fn edit(&self, thing: &Thing, edit: Edit) -> Result<Edited> {
        self.change(thing, &edit).await
    }

    async fn remove(&self, thing: &Thing) -> Result<Edited> {
        match thing {
            Thing::Worker(id) => self.remove_worker(id).await,
            Thing::Proxy(id) => self.remove_proxy(id).await,
            Thing::Writer(id) => self.remove_writer(id).await,
        }
    }

    async fn tested(&self, thing: &Thing, ok: bool) -> Result<()> {
        self.note_test(thing, ok).await
    }

    async fn secret(&self, thing: &Thing) -> Result<Option<String>> {
        self.secret_of(thing).await
    }

    async fn workers(&self) -> Result<Vec<Worker>> {
        self.all_workers().await
    }

    async fn proxies(&self) -> Result<Vec<Proxy>> {
        self.all_proxies().await
    }

    async fn writers(&self) -> Result<Vec<Writer>> {
        self.all_writers().await
    }

    async fn settings(&self) -> Result<Adjustable> {
        self.adjustable().await
    }

    async fn set_settings(&self, settings: Adjustable) -> Result<()> {
        self.adjust(settings).await
    }

    async fn control(&self) -> Result<Control> {
        self.mode().await
    }

    async fn set_control(&self, control: Control) -> Result<()> {
        self.set_mode(control).await
    }

    async fn lease(&self, process: ProcessId, stale: Duration) -> Result<Leased> {
        self.take_share(process, stale).await
    }

    async fn release(&self, process: ProcessId, workers: Vec<WorkerId>) -> Result<()> {
        self.give_back(process, &workers).await
    }

    async fn leave(&self, process: ProcessId) -> Result<()> {
        self.give_all_back(process).await
    }

    async fn view(&self, worker: &WorkerId, token: Token) -> Result<Option<View>> {
        self.view_of(worker, token).await
    }

    async fn storing(&self, mission: &MissionId, token: Token) -> Result<Option<Mission>> {
        self.mission_with(mission, token).await
    }

    async fn open(&self, opening: Opening) -> Result<Opened> {
        self.open_session(opening).await
    }

    async fn assign(&self, worker: &WorkerId, token: Token) -> Result<Assigned> {
        self.assign_next(worker, token).await
    }

    async fn apply(&self, steps: Vec<Step>) -> Result<Vec<bool>> {
        self.write_steps(&steps).await
    }
}
