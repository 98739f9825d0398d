//! The contract of the store: each behaviour once, run on every engine.

mod cancel;
mod claim;
mod create;
mod dead_letter;
mod events;
mod idempotency;
mod list;
mod look;
mod outbox;
mod process;
mod progress;
mod retention;
mod retry;
mod schedule;
mod schema;
mod stream;
mod tokens;
mod types;
mod values;
mod write;
