//! The data directory: files that are there whole or not at all, and one worker at a time.
//!
//! ```text
//! worker.lock                     whose directory it is
//! worker.key                      seals the proxy's password; for the owner's eyes only
//! session.json                    the session that stands
//! jobs/{job}/job.json             a job
//! jobs/{job}/pages/{n}-{page}     what it has read so far
//! jobs/{job}/data.json            its ads, where they are few
//! results/{job}/{job}_results.json
//! ```

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lavra_db::Keyring;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::model::JobId;

#[derive(Clone, Debug)]
pub(crate) struct Disk {
    root: PathBuf,
}

/// Held for as long as the worker is there.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Disk {
    /// Makes the directory if it is missing, and takes it.
    pub(crate) fn open(root: &Path) -> Result<(Self, Lock)> {
        let disk = Self { root: root.to_owned() };
        for directory in [disk.jobs(), disk.results()] {
            std::fs::create_dir_all(&directory).map_err(failed("made", &directory))?;
        }
        let path = root.join("worker.lock");
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(failed("opened", &path))?;
        match file.try_lock() {
            Ok(()) => Ok((disk, Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(Error::Held(root.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed("locked", &path)(error)),
        }
    }

    /// The key that seals passwords, made when it is first needed.
    pub(crate) fn keyring(&self) -> Result<Keyring> {
        let path = self.root.join("worker.key");
        if !path.exists() {
            put(&path, Keyring::generate().as_bytes()).map_err(failed("written", &path))?;
        }
        let text = std::fs::read_to_string(&path).map_err(failed("read", &path))?;
        Keyring::parse(&text.trim().into())
            .map_err(|_| Error::Invalid(format!("{} is no key: remove it", path.display())))
    }

    pub(crate) fn session(&self) -> PathBuf {
        self.root.join("session.json")
    }

    pub(crate) fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    pub(crate) fn job(&self, id: &JobId) -> PathBuf {
        self.jobs().join(id.as_str())
    }

    pub(crate) fn job_file(&self, id: &JobId) -> PathBuf {
        self.job(id).join("job.json")
    }

    pub(crate) fn pages(&self, id: &JobId) -> PathBuf {
        self.job(id).join("pages")
    }

    pub(crate) fn few(&self, id: &JobId) -> PathBuf {
        self.job(id).join("data.json")
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.root.join("results")
    }

    pub(crate) fn result(&self, id: &JobId) -> PathBuf {
        self.results().join(id.as_str()).join(results_name(id))
    }
}

pub(crate) fn results_name(id: &JobId) -> String {
    format!("{id}_results.json")
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Disk { operation, path, source }
}

/// Writes JSON so that after a crash there is what was before, or all of it.
pub(crate) fn put_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    put(path, &serde_json::to_vec(value)?)
}

/// `None` where there is no such file, or none that can be read.
pub(crate) fn get_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let bytes = std::fs::read(path).ok()?;
    match serde_json::from_slice(&bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "a file cannot be read, and is left alone");
            None
        }
    }
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_room(path)?;
    let unfinished = unfinished(path);
    let mut file = create(&unfinished)?;
    file.write_all(bytes)?;
    settle(&file, &unfinished, path)
}

/// The directory of a file, there to stay.
pub(crate) fn make_room(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if !directory.exists() => {
            std::fs::create_dir_all(directory)?;
            directory.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())
        }
        _ => Ok(()),
    }
}

/// Where a file is written before it has its name.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)
}

/// Gives a file its name when all of it is on the disk.
pub(crate) fn settle(file: &File, unfinished: &Path, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    std::fs::rename(unfinished, path)?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_worker() {
        let place = tempfile::tempdir().unwrap();
        let (_disk, lock) = Disk::open(place.path()).unwrap();
        assert!(matches!(Disk::open(place.path()), Err(Error::Held(_))));
        drop(lock);
        Disk::open(place.path()).unwrap();
    }

    #[test]
    fn what_is_written_again_replaces_and_what_is_half_is_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("below/x.json");
        for value in [1, 2] {
            put_json(&path, &value).unwrap();
        }
        assert_eq!(get_json::<u8>(&path), Some(2));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        std::fs::write(&path, "{\"a\":").unwrap();
        assert_eq!(get_json::<serde_json::Value>(&path), None);
    }
}
