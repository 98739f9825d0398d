//! The store on PostgreSQL. Each verb is one statement, so one round trip and one transaction,
//! and works through a pooler. Sets travel as arrays (`unnest`).

mod bulk;
mod claim;
mod create;
mod history;
mod letter;
mod look;
mod outbox;
mod process;
mod read;
mod schedule;
mod write;

pub(crate) use history::floor;

use lavra_db::tokio_postgres::{self, Row};
use lavra_db::{Clock, Param, Pg};
use uuid::Uuid;

use crate::bell;
use crate::error::{Error, Result};
use crate::store::Store;

/// Tasks on a PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Postgres {
    pg: Pg,
    /// Where the bell of other processes rings.
    channel: String,
}

impl Store for Postgres {
    fn clock(&self) -> &Clock {
        self.pg.clock()
    }
}

impl Postgres {
    pub fn new(pg: Pg) -> Self {
        let channel = bell::channel(&pg);
        Self { pg, channel }
    }

    /// Runs a statement over a set of `size`: a small one is planned once, a large one for itself.
    async fn query(
        &self,
        size: usize,
        operation: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>> {
        Ok(if size <= SMALL {
            self.pg.query_prepared(operation, sql, params).await?
        } else {
            self.pg.query(operation, sql, params).await?
        })
    }
}

/// What counts as a small set, whose statement is worth preparing.
const SMALL: usize = 128;

/// Reads every row with `read`, naming the operation in an error.
fn rows<T>(
    operation: &'static str,
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, tokio_postgres::Error>,
) -> Result<Vec<T>> {
    let all: Result<Vec<T>, _> = rows.iter().map(read).collect();
    all.map_err(|source| Error::Database(lavra_db::Error::Postgres { operation, source }))
}

fn uuids<T: Copy>(ids: &[T], inner: impl Fn(T) -> Uuid) -> Vec<Uuid> {
    ids.iter().map(|id| inner(*id)).collect()
}
