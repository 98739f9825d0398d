//! What is kept when something is wrong: the logs, and the tables as they are.

use std::path::Path;

use anyhow::Result;

use crate::output;
use crate::servers::Postgres;

/// The tables as files beside the logs, as far as the database still answers.
pub(super) fn keep_tables(postgres: &Postgres, database: &str, place: &Path) {
    if let Err(error) = write_tables(postgres, database, &place.join("tables")) {
        output::note(&format!("the tables cannot be kept: {error:#}"));
    }
}

fn write_tables(postgres: &Postgres, database: &str, place: &Path) -> Result<()> {
    std::fs::create_dir_all(place)?;
    let tables = postgres.sql(
        database,
        "SELECT schemaname || '.' || tablename FROM pg_tables
         WHERE schemaname NOT IN ('pg_catalog', 'information_schema')",
    )?;
    for table in tables.lines() {
        let copy = format!("COPY (SELECT * FROM {table}) TO STDOUT WITH (FORMAT csv, HEADER)");
        std::fs::write(place.join(format!("{table}.csv")), postgres.sql(database, &copy)?)?;
    }
    Ok(())
}
