//! The peers that are written in Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::IN_FLIGHT;
use super::world::World;
use crate::bench::numbers::field;
use crate::workspace::Workspace;
use crate::{exec, python};

#[derive(Debug)]
pub(crate) struct Peers {
    python: PathBuf,
    scripts: PathBuf,
}

impl Peers {
    pub(crate) fn install(workspace: &Workspace) -> Result<Self> {
        let scripts = workspace.root().join("bench/extract");
        let wanted = scripts.join("requirements.txt");
        let python = python::environment(workspace, "bench-python", &wanted)?;
        Ok(Self { python, scripts })
    }

    /// The extraction of all that the world holds.
    pub(crate) fn command(
        &self,
        script: &str,
        world: &World,
        pages: usize,
        directory: &Path,
    ) -> Command {
        let mut command = self.python(script);
        command.args(["--base", &world.base(), "--pages", &pages.to_string()]);
        command.args(["--in-flight", &IN_FLIGHT.to_string(), "--directory"]).arg(directory);
        command.current_dir(directory);
        command
    }

    /// How many rows there are, and of how many pages.
    pub(crate) fn count(&self, database: &Path) -> Result<(usize, usize)> {
        let text = exec::capture(self.python("count.py").arg(database))?;
        let counted: Value = serde_json::from_str(&text).context("count.py printed no JSON")?;
        Ok((field(&counted, "rows")? as usize, field(&counted, "pages")? as usize))
    }

    fn python(&self, script: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.env("PYTHONDONTWRITEBYTECODE", "1").arg(self.scripts.join(script));
        command
    }
}
