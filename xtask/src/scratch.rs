//! Temporary directories of the servers. Named by our process id, so that the next run can clear away
//! those of a run that was killed before it could.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::user::User;

const PREFIX: &str = "lavra-xtask-";

/// A directory that goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    directory: TempDir,
}

impl Scratch {
    pub(crate) fn new(what: &str, user: &User) -> Result<Self> {
        let name = format!("{PREFIX}{}-{what}-", std::process::id());
        let directory = tempfile::Builder::new()
            .prefix(&name)
            .tempdir()
            .context("cannot make a temporary directory: is TMPDIR writable?")?;
        user.own(directory.path())?;
        Ok(Self { directory })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file that belongs to the user of the directory.
    pub(crate) fn write(&self, name: &str, content: &str, user: &User) -> Result<PathBuf> {
        let path = self.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        user.own(&path)?;
        Ok(path)
    }
}

/// Removes directories of runs that are no more. What cannot be removed is another user's.
pub(crate) fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_str().and_then(owner).is_some_and(is_gone) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

fn is_gone(process: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new("/proc").join(process.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_whose_directory_it_is() {
        assert_eq!(owner("lavra-xtask-4711-postgres-x1Yz"), Some(4711));
        assert_eq!(owner("lavra-other"), None);
        assert!(!is_gone(std::process::id()));
    }
}
