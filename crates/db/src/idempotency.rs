//! Requests that may be repeated: each is carried out once under its caller's key, and answered
//! the same way ever after.
//!
//! A key is reserved before anything is done, so that of two that come at once one is told to wait.
//! Whoever dies in between leaves a reservation that ends by itself; the next one takes it over with
//! the same id, and what is made under that id is made once.

use std::time::Duration;

use duckdb::Connection;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::{Database, Duck, Error, Migration, Pg, Result, micros};

/// The table of the keys, as a series of its own. Stands on [`crate::GROUND`].
pub const IDEMPOTENCY: Migration = Migration::fixed(
    "idempotency:001",
    "requests that were carried out under a key, with their answers",
    include_str!("../migrations/idempotency.postgres.sql"),
    include_str!("../migrations/idempotency.duckdb.sql"),
);

/// How long a key is kept.
const KEPT: Duration = Duration::from_secs(48 * 3600);
/// How long a request may take before another one may carry it out.
const RESERVED: Duration = Duration::from_secs(120);

/// Stands between a caller and a key of theirs; no key may have it.
const OF: char = '\u{1f}';

/// What a key is kept as: the same key of another caller is another one. Whoever needs no credentials to
/// call is `None`.
pub fn key_of(caller: Option<&str>, key: &str) -> String {
    match caller {
        Some(caller) => format!("{caller}{OF}{key}"),
        None => key.to_owned(),
    }
}

/// The key as its caller wrote it.
pub fn key_as_said(kept: &str) -> &str {
    kept.split_once(OF).map_or(kept, |(_, key)| key)
}

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// For this request, which is to be carried out now, as this id.
    New(Uuid),
    /// For this request, which was answered so.
    Answered(String),
    /// For this request, which somebody else is carrying out.
    UnderWay,
    /// For another request.
    Reused,
}

/// The keys of one database.
#[derive(Clone, Debug)]
pub struct IdempotencyKeys(Database);

/// A row, as it was found.
struct Found {
    fingerprint: String,
    answer: Option<String>,
}

impl Found {
    fn reserved(self, fingerprint: &str) -> Reserved {
        match self.answer {
            _ if self.fingerprint != fingerprint => Reserved::Reused,
            Some(answer) => Reserved::Answered(answer),
            None => Reserved::UnderWay,
        }
    }
}

impl IdempotencyKeys {
    pub fn new(database: Database) -> Self {
        Self(database)
    }

    /// Reserves `key` for the request that `fingerprint` stands for, unless it is known.
    pub async fn reserve(&self, key: &str, fingerprint: &str) -> Result<Reserved> {
        let id = self.0.clock().new_id();
        match &self.0 {
            Database::Postgres(pg) => reserve_postgres(pg, key, fingerprint, id).await,
            Database::Duck(duck) => {
                reserve_duck(duck, key.to_owned(), fingerprint.to_owned(), id).await
            }
        }
    }

    /// Keeps the answer of a request that was carried out.
    pub async fn answer(&self, key: &str, id: Uuid, answer: &str) -> Result<()> {
        let operation = "keep an answer";
        let sql = "UPDATE lavra.idempotency_keys SET answer = $3 WHERE key = $1 AND id = $2";
        match &self.0 {
            Database::Postgres(pg) => {
                let params =
                    [(&key as _, Type::TEXT), (&id as _, Type::UUID), (&answer as _, Type::TEXT)];
                pg.query(operation, sql, &params).await?;
            }
            Database::Duck(duck) => {
                let (key, answer) = (key.to_owned(), answer.to_owned());
                let job = move |tx: &Connection| tx.execute(sql, duckdb::params![key, id, answer]);
                duck.write(operation, job).await?;
            }
        }
        Ok(())
    }

    /// Forgets a request that was refused: nothing was done, and it may come again otherwise.
    pub async fn release(&self, key: &str, id: Uuid) -> Result<()> {
        let operation = "release a key";
        let sql = "DELETE FROM lavra.idempotency_keys WHERE key = $1 AND id = $2";
        match &self.0 {
            Database::Postgres(pg) => {
                pg.query(operation, sql, &[(&key as _, Type::TEXT), (&id as _, Type::UUID)])
                    .await?;
            }
            Database::Duck(duck) => {
                let key = key.to_owned();
                let job = move |tx: &Connection| tx.execute(sql, duckdb::params![key, id]);
                duck.write(operation, job).await?;
            }
        }
        Ok(())
    }
}

async fn reserve_postgres(pg: &Pg, key: &str, fingerprint: &str, id: Uuid) -> Result<Reserved> {
    let operation = "reserve a key";
    let failed = |source| Error::Postgres { operation, source };
    let sql = "DELETE FROM lavra.idempotency_keys
               WHERE created_at < now() - make_interval(secs => $1)";
    let (kept, reserved) = (KEPT.as_secs_f64(), RESERVED.as_secs_f64());
    pg.query(operation, sql, &[(&kept as _, Type::FLOAT8)]).await?;
    let sql = "INSERT INTO lavra.idempotency_keys AS k
                   (key, fingerprint, id, created_at, reserved_until)
               VALUES ($1, $2, $3, now(), now() + make_interval(secs => $4))
               ON CONFLICT (key) DO UPDATE SET reserved_until = excluded.reserved_until
               WHERE k.answer IS NULL AND k.reserved_until <= now()
                 AND k.fingerprint = excluded.fingerprint
               RETURNING id";
    let params = [
        (&key as _, Type::TEXT),
        (&fingerprint as _, Type::TEXT),
        (&id as _, Type::UUID),
        (&reserved as _, Type::FLOAT8),
    ];
    let rows = pg.query(operation, sql, &params).await?;
    if let Some(row) = rows.first() {
        return Ok(Reserved::New(row.try_get(0).map_err(failed)?));
    }
    let sql = "SELECT fingerprint, answer FROM lavra.idempotency_keys WHERE key = $1";
    let rows = pg.query(operation, sql, &[(&key as _, Type::TEXT)]).await?;
    let Some(row) = rows.first() else {
        // Released in between: whoever comes next may have it.
        return Ok(Reserved::UnderWay);
    };
    let (known, answer) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    Ok(Found { fingerprint: known, answer }.reserved(fingerprint))
}

async fn reserve_duck(duck: &Duck, key: String, fingerprint: String, id: Uuid) -> Result<Reserved> {
    let now = micros(duck.clock().now());
    let (oldest, until) = (now - KEPT.as_micros() as i64, now + RESERVED.as_micros() as i64);
    duck.write("reserve a key", move |tx| {
        tx.execute(
            "DELETE FROM lavra.idempotency_keys WHERE created_at < make_timestamp($1)",
            [oldest],
        )?;
        let sql = "SELECT fingerprint, answer, id, epoch_us(reserved_until)
                   FROM lavra.idempotency_keys WHERE key = $1";
        let mut statement = tx.prepare_cached(sql)?;
        let mut rows = statement.query([&key])?;
        let Some(row) = rows.next()? else {
            drop(rows);
            tx.execute(
                "INSERT INTO lavra.idempotency_keys
                     (key, fingerprint, id, created_at, reserved_until)
                 VALUES ($1, $2, $3, make_timestamp($4), make_timestamp($5))",
                duckdb::params![key, fingerprint, id, now, until],
            )?;
            return Ok(Reserved::New(id));
        };
        let found = Found { fingerprint: row.get(0)?, answer: row.get(1)? };
        let (known, reserved_until): (Uuid, i64) = (row.get(2)?, row.get(3)?);
        drop(rows);
        match found.reserved(&fingerprint) {
            Reserved::UnderWay if reserved_until <= now => {
                tx.execute(
                    "UPDATE lavra.idempotency_keys SET reserved_until = make_timestamp($2)
                     WHERE key = $1",
                    duckdb::params![key, until],
                )?;
                Ok(Reserved::New(known))
            }
            other => Ok(other),
        }
    })
    .await
}
