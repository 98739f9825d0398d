//! lavra-web behind a real socket, on real databases. Run it by `cargo xtask test`.

mod all_events;
mod batches;
mod creation;
mod dead_letters;
mod example_worker;
mod guard;
mod health;
mod listing;
mod looking;
mod measures;
mod openapi;
mod refusals;
mod schedules;
mod shutdown;
mod support;
mod task_stream;
mod verbs;
mod workers;
