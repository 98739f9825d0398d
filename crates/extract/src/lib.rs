#![doc = include_str!("../README.md")]

pub mod breaker;
pub mod client;
pub mod digest;
mod duckdb;
mod error;
pub mod event;
pub mod host;
pub mod limiter;
pub mod machine;
mod migrations;
pub mod missing;
pub mod model;
mod month;
pub mod plan;
mod postgres;
pub mod reading;
pub mod request;
mod run;
mod sink;
pub mod source;
pub mod store;
pub mod task;

pub use self::duckdb::DuckDb;
pub use self::postgres::Postgres;
pub use error::{Error, Result};
pub use migrations::migrations;
pub use month::{Month, NotAMonth};
pub use run::{Extractor, Settings};

/// The tables of `source` in a database, which have been migrated by [`migrations`].
pub fn store_of(database: &lavra_db::Database, source: &str) -> std::sync::Arc<dyn store::Store> {
    match database {
        lavra_db::Database::Duck(duck) => std::sync::Arc::new(DuckDb::new(duck.clone(), source)),
        lavra_db::Database::Postgres(pg) => std::sync::Arc::new(Postgres::new(pg.clone(), source)),
    }
}
