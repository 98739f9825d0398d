//! Where things are: the checkout, the target directory, and the cache that outlives both.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{environment, exec};

/// The places a command works with.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
    cache: PathBuf,
}

impl Workspace {
    pub(crate) fn locate() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("start this as `cargo xtask`, which says where the checkout is")?;
        let root = Path::new(&manifest)
            .parent()
            .context("CARGO_MANIFEST_DIR has no parent directory")?
            .to_owned();
        let target = target_directory(&root)?;
        Ok(Self { root, target, cache: cache()? })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target directory, whatever set it.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// What was downloaded or built once, for every checkout of this user.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// A command in the checkout, with the environment that `cargo xtask` was typed in.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = environment::clean(program, &self.target);
        command.current_dir(&self.root);
        command
    }

    /// Cargo in the checkout, with our own tools on its PATH.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = self.command(cargo_program());
        command.env("PATH", self.path());
        command
    }

    fn path(&self) -> std::ffi::OsString {
        let before = std::env::var_os("PATH").unwrap_or_default();
        let tools = std::iter::once(self.cache.join("tools/bin"));
        std::env::join_paths(tools.chain(std::env::split_paths(&before))).unwrap_or(before)
    }
}

/// Asked of cargo, since a flag, a variable or a configuration file may have set it.
fn target_directory(root: &Path) -> Result<PathBuf> {
    let mut cargo = Command::new(cargo_program());
    cargo.current_dir(root).args(["metadata", "--no-deps", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&exec::capture(&mut cargo)?)
        .context("cargo metadata printed no JSON")?;
    Ok(metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target directory")?
        .into())
}

fn cargo_program() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(directory) => PathBuf::from(directory),
        None => Path::new(
            &std::env::var_os("HOME")
                .context("set HOME or XDG_CACHE_HOME: downloads are kept there")?,
        )
        .join(".cache"),
    };
    Ok(base.join("lavra"))
}
