//! The tasks on real engines: a DuckDB file, a PostgreSQL server, and the same behind PgBouncer.
//! Run it by `cargo xtask test`.

#![allow(clippy::unwrap_used, reason = "what is absent here fails the test, as it should")]

mod contract;
mod lints;
mod live;
mod support;
