//! The fleet's tables, as a series of migrations of their own.

use lavra_db::Migration;

/// All that the fleet adds to a database that has the tasks' migrations.
pub const MIGRATIONS: &[Migration] = &[
    Migration::fixed(
        "fleet:001",
        "missions, workers, proxies, writers and their log",
        include_str!("../migrations/001_fleet.postgres.sql"),
        include_str!("../migrations/001_fleet.duckdb.sql"),
    ),
    Migration::fixed(
        "fleet:002",
        "an index of what ended when",
        include_str!("../migrations/002_ended.postgres.sql"),
        include_str!("../migrations/002_ended.duckdb.sql"),
    ),
    Migration::fixed(
        "fleet:003",
        "indexes for those who read the log",
        include_str!("../migrations/003_reading.postgres.sql"),
        include_str!("../migrations/003_reading.duckdb.sql"),
    ),
    Migration::fixed(
        "fleet:004",
        "who scraped and for how long, for the report on workers",
        include_str!("../migrations/004_scrapes.postgres.sql"),
        include_str!("../migrations/004_scrapes.duckdb.sql"),
    ),
    Migration::fixed(
        "fleet:005",
        "room beside an ad for its next version",
        include_str!("../migrations/005_ads.postgres.sql"),
        include_str!("../migrations/005_ads.duckdb.sql"),
    ),
];
