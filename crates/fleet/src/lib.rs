#![doc = include_str!("../README.md")]

pub mod api;
pub mod code;
mod duckdb;
mod error;
pub mod machine;
pub mod memory;
mod migrations;
pub mod model;
pub mod postgres;
pub mod settings;
pub mod store;
mod words;

pub use self::duckdb::DuckDb;
pub use error::{Error, Result};
pub use migrations::MIGRATIONS;
pub use words::UnknownWord;
