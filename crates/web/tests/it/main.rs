//! lavra-web behind a real socket, on real databases. Run it by `cargo xtask test`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers as well")]

mod access_store;
mod all_events;
mod attempts;
mod batches;
mod creation;
mod dead_letters;
mod example_worker;
mod extractions;
mod fleet;
mod gate;
mod guard;
mod health;
mod keys;
mod listing;
mod looking;
mod measures;
mod odd_inputs;
mod once;
mod openapi;
mod questions;
mod refusals;
mod reports;
mod roles;
mod schedules;
mod secrets;
mod sessions;
mod shutdown;
mod support;
mod task_stream;
mod ui;
mod verbs;
mod webhooks;
mod workers;
