//! The store on a DuckDB file. Each verb is one closure on the writer thread, which is the lock:
//! it reads by id, decides, and writes sets.
//!
//! Sets travel as JSON text (lists cannot be bound), times as microseconds: written by
//! `make_timestamp`, read and compared by `epoch_us`, because arithmetic on TIMESTAMPTZ needs an
//! extension that a build may lack. A closure may run twice, so ids and the time come from
//! outside of it; the number of its transaction comes from inside, in the order of the commits.

mod append;
mod change;
mod claim;
mod create;
mod existing;
mod history;
mod letter;
mod look;
mod outbox;
mod process;
mod read;
mod schedule;
mod settle;
mod write;

use std::time::Duration;

use lavra_db::duckdb::{self, Connection, Params, Row};
use lavra_db::statement::{all, run, set};
use lavra_db::{Clock, Duck, micros};

use crate::error::Result;
use crate::store::Store;

/// Tasks in a DuckDB file.
#[derive(Clone, Debug)]
pub struct DuckDb {
    duck: Duck,
}

impl Store for DuckDb {
    fn clock(&self) -> &Clock {
        self.duck.clock()
    }
}

impl DuckDb {
    /// The tasks of a file that has been migrated. New tokens and new transactions are greater
    /// than any that the file holds, whatever the clock says.
    pub async fn open(duck: Duck) -> Result<Self> {
        let store = Self { duck };
        let sql = "SELECT greatest((SELECT coalesce(max(token), 0) FROM kodus_workflow.tasks),
                       (SELECT coalesce(max(transaction), 0) FROM kodus_workflow.task_events))";
        for seen in store.select("find the last token", sql, (), |row| row.get(0)).await? {
            store.duck.sequence_beyond(seen);
        }
        Ok(store)
    }

    /// The statement with this file's schema.
    fn sql(&self, sql: &str) -> String {
        self.duck.schema().apply(sql).into_owned()
    }

    fn now(&self) -> i64 {
        micros(self.duck.clock().now())
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
        let sql = self.sql(sql);
        let job = move |connection: &Connection| all(connection, &sql, params, read);
        Ok(self.duck.read(operation, job).await?)
    }
}

fn micros_of(duration: Duration) -> i64 {
    duration.as_micros().try_into().unwrap_or(i64::MAX)
}
