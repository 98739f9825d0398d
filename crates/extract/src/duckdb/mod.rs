//! The store in a DuckDB file. The writer thread is the lock: a job reads the tokens and then
//! writes, and nothing comes in between.

mod look;
mod read;
mod write;

use jiff::civil::Date;
use lavra_db::duckdb::{self, Connection, Params, Row};
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
