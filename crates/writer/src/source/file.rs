//! Files, below the directories that were opened to the writer and nowhere else.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::Opened;
use crate::decode::Encoding;
use crate::failure::Failure;

pub(super) fn open(directories: &[PathBuf], path: &str) -> Result<Opened, Failure> {
    // What lies outside is not told apart from what does not exist.
    let refused =
        || Failure::storage("the file is not there, or not below a directory that may be read");
    let opened = directories.iter().find_map(|directory| below(directory, path));
    let file = opened.ok_or_else(refused)?;
    Ok(Opened { bytes: Box::new(file), encoding: Encoding::of_name(path) })
}

/// The file, if it lies below the directory when every link on the way was followed.
fn below(directory: &Path, path: &str) -> Option<File> {
    let directory = directory.canonicalize().ok()?;
    let path = directory.join(path).canonicalize().ok()?;
    if !path.starts_with(&directory) || !path.is_file() {
        return None;
    }
    let file = File::open(&path).ok()?;
    // A link that was put in its place meanwhile leads to another file.
    let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    (opened.starts_with(&directory) && file.metadata().ok()?.is_file()).then_some(file)
}
