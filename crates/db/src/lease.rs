//! Lease rows with terms: who may do what only one process should do.
//!
//! A lease is a row with a holder and an end, by the store's clock. The term grows each time the
//! holder changes, so that a holder that was frozen past its end and woke can be told apart.

use std::time::Duration;

use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::{Database, Duck, Error, Pg, Result, micros};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    pub holder: Uuid,
    pub term: i64,
}

/// The leases of one database.
#[derive(Clone, Debug)]
pub struct Leases(Database);

impl Leases {
    pub fn new(database: Database) -> Self {
        Self(database)
    }

    /// Takes or renews `name` for `length`; `None` while another holds it.
    pub async fn acquire(
        &self,
        name: &str,
        holder: Uuid,
        length: Duration,
    ) -> Result<Option<Lease>> {
        let term = match &self.0 {
            Database::Postgres(pg) => acquire_postgres(pg, name, holder, length).await?,
            Database::Duck(duck) => acquire_duck(duck, name.to_owned(), holder, length).await?,
        };
        Ok(term.map(|term| Lease { name: name.to_owned(), holder, term }))
    }

    /// Gives a lease back, if it is still held in that term.
    pub async fn release(&self, lease: &Lease) -> Result<()> {
        match &self.0 {
            Database::Postgres(pg) => {
                let sql = "UPDATE kodus_workflow.leases SET expires_at = now()
                           WHERE name = $1 AND holder = $2 AND term = $3";
                let params = [
                    (&lease.name as _, Type::TEXT),
                    (&lease.holder as _, Type::UUID),
                    (&lease.term as _, Type::INT8),
                ];
                pg.query("release a lease", sql, &params).await?;
            }
            Database::Duck(duck) => {
                let lease = lease.clone();
                let now = micros(duck.clock().now());
                let sql = duck.sql(
                    "UPDATE kodus_workflow.leases SET expires_at = make_timestamp($1)
                     WHERE name = $2 AND (holder, term) = ($3, $4)",
                );
                duck.write("release a lease", move |tx| {
                    tx.execute(&sql, duckdb::params![now, lease.name, lease.holder, lease.term])
                })
                .await?;
            }
        }
        Ok(())
    }
}

async fn acquire_postgres(
    pg: &Pg,
    name: &str,
    holder: Uuid,
    length: Duration,
) -> Result<Option<i64>> {
    let operation = "take a lease";
    let sql = "INSERT INTO kodus_workflow.leases AS l (name, holder, term, expires_at)
               VALUES ($1, $2, 1, now() + make_interval(secs => $3))
               ON CONFLICT (name) DO UPDATE SET
                   holder = excluded.holder,
                   term = l.term + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 END,
                   expires_at = excluded.expires_at
               WHERE l.holder = excluded.holder OR l.expires_at <= now()
               RETURNING term";
    let seconds = length.as_secs_f64();
    let params =
        [(&name as _, Type::TEXT), (&holder as _, Type::UUID), (&seconds as _, Type::FLOAT8)];
    let rows = pg.query(operation, sql, &params).await?;
    let term = rows.first().map(|row| row.try_get(0)).transpose();
    term.map_err(|source| Error::Postgres { operation, source })
}

async fn acquire_duck(
    duck: &Duck,
    name: String,
    holder: Uuid,
    length: Duration,
) -> Result<Option<i64>> {
    let now = micros(duck.clock().now());
    let until = now + length.as_micros() as i64;
    let sql = duck.sql(
        "INSERT INTO kodus_workflow.leases AS l (name, holder, term, expires_at)
         VALUES ($1, $2, 1, make_timestamp($3))
         ON CONFLICT (name) DO UPDATE SET
             holder = excluded.holder,
             term = l.term + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 END,
             expires_at = excluded.expires_at
         WHERE l.holder = excluded.holder OR epoch_us(l.expires_at) <= $4
         RETURNING term",
    );
    duck.write("take a lease", move |tx| {
        let mut statement = tx.prepare_cached(&sql)?;
        let mut rows = statement.query(duckdb::params![name, holder, until, now])?;
        rows.next()?.map(|row| row.get(0)).transpose()
    })
    .await
}
