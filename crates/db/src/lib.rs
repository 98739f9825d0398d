#![doc = include_str!("../README.md")]

mod address;
mod ask;
mod clock;
pub mod door;
mod duck;
mod error;
mod ground;
mod hex;
mod idempotency;
mod lease;
mod migrate;
mod postgres;
mod schema;
mod secret;
mod target;
mod tls;

pub use address::is_public;
pub use ask::Answer;
pub use clock::Clock;
pub use duck::{Duck, Holder, Options as DuckOptions, lock_holder, micros, statement, timestamp};
pub use error::{Error, Refusal, Result};
pub use ground::GROUND;
pub use hex::hex;
pub use idempotency::{IDEMPOTENCY, IdempotencyKeys, Reserved, key_as_said, key_of};
pub use lease::{Lease, Leases};
pub use migrate::{Applied, Migration, migrate, print as print_migrations, unapplied};
pub use postgres::{CopyIn, Copying, Listener, Param, Pg, Transaction};
pub use schema::Schema;
pub use secret::{Keyring, Secrets};
pub use target::{Environment, Target};
pub use tls::tls;

/// The crate whose `Connection` the closures of [`Duck::write`] and [`Duck::read`] receive.
pub use duckdb;
/// The types of the parameters that [`Pg`] takes.
pub use tokio_postgres;

use std::time::Duration;

/// An open database: one file that this process owns, or a pool of connections to a server.
#[derive(Clone, Debug)]
pub enum Database {
    Duck(Duck),
    Postgres(Pg),
}

impl Database {
    /// Opens `target`. A PostgreSQL server that does not answer is tried again for `patience`
    /// before this gives up; a DuckDB file that another process holds is an error at once.
    pub async fn open(target: &Target, schema: Schema, patience: Duration) -> Result<Self> {
        Self::open_with(target, schema, patience, duck::Options::default()).await
    }

    /// The same; a file with these options.
    pub async fn open_with(
        target: &Target,
        schema: Schema,
        patience: Duration,
        options: duck::Options,
    ) -> Result<Self> {
        match target {
            Target::File(path) => {
                let path = path.clone();
                let opened =
                    tokio::task::spawn_blocking(move || Duck::open(&path, schema, options));
                Ok(Self::Duck(opened.await.map_err(Error::thread)??))
            }
            Target::Postgres(url) => Ok(Self::Postgres(Pg::connect(url, schema, patience).await?)),
        }
    }

    pub fn schema(&self) -> &Schema {
        match self {
            Self::Duck(duck) => duck.schema(),
            Self::Postgres(pg) => pg.schema(),
        }
    }

    /// The clock that decides: the server's, or, where this process owns the file, its own.
    pub fn clock(&self) -> &Clock {
        match self {
            Self::Duck(duck) => duck.clock(),
            Self::Postgres(pg) => pg.clock(),
        }
    }
}
