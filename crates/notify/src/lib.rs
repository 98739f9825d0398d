#![doc = include_str!("../README.md")]

mod deliver;
mod destination;
mod duckdb;
mod error;
mod fact;
mod migrations;
pub mod model;
mod postgres;
mod send;
mod service;
mod sign;
pub mod store;
pub mod watch;

pub use self::duckdb::DuckDb;
pub use self::postgres::Postgres;
pub use deliver::{Delivery, POLICY};
pub use error::{Error, Result};
pub use migrations::MIGRATIONS;
pub use send::Timing;
pub use service::{Changes, NewWebhook, Sent, Webhooks};
pub use sign::sign;

#[cfg(test)]
mod documented;

/// Runs what the page about webhooks has in Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/webhooks.md")]
pub struct Page;

use std::sync::Arc;
use std::time::Duration;

/// An entry of the log is at most so much older than the moment at which its transaction began to
/// write: it may have waited for a connection.
pub const LATE: Duration = Duration::from_secs(300);

/// So long nobody must have found the pool of proxies exhausted for it to be told again.
const EPISODE: Duration = Duration::from_secs(300);

/// The webhooks of a database that has been migrated, and what there is to tell them.
pub fn store_of(database: &lavra_db::Database, late: Duration) -> Arc<dyn store::Store> {
    match database {
        lavra_db::Database::Duck(duck) => Arc::new(DuckDb::new(duck.clone(), late)),
        lavra_db::Database::Postgres(pg) => Arc::new(Postgres::new(pg.clone(), late)),
    }
}
