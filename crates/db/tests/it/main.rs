//! lavra-db against the real thing: files that are killed over, a disk that is full, a server, a
//! pooler. Run it by `cargo xtask test`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers as well")]

mod anew;
mod damaged_log;
mod disk;
mod group_commit;
mod holders;
mod idempotency;
mod kills;
mod leases;
mod memory;
mod migrations;
mod notifications;
mod postgres;
mod prepared;
mod questions;
mod secrets;
mod sequence;
mod server_clock;
mod support;
mod time_zone;
