//! The interface's own tables, as a series of migrations of their own.

use lavra_db::Migration;

/// All that the interface adds to a database that has the tasks' migrations.
pub const MIGRATIONS: &[Migration] = &[Migration::fixed(
    "access:001",
    "API keys and sessions",
    include_str!("../migrations/001_access.postgres.sql"),
    include_str!("../migrations/001_access.duckdb.sql"),
)];
