//! The store on a DuckDB file. The writer thread is the lock: a job reads rows, has the machine
//! decide, and writes; nothing comes in between.
//!
//! Rows are read as JSON and written by the columns that changed, found by their key: an UPDATE
//! without RETURNING stays in its place. Sets travel as JSON text, times as microseconds. A job may
//! run twice, so times come from its caller; what it takes from the clock or the sequence a second
//! time (ids of log entries, tokens) was rolled back the first time.

mod adjust;
mod condition;
mod glance;
mod lease;
mod log;
mod read;
mod report;
mod row;
mod step;
mod supervise;
mod thing;
mod wish;

use jiff::Timestamp;
use lavra_db::duckdb::{self, Connection, Params, Row};
use lavra_db::statement::{all, change, exists, first, run, set, wrong};
use lavra_db::{Clock, Duck, micros, timestamp};

use crate::error::Result;
use crate::store::Store;

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

impl Store for DuckDb {
    fn clock(&self) -> &Clock {
        self.duck.clock()
    }
}

/// A limit that DuckDB takes. It stands in the statement: with a parameter, all rows are sorted.
fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
