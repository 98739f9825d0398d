//! Everything a writer does that someone outside it could notice.

mod api;
mod contract;
mod database;
mod fleet;
mod packed;
mod refused;
mod restart;
mod splitting;
mod support;
