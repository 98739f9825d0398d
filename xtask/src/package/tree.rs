//! The files of a package, as they will lie in the root of a machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::exec;

pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(super) fn new(root: PathBuf) -> Result<Self> {
        fs::create_dir(&root)?;
        allow(&root, 0o755)?;
        Ok(Self { root })
    }

    pub(super) fn path(&self) -> &Path {
        &self.root
    }

    pub(super) fn put(&self, to: &str, text: &str, mode: u32) -> Result<()> {
        let to = self.place(to)?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
        allow(&to, mode)
    }

    pub(super) fn copy(&self, from: &Path, to: &str, mode: u32) -> Result<()> {
        let to = self.place(to)?;
        fs::copy(from, &to).with_context(|| format!("cannot pack {}", from.display()))?;
        allow(&to, mode)
    }

    pub(super) fn link(&self, to: &str, at: &str) -> Result<()> {
        Ok(symlink(to, self.place(at)?)?)
    }

    /// The same bytes give the same bytes: no name and no time in it.
    pub(super) fn compress(&self, path: &str) -> Result<()> {
        exec::capture(Command::new("gzip").args(["-9", "-n"]).arg(self.root.join(path))).map(drop)
    }

    pub(super) fn kilobytes(&self) -> Result<u64> {
        let said = exec::capture(Command::new("du").arg("-sk").arg(&self.root))?;
        let size = said.split_whitespace().next().and_then(|word| word.parse().ok());
        size.context("du printed no number")
    }

    /// With the directories above it, which everybody may enter whatever this user's umask is.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let place = self.root.join(path);
        let above: Vec<&Path> = place
            .ancestors()
            .skip(1)
            .take_while(|directory| *directory != self.root && !directory.exists())
            .collect();
        for directory in above.into_iter().rev() {
            fs::create_dir(directory)?;
            allow(directory, 0o755)?;
        }
        Ok(place)
    }
}

fn allow(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}
