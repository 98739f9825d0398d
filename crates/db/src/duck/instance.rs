//! The open instance with its connections, and how it is replaced after DuckDB gave up.
//!
//! After the disk was full every statement on every connection fails until the instance is
//! opened anew. So all connections live here, behind one lock: those who work hold it for
//! reading, and whoever learns that DuckDB gave up takes it for writing, which waits until the
//! others are done, and drops everything. The next call opens the file again.
//!
//! It is replaced now and then while all is well, too: DuckDB keeps in memory what it knows of every
//! column of every fold of the log, until the file is closed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use duckdb::Connection;
use uuid::Uuid;

use super::lock::Lock;
use super::memory::{self, Memory};
use super::{Options, damage, open};
use crate::error::is_duckdbs;
use crate::{Error, Result};

const PAUSE_FOR_READERS: Duration = Duration::from_millis(100);
/// How long somebody who looks into the file between two instances of ours is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) options: Options,
    pub(super) memory: Memory,
    instance: RwLock<Option<Instance>>,
    /// How often the log was folded since the file was opened.
    folds: AtomicU64,
    /// Held by those who read, while they do.
    reading: parking_lot::RwLock<()>,
    set_aside: Mutex<Option<PathBuf>>,
    // After the instance, so that nobody else opens the file while it is being closed.
    lock: Mutex<Lock>,
}

struct Instance {
    id: Uuid,
    // Connections before the root, so that they are dropped before it.
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    root: Mutex<Connection>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn open(path: PathBuf, lock: Lock, options: Options) -> Result<Self> {
        let opened = open::open(&path, &options)?;
        let instance = Instance::new(opened.root)?;
        Ok(Self {
            path,
            options,
            memory: Memory::new(options.memory_mb),
            instance: RwLock::new(Some(instance)),
            folds: AtomicU64::new(0),
            reading: parking_lot::RwLock::new(()),
            set_aside: Mutex::new(opened.set_aside),
            lock: Mutex::new(lock),
        })
    }

    pub(super) fn announce(&self, url: &str) -> Result<()> {
        held(&self.lock).announce(url)
    }

    pub(super) fn set_aside(&self) -> Option<PathBuf> {
        held(&self.set_aside).clone()
    }

    /// Hands the writing connection to `work`; an error that says so closes the instance.
    pub(super) fn with_writer<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> duckdb::Result<T>,
    ) -> Result<T> {
        self.on_instance(operation, |instance| work(&held(&instance.writer)))
    }

    /// The same, with more memory for DuckDB if that is what it lacks; `work` may run more than once.
    pub(super) fn with_room<T>(
        &self,
        operation: &'static str,
        mut work: impl FnMut(&Connection) -> duckdb::Result<T>,
    ) -> Result<T> {
        loop {
            let error = match self.with_writer(operation, &mut work) {
                Err(error) if memory::is_short(&error) => error,
                done => return done,
            };
            if !self.memory.double() {
                return Err(error);
            }
            tracing::debug!(%error, megabytes = self.memory.megabytes(), "DuckDB gets more memory");
            self.with_writer(operation, |writer| writer.execute_batch(&self.memory.sql()))?;
        }
    }

    pub(super) fn read<T>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&Connection) -> duckdb::Result<T>,
    ) -> Result<T> {
        let _reading = self.reading.read();
        self.on_instance(operation, |instance| {
            let idle = held(&instance.readers).pop();
            let reader = idle.map_or_else(|| open::another(&held(&instance.root)), Ok)?;
            // After an error the connection may be left in a transaction: not for the next one.
            let value = job(&reader)?;
            held(&instance.readers).push(reader);
            Ok(value)
        })
    }

    fn on_instance<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Instance) -> duckdb::Result<T>,
    ) -> Result<T> {
        let (result, id) = loop {
            self.ensure_open()?;
            let guard = self.instance.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(instance) = guard.as_ref() {
                break (work(instance), instance.id);
            }
        };
        result.map_err(|source| {
            if gave_up(&source) {
                self.close(id, &source);
            }
            if source.to_string().contains("No space left on device") {
                return Error::DiskFull { path: self.path.clone(), free_mb: self.free_mb() };
            }
            Error::Duck { operation, source }
        })
    }

    /// Drops the instance `id`, unless another has already taken its place.
    fn close(&self, id: Uuid, error: &duckdb::Error) {
        let mut guard = self.instance.write().unwrap_or_else(PoisonError::into_inner);
        if guard.take_if(|instance| instance.id == id).is_some() {
            tracing::error!(%error, database = %self.path.display(), "DuckDB gave up; opening the file anew");
        }
    }

    fn ensure_open(&self) -> Result<()> {
        let is_open = self.instance.read().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_open {
            return Ok(());
        }
        let mut guard = self.instance.write().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() {
            *guard = Some(self.open_again()?);
            tracing::info!(database = %self.path.display(), "the file is open again");
        }
        Ok(())
    }

    fn open_again(&self) -> Result<Instance> {
        let options = Options { memory_mb: self.memory.megabytes(), ..self.options };
        let until = Instant::now() + PATIENCE;
        let opened = loop {
            match open::open(&self.path, &options) {
                Err(Error::Held { holder, .. }) if Instant::now() < until => {
                    tracing::debug!(?holder, database = %self.path.display(), "waiting for the file");
                    std::thread::sleep(PAUSE_FOR_READERS);
                }
                opened => break opened?,
            }
        };
        if opened.set_aside.is_some() {
            *held(&self.set_aside) = opened.set_aside;
        }
        self.folds.store(0, Ordering::Relaxed);
        Instance::new(opened.root)
    }

    /// Folds the log into the file when it has grown long enough. Readers that follow one another
    /// closely would never let it; when it has grown twice as long, they wait for a moment.
    pub(super) fn fold_a_long_log(&self) {
        let length = self.log_length();
        let long_enough = self.options.checkpoint_mb << 20;
        if length < long_enough {
            return;
        }
        let mut folded = self.fold();
        if folded.is_ok()
            && length >= 2 * long_enough
            && self.log_length() >= length
            && let Some(_nobody_reads) = self.reading.try_write_for(PAUSE_FOR_READERS)
        {
            folded = self.fold();
        }
        if let Err(error) = folded {
            tracing::error!(%error, database = %self.path.display(), "all is stored, but the log grows");
        } else if self.log_length() == 0 {
            self.forget_many_folds();
        }
    }

    /// Opens the file anew when the log was folded often enough, unless readers are in the way.
    fn forget_many_folds(&self) {
        if self.folds.fetch_add(1, Ordering::Relaxed) + 1 < self.options.folds {
            return;
        }
        let Some(_nobody_reads) = self.reading.try_write_for(PAUSE_FOR_READERS) else { return };
        let mut guard = self.instance.write().unwrap_or_else(PoisonError::into_inner);
        *guard = None;
        match self.open_again() {
            Ok(instance) => *guard = Some(instance),
            Err(error) => {
                tracing::warn!(%error, "all is stored; the file will be opened when it is needed");
            }
        }
    }

    /// Does nothing while someone is in the way: DuckDB says so, or leaves the log as it is.
    fn fold(&self) -> Result<()> {
        self.with_room("fold the log into the file", |writer| {
            match writer.execute_batch("CHECKPOINT") {
                Err(error) if error.to_string().contains("Cannot CHECKPOINT") => Ok(()),
                folded => folded,
            }
        })
    }

    /// Waits until nobody reads, and lets nobody begin; not for ever.
    pub(super) fn nobody_reads(&self) -> Option<impl Sized + '_> {
        self.reading.try_write_for(PATIENCE)
    }

    pub(super) fn log_length(&self) -> u64 {
        std::fs::metadata(damage::log(&self.path)).map_or(0, |log| log.len())
    }

    pub(super) fn check_free_space(&self) -> Result<()> {
        let free_mb = self.free_mb();
        if free_mb < self.options.min_free_mb {
            return Err(Error::DiskFull { path: self.path.clone(), free_mb });
        }
        Ok(())
    }

    fn free_mb(&self) -> u64 {
        let parent = self.path.parent().unwrap_or(&self.path);
        rustix::fs::statvfs(parent)
            .map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize) >> 20)
    }
}

impl Instance {
    fn new(root: Connection) -> Result<Self> {
        let writer = open::another(&root).map_err(open::at_open)?;
        Ok(Self {
            id: Uuid::new_v4(),
            writer: Mutex::new(writer),
            readers: Mutex::new(Vec::new()),
            root: Mutex::new(root),
        })
    }
}

/// Whether every further statement would fail as well.
fn gave_up(error: &duckdb::Error) -> bool {
    // A checkpoint that found no room says so in other words than everything else.
    let is_invalidated =
        || is_duckdbs(error, &["IO Error"]) && error.to_string().contains("has been invalidated");
    is_duckdbs(error, &["FATAL Error", "INTERNAL Error"]) || is_invalidated()
}
