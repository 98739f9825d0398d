//! What bounds every system: `bench/limits`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::IN_FLIGHT;
use super::figures::{Appended, Served};
use super::world::World;
use crate::bench::numbers::field;
use crate::workspace::Workspace;
use crate::{exec, output};

#[derive(Debug)]
pub(crate) struct Limits {
    program: PathBuf,
    library: PathBuf,
}

impl Limits {
    pub(crate) fn build(workspace: &Workspace) -> Result<Self> {
        let target = workspace.cache().join("bench-target");
        let mut cargo = workspace.cargo();
        cargo.current_dir(workspace.root().join("bench")).env("CARGO_TARGET_DIR", &target);
        exec::run_beside_data(cargo.args([
            "build",
            "--release",
            "--locked",
            "--package",
            "limits",
        ]))
        .context("cannot build bench/limits")?;
        let library = workspace.target().join("release");
        Ok(Self { program: target.join("release/limits"), library })
    }

    /// Reads every page of the world and keeps the bodies.
    pub(crate) fn read(&self, world: &World, pages: usize, bodies: &Path) -> Result<Served> {
        let mut command = self.command("read");
        command.args(["--port", &world.port().to_string(), "--pages", &pages.to_string()]);
        command.args(["--in-flight", &IN_FLIGHT.to_string(), "--bodies"]).arg(bodies);
        let printed = self.printed(&mut command)?;
        Ok(Served { pages_per_second: field(&printed, "pages_per_s")? })
    }

    /// Appends them to a file of their own.
    pub(crate) fn append(&self, bodies: &Path, directory: &Path) -> Result<Appended> {
        let mut command = self.command("append");
        command.arg("--bodies").arg(bodies);
        command.arg("--database").arg(directory.join("limit.duckdb"));
        let printed = self.printed(&mut command)?;
        Ok(Appended {
            seconds: field(&printed, "seconds")?,
            file_bytes: field(&printed, "file_bytes")?,
            zstd_bytes: field(&printed, "zstd_bytes")?,
        })
    }

    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(what).env("LD_LIBRARY_PATH", &self.library);
        command
    }

    fn printed(&self, command: &mut Command) -> Result<serde_json::Value> {
        let text = exec::capture(command)?;
        output::note(text.trim());
        serde_json::from_str(&text)
            .with_context(|| format!("{} printed no JSON", self.program.display()))
    }
}
