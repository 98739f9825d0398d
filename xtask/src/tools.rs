//! Cargo's companions at fixed versions, built into the cache when the machine has none.
//! Never installed for the whole user: what they already have stays as it is.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{exec, output};

/// A cargo subcommand of its own crate.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tool {
    Nextest,
    Machete,
    Deny,
}

impl Tool {
    fn package(self) -> &'static str {
        match self {
            Self::Nextest => "cargo-nextest",
            Self::Machete => "cargo-machete",
            Self::Deny => "cargo-deny",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Self::Nextest => "0.9.128",
            Self::Machete => "0.9.2",
            Self::Deny => "0.20.2",
        }
    }

    /// Any nextest will do; a judge of another version may judge otherwise.
    fn is_there(self, workspace: &Workspace) -> bool {
        let version = |name: &str| exec::capture(workspace.cargo().args([name, "--version"]));
        match self {
            Self::Nextest => version("nextest").is_ok(),
            Self::Machete => version("machete").is_ok_and(|said| said.contains(self.version())),
            Self::Deny => version("deny").is_ok_and(|said| said.contains(self.version())),
        }
    }
}

/// Builds a tool that is missing.
pub(crate) fn ensure(workspace: &Workspace, tool: Tool) -> Result<()> {
    if tool.is_there(workspace) {
        return Ok(());
    }
    let (package, version) = (tool.package(), tool.version());
    output::step(&format!("building {package} {version}, once"));
    let root = workspace.cache().join("tools");
    std::fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let mut install: Command = workspace.cargo();
    // Outside the checkout its cargo configuration does not apply; built once, so built quickly.
    install
        .current_dir(&root)
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    install
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    install
        .args(["install", "--quiet", "--locked", "--version", version, "--root"])
        .arg(&root)
        .arg(package);
    exec::run_beside_data(&mut install).with_context(|| format!("cannot build {package} {version}"))
}
