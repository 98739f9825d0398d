//! Everything a writer does that someone outside it could notice.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers as well")]

mod api;
mod contract;
mod database;
mod failed;
mod fleet;
mod house;
mod keys;
mod lost;
mod made;
mod packed;
mod refused;
mod restart;
mod splitting;
mod support;
mod values;
