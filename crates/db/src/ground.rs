//! The migration that everything else stands on: leases and secrets.

use crate::Migration;

/// First in every list of migrations that is given to [`crate::migrate`].
pub const GROUND: Migration = Migration::fixed(
    "000_ground",
    "leases, and the schema of sealed secrets",
    include_str!("../migrations/000_ground.postgres.sql"),
    include_str!("../migrations/000_ground.duckdb.sql"),
);
