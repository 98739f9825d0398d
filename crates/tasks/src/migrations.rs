//! The schema of the tasks, for both engines.

use lavra_db::{GROUND, Migration};

/// All the migrations that tasks need, in order.
pub const MIGRATIONS: &[Migration] = &[
    GROUND,
    Migration {
        id: "001_initial_schema",
        description: "tasks, events, results, and what delivers them",
        postgres: include_str!("../migrations/001_tasks.postgres.sql"),
        duckdb: include_str!("../migrations/001_tasks.duckdb.sql"),
    },
];
