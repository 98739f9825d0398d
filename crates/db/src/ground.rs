//! The migration that everything else stands on: leases and secrets.

use crate::Migration;

/// First in every list of migrations that is given to [`crate::migrate`].
pub const GROUND: Migration = Migration {
    id: "000_ground",
    description: "leases, and the schema of sealed secrets",
    postgres: include_str!("../migrations/000_ground.postgres.sql"),
    duckdb: include_str!("../migrations/000_ground.duckdb.sql"),
};
