//! The prebuilt DuckDB library.
//!
//! DuckDB compiles for half an hour on two cores, so development takes the library that DuckDB's
//! own npm package carries, checks it, and keeps it in the cache for every checkout. `.duckdb/` is where
//! cargo links from; at run time binaries look beside themselves, so it also lies in the target directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt::{self, Package};
use crate::workspace::Workspace;
use crate::{exec, output};

pub(crate) const LIBRARY: &str = "libduckdb.so";
const PACKAGE: &str = "@duckdb/node-bindings-linux-x64";
const VERSION: &str = "1.5.6-r.1";
const SHA256: &str = "3f4962cdd266eab2b479a5b5a4a6d063d279b2954ae814ed00385d553b747633";

/// Puts the library where the build and the built binaries look for it.
pub(crate) fn ensure(workspace: &Workspace) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!(
            "DuckDB comes prebuilt for x86_64 Linux only: build from source here, with `cargo build --features bundled`"
        );
    }
    let linked = workspace.root().join(".duckdb").join(LIBRARY);
    let kept = workspace.cache().join(format!("duckdb-{VERSION}")).join(LIBRARY);
    if !is_genuine(&linked) {
        if !is_genuine(&kept) {
            fetch(&kept)?;
        }
        place(&kept, &linked)?;
    } else if !kept.exists() {
        place(&linked, &kept)?;
    }
    for profile in ["debug", "release"] {
        place(&linked, &workspace.target().join(profile).join(LIBRARY))?;
    }
    Ok(())
}

fn fetch(kept: &Path) -> Result<()> {
    apt::ensure(&[Package::Npm])?;
    output::step(&format!("fetching DuckDB ({PACKAGE} {VERSION})"));
    let directory = tempfile::tempdir()?;
    exec::capture(Command::new("npm").current_dir(directory.path()).args([
        "pack",
        "--loglevel=error",
        &format!("{PACKAGE}@{VERSION}"),
    ]))?;
    let archive = only_file(directory.path())?;
    let member = format!("package/{LIBRARY}");
    exec::capture(
        Command::new("tar").current_dir(directory.path()).arg("-xzf").arg(archive).arg(&member),
    )?;
    let library = directory.path().join(member);
    if !is_genuine(&library) {
        bail!(
            "{LIBRARY} of {PACKAGE} {VERSION} is not the file that Lavra was tested with: its SHA-256 is not {SHA256}"
        );
    }
    place(&library, kept)
}

fn only_file(directory: &Path) -> Result<PathBuf> {
    let first = fs::read_dir(directory)?.next().context("npm pack left no file")?;
    Ok(first?.path())
}

fn is_genuine(file: &Path) -> bool {
    file.exists()
        && exec::capture(Command::new("sha256sum").arg(file))
            .is_ok_and(|said| said.starts_with(SHA256))
}

/// Makes `to` the same file as `from`: a hard link, or a copy on another file system. Swapped in whole,
/// so that a program that runs on the old one keeps it.
fn place(from: &Path, to: &Path) -> Result<()> {
    if same(from, to) {
        return Ok(());
    }
    let failed = || format!("cannot put {} to {}", from.display(), to.display());
    let directory = to.parent().with_context(failed)?;
    fs::create_dir_all(directory).with_context(failed)?;
    let staging = tempfile::tempdir_in(directory).with_context(failed)?;
    let staged = staging.path().join(LIBRARY);
    if fs::hard_link(from, &staged).is_err() {
        fs::copy(from, &staged).with_context(failed)?;
        let modified = fs::metadata(from).and_then(|data| data.modified()).with_context(failed)?;
        fs::File::options()
            .write(true)
            .open(&staged)
            .and_then(|file| file.set_modified(modified))
            .with_context(failed)?;
    }
    fs::rename(&staged, to).with_context(failed)
}

/// By size and time of change, which [`place`] keeps: reading 70 MB at every start would be felt.
fn same(from: &Path, to: &Path) -> bool {
    let (Ok(from), Ok(to)) = (fs::metadata(from), fs::metadata(to)) else {
        return false;
    };
    from.len() == to.len() && from.modified().ok() == to.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placed_library_is_the_same_and_replaces_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("deep/to"));
        fs::write(&from, "library").unwrap();
        place(&from, &to).unwrap();
        assert!(same(&from, &to));

        fs::remove_file(&from).unwrap();
        fs::write(&from, "another library").unwrap();
        assert!(!same(&from, &to));
        place(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "another library");
        assert_eq!(fs::read_dir(directory.path().join("deep")).unwrap().count(), 1);
    }

    #[test]
    fn another_file_is_not_genuine() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(LIBRARY);
        assert!(!is_genuine(&file));
        fs::write(&file, "not DuckDB").unwrap();
        assert!(!is_genuine(&file));
    }
}
