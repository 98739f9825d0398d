#![doc = include_str!("../README.md")]

pub mod audit;
pub mod breaker;
pub mod client;
pub mod digest;
mod duckdb;
mod error;
pub mod event;
pub mod export;
pub mod host;
pub mod limiter;
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

/// The tables of `source` in a database, which have been migrated by [`migrations`].
pub fn store_of(database: &lavra_db::Database, source: &str) -> std::sync::Arc<dyn store::Store> {
    match database {
        lavra_db::Database::Duck(duck) => std::sync::Arc::new(DuckDb::new(duck.clone(), source)),
        lavra_db::Database::Postgres(pg) => std::sync::Arc::new(Postgres::new(pg.clone(), source)),
    }
}

/// Whether a database has tables of `source`: whether something of it was ever extracted there.
pub async fn has_tables(database: &lavra_db::Database, source: &str) -> Result<bool> {
    let table = format!("{source}_extraction_tasks");
    let sql = "SELECT count(*) FROM information_schema.tables
               WHERE table_schema = 'psa' AND table_name = $1";
    let operation = "look for a source";
    let count: i64 = match database {
        lavra_db::Database::Duck(duck) => {
            let count = move |connection: &lavra_db::duckdb::Connection| {
                connection.query_row(sql, [table], |row| row.get(0))
            };
            duck.read(operation, count).await?
        }
        lavra_db::Database::Postgres(pg) => {
            let params = [(&table as _, lavra_db::tokio_postgres::types::Type::TEXT)];
            let rows = pg.query(operation, sql, &params).await?;
            let count = rows.first().map(|row| row.try_get(0)).transpose();
            let failed = |source| lavra_db::Error::Postgres { operation, source };
            count.map_err(failed)?.unwrap_or(0)
        }
    };
    Ok(count > 0)
}
