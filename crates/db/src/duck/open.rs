//! How the file is opened: from an in-memory instance, by ATTACH.
//!
//! Opened directly, a file whose log holds an ALTER on a table with a function in a default can
//! never be opened again. Attached, it replays. Storage version 1.2.0 compresses long text; time
//! zone UTC keeps bound times right on a machine that lives elsewhere; vacuum tasks are off
//! because they stall the writer. DuckDB never folds the log into the file by itself: a COMMIT
//! that does so can fail although everything is stored, hence the writer does it between commits.
//!
//! Two optimizers are off. They build what is known of a column at that moment (no rows yet, never
//! above 5, at most three letters) into the plan, and a prepared statement keeps its plan: run
//! again after the rows have changed, it finds nothing, or cuts and garbles what it finds, and
//! says Ok.

use std::path::{Path, PathBuf};
use std::time::Instant;

use duckdb::{Config, Connection};

use super::{Holder, Options, damage, lock};
use crate::{Error, Result};

/// Quoted, a name that no schema can have: `lavra.secrets` is ambiguous in a catalog `lavra`.
const CATALOG: &str = "\"lavra-file\"";
const NEVER: &str = "1TB";
const UNSAFE_FOR_PREPARED: &str = "compressed_materialization,statistics_propagation";

/// A quarter of the usual: a table of few rows, of which there are many, takes a block per column
/// at least.
const BLOCK_SIZE: u32 = 64 << 10;

pub(super) struct Opened {
    pub(super) root: Connection,
    /// Where a log that could not be replayed was set aside.
    pub(super) set_aside: Option<PathBuf>,
}

pub(super) fn open(path: &Path, options: &Options) -> Result<Opened> {
    let begun = Instant::now();
    let error = loop {
        match attach(path, options) {
            Ok(root) => return Ok(Opened { root, set_aside: None }),
            Err(error) if damage::is_of_the_log(&error) => break error,
            Err(error) => match held(&error) {
                // Of a process that was killed, our lock may be free before DuckDB's.
                Some(holder) if begun.elapsed() < holder.patience() => {
                    std::thread::sleep(lock::MOMENT);
                }
                Some(holder) => return Err(Error::Held { path: path.to_owned(), holder }),
                None => return Err(at_open(error)),
            },
        }
    };
    let aside = damage::keep_a_copy(path)?;
    if damage::cut(path, &error)?
        && let Ok(root) = attach(path, options)
    {
        tracing::error!(
            %error, log = %aside.display(), database = %path.display(),
            "the log is damaged: what was committed after the damage is missing from this \
             database; keep that copy of the log and report this"
        );
        return Ok(Opened { root, set_aside: Some(aside) });
    }
    damage::remove_logs(path)?;
    tracing::error!(
        %error, log = %aside.display(), database = %path.display(),
        "the log could not be replayed and was set aside: what was committed since the last \
         checkpoint is missing from this database; keep that file and report this"
    );
    let root = attach(path, options).map_err(at_open)?;
    Ok(Opened { root, set_aside: Some(aside) })
}

/// Something that is no lavra has the file: DuckDB's own lock says so, and who.
fn held(error: &duckdb::Error) -> Option<Holder> {
    let text = error.to_string();
    let (_, rest) = text.split_once("Conflicting lock is held in ")?;
    let pid = rest.split_once("(PID ").and_then(|(_, pid)| pid.split_once(')')?.0.parse().ok());
    Some(Holder { pid, ..Holder::default() })
}

pub(super) fn at_open(source: duckdb::Error) -> Error {
    Error::Duck { operation: "open the DuckDB file", source }
}

fn attach(path: &Path, options: &Options) -> duckdb::Result<Connection> {
    let file = path.to_string_lossy().replace('\'', "''");
    let config = Config::default()
        .with("autoinstall_known_extensions", "false")?
        .with("autoload_known_extensions", "false")?
        .with("max_vacuum_tasks", "0")?
        .with("checkpoint_threshold", NEVER)?
        // Of an instance in memory it would be .tmp, wherever the process was started.
        .with("temp_directory", format!("{}.tmp", path.to_string_lossy()))?
        .max_memory(&format!("{}MB", options.memory_mb))?;
    let config = match options.threads {
        Some(threads) => config.with("threads", threads.to_string())?,
        None => config,
    };
    // A file keeps the blocks that it was made with.
    let block = if path.exists() { String::new() } else { format!(", BLOCK_SIZE {BLOCK_SIZE}") };
    let root = Connection::open_in_memory_with_flags(config)?;
    root.execute_batch(&format!(
        "ATTACH '{file}' AS {CATALOG} (STORAGE_VERSION 'v1.2.0'{block}); USE {CATALOG};"
    ))?;
    root.execute_batch(&format!("SET GLOBAL disabled_optimizers = '{UNSAFE_FOR_PREPARED}'"))?;
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
