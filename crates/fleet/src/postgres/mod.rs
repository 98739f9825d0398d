//! The store on PostgreSQL. A verb is one statement, or one short transaction where it must look
//! before the machine decides; all of it works through a pooler in transaction mode.
//!
//! Rows travel as JSON, so the types of `model` are the only list of columns beside the tables.
//! Whoever locks rows of several tables does so in one order: workers, missions, proxies, each by
//! id. Locks are `FOR NO KEY UPDATE`: a log entry that refers to a mission does not wait for them.

mod adjust;
mod condition;
mod glance;
mod lease;
mod read;
mod report;
mod row;
mod step;
mod supervise;
mod thing;
mod wish;

use std::time::Duration;

use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::error::SqlState;
use lavra_db::tokio_postgres::types::FromSqlOwned;
use lavra_db::{Clock, Pg};

use crate::error::{Error, Result};
use crate::store::Store;

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

impl Store for Postgres {
    fn clock(&self) -> &Clock {
        self.pg.clock()
    }
}
