//! The tests of extraction, against real databases and a world on loopback, and under virtual time.

#![allow(clippy::unwrap_used, reason = "what is absent here fails the test, as it should")]

mod after;
mod again;
mod contract;
mod looking;
mod paper;
mod runs;
mod simulated;
mod stored;
mod support;
mod whole_world;
