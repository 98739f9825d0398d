//! The store on PostgreSQL. Each verb is one statement, so one round trip and one transaction, and
//! works through a pooler. Several processes share a plan by claiming its rows.

mod look;
mod read;
mod write;

use lavra_db::tokio_postgres::{self, Row};
use lavra_db::{Clock, Param, Pg};

use crate::error::{Error, Result};
use crate::store::Store;

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

impl Store for Postgres {
    fn clock(&self) -> &Clock {
        self.pg.clock()
    }
}
