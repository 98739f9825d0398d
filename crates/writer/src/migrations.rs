//! The writer's tables, as a series of migrations of their own: they stand beside the rows that are
//! written, in whatever database that is.

use lavra_db::Migration;

/// All that the writer adds to a database, with or without the rest of lavra in it.
pub const MIGRATIONS: &[Migration] = &[Migration::fixed(
    "writer:001",
    "jobs of the writer and the items that failed",
    include_str!("../migrations/001_writer.postgres.sql"),
    include_str!("../migrations/001_writer.duckdb.sql"),
)];
