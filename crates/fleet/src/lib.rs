#![doc = include_str!("../README.md")]

pub mod api;
pub mod bank;
mod bell;
pub mod code;
mod duckdb;
mod error;
pub mod keys;
pub mod machine;
pub mod memory;
mod migrations;
pub mod model;
pub mod orchestrator;
mod postgres;
mod probe;
pub mod report;
pub mod service;
pub mod settings;
pub mod store;
mod task;
mod words;

pub use self::duckdb::DuckDb;
pub use self::postgres::Postgres;
pub use bell::Bell;
pub use error::{Error, Result};
pub use migrations::MIGRATIONS;
pub use orchestrator::Orchestrator;
pub use probe::TARGET as PROXY_TEST_URL;
pub use service::Fleet;
pub use task::{FleetRun, RunOrder};
pub use words::UnknownWord;
