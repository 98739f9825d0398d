//! A DuckDB file owned by this process.
//!
//! One thread writes ([`writer`]), a few connections read, and nothing else in the workspace
//! meets DuckDB's traps: how the file is opened ([`open`]), who owns it ([`lock`]), what a COMMIT
//! that answers Ok may hide, and how to go on after the disk was full.

mod damage;
mod instance;
mod lock;
mod memory;
mod open;
mod place;
pub mod statement;
mod writer;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use duckdb::Connection;
use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::{Clock, Error, Result, Schema};
use instance::Shared;

pub use lock::{Holder, holder as lock_holder};

/// How a file is opened. The defaults are right for everything but tests of a full disk.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The log is folded into the file when it reaches this size, in megabytes.
    pub checkpoint_mb: u64,
    /// The file is opened anew after the log was folded so often.
    pub folds: u64,
    /// What DuckDB may keep in memory to begin with, in megabytes; it gets more when a write does not
    /// fit.
    pub memory_mb: u64,
    /// Threads of DuckDB's own beside those that ask; `None` are as many as there are processors.
    /// For one who writes they are a burden: the writer waits for them awake.
    pub threads: Option<u64>,
    /// Writes are refused below this much free space, in megabytes.
    pub min_free_mb: u64,
    pub readers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            checkpoint_mb: 16,
            folds: 64,
            memory_mb: 1024,
            threads: None,
            min_free_mb: 64,
            readers: 2,
        }
    }
}

#[derive(Clone)]
pub struct Duck {
    shared: Arc<Shared>,
    writer: writer::Handle,
    readers: Arc<Semaphore>,
    sequence: Arc<AtomicI64>,
    schema: Schema,
    clock: Clock,
}

impl std::fmt::Debug for Duck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Duck").field(&self.shared.path).finish()
    }
}

impl Duck {
    /// Opens or makes the file. Blocks; call it from a thread that may.
    pub fn open(path: &Path, schema: Schema, options: Options) -> Result<Self> {
        let path = lock::canonical(path)?;
        let lock = lock::take(&path)?;
        place::check(&path)?;
        let clock = Clock::ours();
        // Tokens and cursors go on from the clock, above everything an earlier process gave out,
        // even if its log had to be set aside; and above its last write, should the clock of
        // this machine have been turned back since.
        let start = micros(clock.now()).max(last_write(&path));
        let sequence = Arc::new(AtomicI64::new(start));
        let shared = Arc::new(Shared::open(path, lock, options)?);
        let writer = writer::start(Arc::clone(&shared))?;
        let readers = Arc::new(Semaphore::new(options.readers.max(1)));
        Ok(Self { shared, writer, readers, sequence, schema, clock })
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The statement with this database's schema, ready to move into a closure.
    pub fn sql(&self, sql: &'static str) -> Cow<'static, str> {
        self.schema.apply(sql)
    }

    /// Where a log that could not be replayed was set aside when the file was opened.
    pub fn set_aside(&self) -> Option<PathBuf> {
        self.shared.set_aside()
    }

    /// The next number of a sequence that never goes back, over restarts included.
    pub fn next_sequence(&self) -> i64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Raises the sequence above `seen`, a number found in the file.
    pub fn sequence_beyond(&self, seen: i64) {
        self.sequence.fetch_max(seen, Ordering::Relaxed);
    }

    /// Sees to it that a value of this many bytes can be written: DuckDB has it in memory a few
    /// times over, and refuses what does not fit its limit.
    pub async fn make_room(&self, bytes: usize) -> Result<()> {
        let wanted = self.shared.options.memory_mb + ((3 * bytes as u64) >> 20);
        self.shared.memory.raise_to(wanted);
        let sql = self.shared.memory.sql();
        self.write("make room for a large value", move |tx| tx.execute_batch(&sql)).await
    }

    /// Writes into the lock file where this process serves the database, for other commands.
    pub fn announce(&self, url: &str) -> Result<()> {
        self.shared.announce(url)
    }

    /// Runs `job` in a transaction of the writer thread, together with others that wait.
    ///
    /// The closure may run twice (alone, when a neighbour failed), so it touches only the
    /// database and takes ids and times from its caller. A refusal is an `Ok` value decided
    /// before the first write; an `Err` rolls back.
    pub async fn write<T, F>(&self, operation: &'static str, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> duckdb::Result<T> + Send + 'static,
    {
        self.writer.submit(operation, job).await
    }

    /// Runs `job` on a reading connection.
    pub async fn read<T, F>(&self, operation: &'static str, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> duckdb::Result<T> + Send + 'static,
    {
        let permit = Arc::clone(&self.readers).acquire_owned().await.map_err(Error::thread)?;
        let shared = Arc::clone(&self.shared);
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            shared.read(operation, job)
        });
        read.await.map_err(Error::thread)?
    }

    /// Schema changes: outside the group commits, with the log folded away before and after.
    pub async fn reshape<F>(&self, job: F) -> Result<()>
    where
        F: FnOnce(&Connection) -> duckdb::Result<()> + Send + 'static,
    {
        self.writer.reshape(job).await
    }
}

/// When the file or its log was last written, in microseconds.
fn last_write(path: &Path) -> i64 {
    [path, &damage::log(path)]
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok()?.modified().ok())
        .filter_map(|time| Timestamp::try_from(time).ok())
        .map(micros)
        .max()
        .unwrap_or(0)
}

/// Microseconds since 1970, as DuckDB's `make_timestamp` takes them.
pub fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// The time that `epoch_us` returned.
pub fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}
