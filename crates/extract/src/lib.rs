#![doc = include_str!("../README.md")]

pub mod audit;
pub mod breaker;
pub mod client;
pub mod digest;
mod duckdb;
mod error;
pub mod event;
pub mod export;
pub mod forecast;
pub mod host;
pub mod limiter;
pub mod look;
pub mod machine;
mod memory;
mod migrations;
pub mod missing;
pub mod model;
mod month;
pub mod plan;
mod postgres;
pub mod reading;
pub mod records;
pub mod request;
mod run;
mod sink;
pub mod source;
mod sources;
pub mod store;
pub mod task;
pub mod views;

pub use self::duckdb::DuckDb;
pub use self::postgres::Postgres;
pub use error::{Error, Result};
pub use memory::Memory;
pub use migrations::migrations;
pub use month::{Month, NotAMonth};
pub use run::{Extractor, Settings};
pub use sources::{Known, has_tables, migrations_here, sources};

/// The tables of `source` in a database, which have been migrated by [`migrations`].
pub fn store_of(database: &lavra_db::Database, source: &str) -> std::sync::Arc<dyn store::Store> {
    match database {
        lavra_db::Database::Duck(duck) => std::sync::Arc::new(DuckDb::new(duck.clone(), source)),
        lavra_db::Database::Postgres(pg) => std::sync::Arc::new(Postgres::new(pg.clone(), source)),
    }
}
