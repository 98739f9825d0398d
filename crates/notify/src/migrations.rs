//! The tables of the webhooks, as a series of migrations of their own.

use lavra_db::Migration;

/// All that webhooks add to a database that has the migrations of the tasks and the fleet.
pub const MIGRATIONS: &[Migration] = &[Migration::fixed(
    "notify:001",
    "webhooks, and how far they have been told",
    include_str!("../migrations/001_notify.postgres.sql"),
    include_str!("../migrations/001_notify.duckdb.sql"),
)];
