//! The store in a DuckDB file. The writer thread is the lock: a job reads the tokens and then
//! writes, and nothing comes in between.

mod look;
mod read;
mod write;

use jiff::civil::Date;
use lavra_db::duckdb::{self, Connection, Params, Row};
use lavra_db::statement::{all, wrong};
use lavra_db::{Clock, Duck, micros};
use serde::Serialize;

use crate::error::Result;
use crate::store::Store;

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

impl Store for DuckDb {
    fn clock(&self) -> &Clock {
        self.duck.clock()
    }
}

/// A set as the JSON text that a statement takes.
fn set<T: Serialize>(rows: &[T]) -> Result<String> {
    serde_json::to_string(rows).map_err(|error| crate::Error::Unreadable(error.to_string()))
}

fn date(text: &str) -> duckdb::Result<Date> {
    text.parse().map_err(wrong)
}
