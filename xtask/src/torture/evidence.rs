//! How a torture ends. Whatever went wrong, what was found until then is told, and what tells of it is
//! kept: the logs of the processes and of the servers, and the tables as they are.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::processes::Processes;
use crate::interrupt::Interrupted;
use crate::output;
use crate::servers::{Postgres, RabbitMq};

/// All is well if nothing failed and nothing was found. If not, what `keep` keeps stays.
pub(super) fn judge(
    outcome: Result<()>,
    findings: &[String],
    seed: u64,
    keep: impl FnOnce() -> PathBuf,
) -> Result<()> {
    for finding in findings {
        output::data(finding);
    }
    let kept = || format!("seed {seed}; the logs and the tables are in {}", keep().display());
    match outcome {
        Ok(()) if findings.is_empty() => Ok(()),
        Ok(()) => bail!("{} things are not as they should be; {}", findings.len(), kept()),
        Err(error) if error.is::<Interrupted>() => Err(error),
        Err(error) => Err(error.context(kept())),
    }
}

/// Ends the processes, and says where their logs are, with all else.
pub(super) fn keep(
    processes: Processes,
    postgres: &Postgres,
    rabbitmq: &RabbitMq,
    database: &str,
) -> PathBuf {
    let place = processes.keep();
    if let Err(error) = write_tables(postgres, database, &place.join("tables")) {
        output::note(&format!("the tables cannot be kept: {error:#}"));
    }
    for (log, name) in [(postgres.log(), "postgres.log"), (rabbitmq.log(), "rabbitmq.log")] {
        if let Err(error) = std::fs::copy(log, place.join(name)) {
            output::note(&format!("{name} cannot be kept: {error}"));
        }
    }
    place
}

/// As far as the database still answers.
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
