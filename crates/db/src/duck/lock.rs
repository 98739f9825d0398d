//! Who owns the file: an advisory lock of our own beside it.
//!
//! DuckDB's lock is an fcntl lock, which any open and close of the file in the holding process
//! gives away. Ours lies on `NAME.lock`, is held for life, and says who holds it and where that
//! process can be asked.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::place;
use crate::{Error, Result};

const AT_MOST: u32 = 100;
pub(super) const MOMENT: Duration = Duration::from_millis(2);
/// How long a holder that was killed is waited for: the kernel lets go of its locks when all of its
/// threads are gone, which takes a while when they are many or at the disk.
const DYING: Duration = Duration::from_secs(2);
/// How long one is looked at that may have been killed. For an instant nothing tells it from one that
/// works: its SIGKILL is taken, its exit not begun.
const UNCLEAR: Duration = Duration::from_millis(100);

/// Who holds a file, as its lock file says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Holder {
    pub pid: Option<u32>,
    /// Where the holder serves the database, once it does.
    pub url: Option<String>,
    pub token: Option<String>,
}

impl Holder {
    /// How long to wait for it to let go by itself. Where processes cannot be looked at, nobody is
    /// waited for.
    pub(super) fn patience(&self) -> Duration {
        let stat = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat"));
        match self.pid.map(|pid| stat(&pid.to_string())) {
            Some(Ok(text)) => patience_with(&text),
            Some(Err(_)) if stat("self").is_ok() => DYING,
            Some(Err(_)) | None => Duration::ZERO,
        }
    }
}

/// By a process's line in `/proc/PID/stat`: it is on its way out if it is a zombie, exiting, or has a
/// SIGKILL before it. Any other that sleeps was not killed.
fn patience_with(stat: &str) -> Duration {
    const EXITING: u64 = 0x4;
    const KILL: u64 = 1 << 8;
    // The name before these may hold anything.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let has = |place: usize, bit: u64| {
        fields.get(place).and_then(|text| text.parse().ok()).is_some_and(|bits: u64| bits & bit > 0)
    };
    match fields.first() {
        Some(&("Z" | "X")) => DYING,
        _ if has(6, EXITING) || has(28, KILL) => DYING,
        Some(&("R" | "D")) => UNCLEAR,
        _ => Duration::ZERO,
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, &self.url) {
            (Some(pid), Some(url)) => {
                write!(f, "the lavra process {pid}, which serves it at {url}")
            }
            (Some(pid), None) => write!(f, "the process {pid}"),
            (None, Some(url)) => write!(f, "a lavra process that serves it at {url}"),
            (None, None) => f.write_str("another process"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    holder: Holder,
}

/// One name for one file, whatever links lead to it, so that it has one lock. The file need not
/// be there yet; a link that leads nowhere already says where it will be.
pub(super) fn canonical(path: &Path) -> Result<PathBuf> {
    let io = |source| Error::Io { operation: "open", path: path.to_owned(), source };
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return found.map_err(io),
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(target) = path.read_link() {
        return canonical(&parent.join(target));
    }
    let name = path
        .file_name()
        .ok_or_else(|| Error::Config(format!("{} is not the name of a file", path.display())))?;
    let parent = parent.canonicalize().map_err(|error| place::directory(path, error))?;
    Ok(parent.join(name))
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

pub(super) fn take(database: &Path) -> Result<Lock> {
    let path = lock_path(database);
    let io = |source| Error::Io { operation: "lock", path: path.clone(), source };
    let mut options = OpenOptions::new();
    // It holds a token: for nobody else's eyes.
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).map_err(|error| place::directory(database, error))?;
    let begun = Instant::now();
    for tries in 0.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if tries < AT_MOST && is_only_asked_for(&file) => {
                std::thread::sleep(MOMENT);
            }
            Err(TryLockError::WouldBlock) => {
                let holder = read(&file);
                if begun.elapsed() >= holder.patience() {
                    return Err(Error::Held { path: database.to_owned(), holder });
                }
                std::thread::sleep(MOMENT);
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
    }
    let token = Uuid::new_v4().simple().to_string();
    let holder = Holder { pid: Some(std::process::id()), url: None, token: Some(token) };
    let mut lock = Lock { file, path, holder };
    lock.write()?;
    Ok(lock)
}

/// Those who only ask who holds it share it for a moment; a holder shares it with nobody.
fn is_only_asked_for(file: &File) -> bool {
    file.try_lock_shared().is_ok() && file.unlock().is_ok()
}

/// Who holds `database` now; `None` if nobody does.
pub fn holder(database: &Path) -> Result<Option<Holder>> {
    let path = lock_path(&canonical(database)?);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Io { operation: "read the lock", path, source }),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read(&file))),
        Err(TryLockError::Error(source)) => {
            Err(Error::Io { operation: "read the lock", path, source })
        }
    }
}

/// What the lock file says; read again while its holder is just writing it.
fn read(mut file: &File) -> Holder {
    for _ in 0..AT_MOST {
        let mut text = String::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
        if let (Ok(_), Ok(holder)) = (read, serde_json::from_str(&text)) {
            return holder;
        }
        std::thread::sleep(MOMENT);
    }
    Holder::default()
}

impl Lock {
    pub(super) fn announce(&mut self, url: &str) -> Result<()> {
        self.holder.url = Some(url.to_owned());
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        let text = serde_json::to_string(&self.holder).map_err(Error::thread)?;
        let written = self
            .file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.write_all(text.as_bytes()))
            .and_then(|()| self.file.set_len(text.len() as u64));
        written.map_err(|source| Error::Io {
            operation: "write the lock",
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_killed_is_known_by_its_line() {
        let line = |state: &str, flags: u64, pending: u64| {
            let zeros = ["0"; 21].join(" ");
            format!("42 (a) b) {state} 1 1 1 0 -1 {flags} {zeros} {pending} 0 0")
        };
        assert_eq!(patience_with(&line("Z", 4_194_560, 0)), DYING);
        assert_eq!(patience_with(&line("R", 4_194_564, 0)), DYING);
        assert_eq!(patience_with(&line("D", 4_194_560, 1 << 8)), DYING);
        assert_eq!(patience_with(&line("S", 4_194_560, 1 << 8)), DYING);
        assert_eq!(patience_with(&line("R", 4_194_560, 0)), UNCLEAR);
        assert_eq!(patience_with(&line("D", 4_194_560, 1 << 14)), UNCLEAR);
        assert_eq!(patience_with(&line("S", 4_194_560, 0)), Duration::ZERO);
        assert_eq!(patience_with("no such line"), Duration::ZERO);
    }
}
