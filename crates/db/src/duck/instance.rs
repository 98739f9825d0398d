//! The open instance with its connections, and how it is replaced after a FATAL error.
//!
//! After the disk was full every statement on every connection fails until the instance is
//! opened anew. So all connections live here, behind one lock: those who work hold it for
//! reading, and whoever meets a FATAL error takes it for writing, which waits until the others
//! are done, drops everything and opens again.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use duckdb::Connection;

use super::lock::Lock;
use super::{Options, open};
use crate::{Error, Result};

pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) options: Options,
    lock: Mutex<Lock>,
    instance: RwLock<Option<Instance>>,
    set_aside: Mutex<Option<PathBuf>>,
}

pub(super) struct Instance {
    // Connections before the root, so that they are dropped before it.
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    root: Mutex<Connection>,
}

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn open(path: PathBuf, lock: Lock, options: Options) -> Result<Self> {
        let opened = open::open(&path, &options)?;
        let instance = Instance::new(opened.root)?;
        Ok(Self {
            path,
            options,
            lock: Mutex::new(lock),
            instance: RwLock::new(Some(instance)),
            set_aside: Mutex::new(opened.set_aside),
        })
    }

    pub(super) fn announce(&self, url: &str) -> Result<()> {
        held(&self.lock).announce(url)
    }

    pub(super) fn set_aside(&self) -> Option<PathBuf> {
        held(&self.set_aside).clone()
    }

    /// Hands the writing connection to `work`.
    pub(super) fn with_writer<T>(&self, work: impl FnOnce(&Connection) -> T) -> Result<T> {
        self.ensure_open()?;
        let guard = self.instance.read().unwrap_or_else(PoisonError::into_inner);
        let instance = guard.as_ref().ok_or_else(closed)?;
        Ok(work(&held(&instance.writer)))
    }

    pub(super) fn read<T>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&Connection) -> duckdb::Result<T>,
    ) -> Result<T> {
        self.ensure_open()?;
        let result = {
            let guard = self.instance.read().unwrap_or_else(PoisonError::into_inner);
            let instance = guard.as_ref().ok_or_else(closed)?;
            let reader = held(&instance.readers).pop();
            let reader = match reader {
                Some(reader) => reader,
                None => open::another(&held(&instance.root))
                    .map_err(|source| Error::Duck { operation, source })?,
            };
            let result = job(&reader);
            held(&instance.readers).push(reader);
            result
        };
        result.map_err(|source| {
            self.reopen_if_fatal(&source);
            Error::Duck { operation, source }
        })
    }

    /// A FATAL error has invalidated the instance: drop it, so that the next call opens anew.
    pub(super) fn reopen_if_fatal(&self, error: &duckdb::Error) {
        let text = error.to_string();
        if !(text.contains("FATAL") || text.contains("database has been invalidated")) {
            return;
        }
        let mut guard = self.instance.write().unwrap_or_else(PoisonError::into_inner);
        if guard.take().is_some() {
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
            let opened = open::open(&self.path, &self.options)?;
            if opened.set_aside.is_some() {
                *held(&self.set_aside) = opened.set_aside;
            }
            *guard = Some(Instance::new(opened.root)?);
            tracing::info!(database = %self.path.display(), "the file is open again");
        }
        Ok(())
    }

    pub(super) fn check_free_space(&self) -> Result<()> {
        let parent = self.path.parent().unwrap_or(&self.path);
        let Ok(stat) = rustix::fs::statvfs(parent) else { return Ok(()) };
        let free_mb = stat.f_bavail * stat.f_frsize / (1 << 20);
        if free_mb < self.options.min_free_mb {
            return Err(Error::DiskFull { path: self.path.clone(), free_mb });
        }
        Ok(())
    }
}

impl Instance {
    fn new(root: Connection) -> Result<Self> {
        let writer = open::another(&root)
            .map_err(|source| Error::Duck { operation: "open the DuckDB file", source })?;
        Ok(Self {
            writer: Mutex::new(writer),
            readers: Mutex::new(Vec::new()),
            root: Mutex::new(root),
        })
    }
}

fn closed() -> Error {
    Error::Thread("the DuckDB instance is being opened anew".into())
}
