#![doc = include_str!("../README.md")]

pub mod access;
mod app;
mod body;
mod dead_letters;
mod deadline;
mod docs;
mod events;
mod extractions;
mod feed;
mod fleet;
mod guard;
mod headers;
mod health;
mod limit;
mod metrics;
mod migrations;
mod once;
mod openapi;
mod path;
mod problem;
mod query;
mod router;
mod schedules;
mod secure;
mod serve;
mod sheet;
mod sql;
mod tasks;
mod time;
mod types;
mod ui;
mod verbs;
mod webhooks;
mod wire;
mod workers;

pub use app::App;
pub use metrics::measures;
pub use migrations::MIGRATIONS;
pub use problem::{Code, Problem};
pub use router::router;
pub use serve::serve;

/// Does what takes a moment before the first router can be made, for those who have another thread.
pub fn warm_up() {
    metrics::recorder();
}
