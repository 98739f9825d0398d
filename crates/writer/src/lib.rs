#![doc = include_str!("../README.md")]

mod batch;
mod collect;
mod config;
mod decode;
mod duckdb;
mod failure;
mod guard;
mod infer;
mod key;
mod migrations;
mod model;
mod network;
mod order;
mod postgres;
mod row;
mod run;
mod secret;
mod service;
mod source;
pub mod split;
mod store;
mod table;
mod texts;
mod web;

pub use config::{Access, Config, Limits, Timing};
pub use failure::{Code, Failure};
pub use migrations::MIGRATIONS;
pub use model::{FailedItem, Job, JobId, Progress, Status};
pub use network::Network;
pub use order::{Order, Refused};
pub use row::Caps;
pub use service::Service;
pub use source::{Names, SystemNames};
pub use web::{listen_refusal, router};
