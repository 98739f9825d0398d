#![doc = include_str!("../README.md")]

mod artefact;
mod backoff;
mod bell;
pub mod builtin;
mod create;
mod cron;
mod duckdb;
mod error;
pub mod handler;
pub mod keeper;
pub mod machine;
mod migrations;
pub mod model;
pub mod outbound;
mod postgres;
mod rabbit;
pub mod runner;
mod service;
pub mod store;
mod wake;

pub use artefact::{Artefacts, Pointer};
pub use backoff::Backoff;
pub use bell::Ears;
pub use create::{MAX_METADATA, NewTask, check_kind};
pub use cron::next_time;
pub use duckdb::DuckDb;
pub use error::{Error, Result};
pub use handler::{Failure, Handler, Outcome, Policy, Registry};
pub use migrations::MIGRATIONS;
pub use postgres::Postgres;
pub use rabbit::{Broker, Config as BrokerConfig, Health as BrokerHealth};
pub use runner::{Config as RunnerConfig, Context, Pulse, Runner, Stop};
pub use service::{Created, Redriven, STOP_WITHIN, Settings, Tasks};

use std::sync::Arc;

/// The store of tasks in an open database.
pub async fn store(database: &lavra_db::Database) -> Result<Arc<dyn store::Store>> {
    Ok(match database {
        lavra_db::Database::Postgres(pg) => Arc::new(Postgres::new(pg.clone())),
        lavra_db::Database::Duck(duck) => Arc::new(DuckDb::open(duck.clone()).await?),
    })
}
