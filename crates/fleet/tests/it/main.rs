//! The fleet against its stores.

mod duckdb_speed;
mod same_as_memory;
