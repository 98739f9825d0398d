//! A log that cannot be replayed: what can be saved of it, and where the whole of it is kept.
//!
//! DuckDB drops a torn end of the log by itself. Damage before the end (a power cut that left
//! zeros, a bad sector) makes it refuse the file altogether. Then a copy of the log is set aside
//! and the log is cut where the damage begins, so that what was committed before it is replayed;
//! if that does not help, the file is opened without a log.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// While a checkpoint is under way there is a second log; merging the two makes a third.
const SUFFIXES: [&str; 3] = [".wal", ".wal.checkpoint", ".wal.recovery"];
/// Size and checksum of an entry stand before the position that DuckDB reports.
const ENTRY_HEAD: u64 = 16;

pub(super) fn log(database: &Path) -> PathBuf {
    beside(database, SUFFIXES[0])
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn logs(database: &Path) -> impl Iterator<Item = PathBuf> {
    SUFFIXES.iter().map(|suffix| beside(database, suffix)).filter(|path| path.exists())
}

/// Whether the log itself is at fault, for certain. A machine without room or memory fails in the
/// replay as well, which passes; so does a log that a newer DuckDB wrote.
pub(super) fn is_of_the_log(error: &duckdb::Error) -> bool {
    let text = error.to_string();
    let says = |words: &&str| text.contains(words);
    let damaged = [
        "Corrupt WAL",
        "Invalid WAL entry type",
        "WAL does not match",
        "WAL checkpoint iteration",
        "checkpoint marker",
        "checkpoint WAL version",
    ];
    let contradicts_the_file = [
        "Binder Error",
        "Catalog Error",
        "Constraint Error",
        "Conversion Error",
        "Dependency Error",
        "INTERNAL Error",
        "Parser Error",
        "Serialization Error",
        "constraint violat",
    ];
    damaged.iter().any(says) || (says(&"replaying WAL") && contradicts_the_file.iter().any(says))
}

/// Copies every log there is; the name of the first copy is what people are told.
pub(super) fn keep_a_copy(database: &Path) -> Result<PathBuf> {
    let suffix = format!(".unreadable-{}", jiff::Timestamp::now().as_microsecond());
    for log in logs(database) {
        let copy = beside(&log, &suffix);
        let kept = fs::copy(&log, &copy).and_then(|_| File::open(&copy)?.sync_all());
        kept.map_err(|source| Error::Io { operation: "set aside", path: log, source })?;
    }
    Ok(beside(&log(database), &suffix))
}

/// Cuts the log where `error` says that its damage begins; false if it does not say.
pub(super) fn cut(database: &Path, error: &duckdb::Error) -> Result<bool> {
    let text = error.to_string();
    let Some(position) = text.split("byte position ").nth(1).and_then(leading_number) else {
        return Ok(false);
    };
    // With a second log, DuckDB would go on from there and leave a gap.
    if logs(database).count() != 1 {
        return Ok(false);
    }
    let path = log(database);
    let file = OpenOptions::new().write(true).open(&path);
    let cut = file.and_then(|file| {
        file.set_len(position.saturating_sub(ENTRY_HEAD))?;
        file.sync_all()
    });
    cut.map_err(|source| Error::Io { operation: "cut the log", path, source })?;
    Ok(true)
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

pub(super) fn remove_logs(database: &Path) -> Result<()> {
    for path in logs(database) {
        fs::remove_file(&path).map_err(|source| Error::Io {
            operation: "remove the log",
            path,
            source,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> duckdb::Error {
        duckdb::Error::DuckDBFailure(duckdb::ffi::Error::new(1), Some(text.to_owned()))
    }

    #[test]
    fn the_log_is_blamed_for_what_only_the_log_can_do() {
        for text in [
            "IO Error: Failure while replaying WAL file \"a.wal\": Corrupt WAL file: entry at byte \
             position 98 computed checksum 1 does not match stored checksum 2",
            "INTERNAL Error: Failure while replaying WAL file \"a.wal\": Invalid WAL entry type!",
            "Catalog Error: Failure while replaying WAL file \"a.wal\": Schema with name public \
             does not exist!",
            "IO Error: Failure while replaying WAL file \"a.wal\": WAL does not match database file.",
            "IO Error: This WAL was created for this database file, but the WAL checkpoint \
             iteration does not match the database file.",
            "IO Error: WAL checkpoint marker must be at the end of the WAL",
            "TransactionContext Error: Failure while replaying WAL file \"a.wal\": Failed to commit: \
             PRIMARY KEY or UNIQUE constraint violation: duplicate key \"1\"",
        ] {
            assert!(is_of_the_log(&said(text)), "not blamed: {text}");
        }
    }

    #[test]
    fn the_log_is_not_blamed_for_the_machine_nor_for_a_newer_duckdb() {
        for text in [
            "IO Error: Could not set lock on file \"a\": Conflicting lock is held",
            "IO Error: Failure while replaying WAL file \"a.wal\": Could not write file \"a\": No \
             space left on device",
            "IO Error: Failure while replaying WAL file \"a.wal\": Could not read from file \"a\": \
             Input/output error",
            "Out of Memory Error: Failure while replaying WAL file \"a.wal\": could not allocate",
            "TransactionContext Error: Failure while replaying WAL file \"a.wal\": Failed to commit: \
             could not allocate block of size 256.0 KiB (828.0 KiB/976.5 KiB used)",
            "IO Error: Failure while replaying WAL file \"a.wal\": Failed to read WAL of version 9 \
             - can only read version 1, 2 and 3 (encrypted)",
        ] {
            assert!(!is_of_the_log(&said(text)), "blamed: {text}");
        }
    }
}
