//! How the file is opened: from an in-memory instance, by ATTACH.
//!
//! Opened directly, a file whose log holds an ALTER on a table with a function in a default can
//! never be opened again. Attached, it replays. Storage version 1.2.0 compresses long text; time
//! zone UTC keeps bound times right on a machine that lives elsewhere; vacuum tasks are off
//! because they stall the writer.

use std::path::{Path, PathBuf};

use duckdb::{Config, Connection};

use super::Options;
use crate::{Error, Result};

pub(super) const CATALOG: &str = "lavra";

pub(super) struct Opened {
    pub(super) root: Connection,
    pub(super) set_aside: Option<PathBuf>,
}

pub(super) fn open(path: &Path, options: &Options) -> Result<Opened> {
    match attach(path, options) {
        Ok(root) => Ok(Opened { root, set_aside: None }),
        Err(error) if error.to_string().contains("replaying WAL") => {
            let aside = set_log_aside(path)?;
            tracing::error!(
                %error, log = %aside.display(), database = %path.display(),
                "the log could not be replayed and was set aside: what was committed since the \
                 last checkpoint is missing from this database; keep that file and report this"
            );
            let root = attach(path, options).map_err(at_open)?;
            Ok(Opened { root, set_aside: Some(aside) })
        }
        Err(error) => Err(at_open(error)),
    }
}

fn at_open(source: duckdb::Error) -> Error {
    Error::Duck { operation: "open the DuckDB file", source }
}

fn attach(path: &Path, options: &Options) -> duckdb::Result<Connection> {
    let config = Config::default()
        .with("autoinstall_known_extensions", "false")?
        .with("autoload_known_extensions", "false")?
        .with("max_vacuum_tasks", "0")?
        .with("checkpoint_threshold", format!("{}MB", options.checkpoint_mb))?
        .max_memory(&format!("{}MB", options.memory_mb))?;
    let root = Connection::open_in_memory_with_flags(config)?;
    let file = path.to_string_lossy().replace('\'', "''");
    root.execute_batch(&format!(
        "ATTACH '{file}' AS {CATALOG} (STORAGE_VERSION 'v1.2.0'); USE {CATALOG};"
    ))?;
    // Needs the ICU extension, without which times are UTC anyway.
    let _without_icu = root.execute_batch("SET GLOBAL TimeZone = 'UTC'");
    Ok(root)
}

/// Another connection to the same instance; a clone starts outside the attached file.
pub(super) fn another(root: &Connection) -> duckdb::Result<Connection> {
    let connection = root.try_clone()?;
    connection.execute_batch(&format!("USE {CATALOG}"))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn set_log_aside(path: &Path) -> Result<PathBuf> {
    let mut log = path.as_os_str().to_owned();
    log.push(".wal");
    let log = PathBuf::from(log);
    let mut aside = log.clone().into_os_string();
    aside.push(format!(".unreadable-{}", jiff::Timestamp::now().as_second()));
    let aside = PathBuf::from(aside);
    std::fs::rename(&log, &aside).map_err(|source| Error::Io {
        operation: "set aside",
        path: log,
        source,
    })?;
    Ok(aside)
}
