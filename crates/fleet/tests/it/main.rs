//! The fleet's store on real servers, behind a pooler, on a file and in memory. Run it by `cargo xtask
//! test`.

#![allow(clippy::unwrap_used, reason = "what is absent here fails the test, as it should")]

mod contract;
mod flat;
mod orchestrator;
mod same_as_memory;
mod schema;
mod service;
mod support;
