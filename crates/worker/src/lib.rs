#![doc = include_str!("../README.md")]

mod api;
mod ask;
mod config;
mod disk;
mod error;
mod guard;
mod jobs;
mod keeper;
mod machine;
mod model;
mod plan;
mod proxy;
mod refusal;
mod results;
mod scrape;
mod serve;
mod sessions;
mod state;
mod wire;
mod worker;

pub use config::{Config, Timing, ads};
pub use error::{Error, Result};
pub use model::{JobId, JobStatus, SessionStatus};
pub use worker::Worker;
