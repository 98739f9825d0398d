//! The schema of the fleet, for both engines.

use lavra_db::Migration;

/// What the fleet needs after the tasks' migrations.
pub const MIGRATIONS: &[Migration] = &[Migration::fixed(
    "fleet:001",
    "missions, workers, proxies, writers, and their log",
    include_str!("../migrations/001_fleet.postgres.sql"),
    include_str!("../migrations/001_fleet.duckdb.sql"),
)];
