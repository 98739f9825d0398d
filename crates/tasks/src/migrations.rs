//! The schema of the tasks, for both engines.

use lavra_db::{GROUND, Migration};

/// All the migrations that tasks need, in order.
pub const MIGRATIONS: &[Migration] = &[
    GROUND,
    Migration::fixed(
        "001_initial_schema",
        "tasks, events, results, and what delivers them",
        include_str!("../migrations/001_tasks.postgres.sql"),
        include_str!("../migrations/001_tasks.duckdb.sql"),
    ),
];
