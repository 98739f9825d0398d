//! lavra-web behind a real socket, on real databases. Run it by `cargo xtask test`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers as well")]

mod all_events;
mod batches;
mod creation;
mod dead_letters;
mod example_worker;
mod extractions;
mod fleet;
mod guard;
mod health;
mod listing;
mod looking;
mod measures;
mod odd_inputs;
mod once;
mod openapi;
mod questions;
mod refusals;
mod reports;
mod schedules;
mod shutdown;
mod support;
mod task_stream;
mod verbs;
mod workers;
