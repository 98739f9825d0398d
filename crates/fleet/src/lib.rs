#![doc = include_str!("../README.md")]

pub mod api;
pub mod bank;
mod bell;
pub mod code;
mod error;
pub mod keys;
pub mod machine;
pub mod memory;
pub mod model;
pub mod orchestrator;
mod probe;
pub mod service;
pub mod settings;
pub mod store;
mod task;
mod words;

pub use bell::Bell;
pub use error::{Error, Result};
pub use orchestrator::Orchestrator;
pub use service::Fleet;
pub use task::{FleetRun, RunOrder};
pub use words::UnknownWord;
