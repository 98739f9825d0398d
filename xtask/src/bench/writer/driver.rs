//! The programs that write the items, each in its own way.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::apt::Package;
use crate::bench::numbers::field;
use crate::workspace::Workspace;
use crate::{exec, python};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum System {
    Copy,
    Lavra,
    ExecuteBatch,
    Dlt,
}

impl System {
    pub(crate) const ALL: [Self; 4] = [Self::Copy, Self::Lavra, Self::ExecuteBatch, Self::Dlt];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Copy => "psql \\copy",
            Self::Lavra => "Lavra",
            Self::ExecuteBatch => "psycopg2 execute_batch",
            Self::Dlt => "dlt 1.31.0 merge",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Insert,
    Upsert,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Upsert => "upsert",
        }
    }
}

/// What Lavra tells of a job.
pub(crate) struct Told {
    pub(crate) rate: f64,
    pub(crate) failed: usize,
    pub(crate) peak_mb: f64,
}

pub(crate) struct Drivers {
    lavra: PathBuf,
    psql: PathBuf,
    python: PathBuf,
    scripts: PathBuf,
    libraries: PathBuf,
}

impl Drivers {
    pub(crate) fn prepare(workspace: &Workspace) -> Result<Self> {
        let mut cargo = workspace.cargo();
        cargo.args(["build", "--release", "--package", "lavra-writer", "--example", "items"]);
        exec::run_beside_data(&mut cargo).context("cannot build Lavra's driver")?;
        let scripts = workspace.root().join("bench/writer");
        let wanted = scripts.join("requirements.txt");
        Ok(Self {
            lavra: workspace.target().join("release/examples/items"),
            psql: Package::PostgreSql.path()?.join("psql"),
            python: python::environment(workspace, "bench-writer-python", &wanted)?,
            libraries: workspace.root().join(".duckdb"),
            scripts,
        })
    }

    /// Of which every `bad`th has its own price.
    pub(crate) fn generate(
        &self,
        rows: usize,
        bytes: usize,
        price: &str,
        (bad, bad_price): (usize, &str),
        directory: &Path,
    ) -> Result<()> {
        let mut command = self.command();
        command.args(["generate", &rows.to_string(), &bytes.to_string(), price]);
        command.args([&bad.to_string(), bad_price]);
        exec::capture(command.arg(directory))?;
        exec::capture(&mut Command::new("sync"))?;
        Ok(())
    }

    /// Rows per second.
    pub(crate) fn write(
        &self,
        system: System,
        operation: Operation,
        database: &str,
        directory: &Path,
    ) -> Result<f64> {
        let (json, copy) = (directory.join("items.json"), directory.join("items.copy"));
        let script = |name: &str| {
            let mut command = Command::new(&self.python);
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command.arg(self.scripts.join(name)).arg(database).arg(&json).current_dir(directory);
            printed(&mut command).and_then(|told| field(&told, "rows_per_s"))
        };
        match system {
            System::Lavra => Ok(self.lavra(operation, database, directory)?.rate),
            System::ExecuteBatch => script("execute_batch.py"),
            System::Dlt => script("dlt_merge.py"),
            System::Copy => {
                let rows = std::fs::read(&copy)?.split(|byte| *byte == b'\n').count() - 1;
                let mut psql = Command::new(&self.psql);
                psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]).arg(database);
                psql.arg("--command").arg(format!("\\copy items FROM '{}'", copy.display()));
                let begun = Instant::now();
                exec::capture(&mut psql)?;
                Ok(rows as f64 / begun.elapsed().as_secs_f64())
            }
        }
    }

    pub(crate) fn lavra(
        &self,
        operation: Operation,
        database: &str,
        directory: &Path,
    ) -> Result<Told> {
        let mut command = self.command();
        command.args([operation.word(), database]).arg(directory.join("items.json"));
        told(&printed(&mut command)?)
    }

    /// A body of so many bytes, from another process.
    pub(crate) fn long(&self, database: &str, bytes: u64) -> Result<Told> {
        let mut server = self.command();
        server.args(["serve", &bytes.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = server.spawn().context("cannot start the server of the body")?;
        let mut first = String::new();
        let output = server.stdout.take().context("the server prints nothing")?;
        BufReader::new(output).read_line(&mut first)?;
        let place: Value = serde_json::from_str(&first).context("the server printed no JSON")?;
        let url = place.get("url").and_then(Value::as_str).context("the server has no URL")?;
        let ran = printed(self.command().args(["upsert", database, url])).and_then(|it| told(&it));
        server.kill()?;
        server.wait()?;
        ran
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.lavra);
        command.env("LD_LIBRARY_PATH", &self.libraries);
        command
    }
}

fn told(printed: &Value) -> Result<Told> {
    let status = printed.get("status").and_then(Value::as_str).unwrap_or_default();
    ensure!(matches!(status, "completed" | "partial"), "the job did not end well: {printed}");
    Ok(Told {
        rate: field(printed, "rows_per_s")?,
        failed: field(printed, "failed")? as usize,
        peak_mb: field(printed, "peak_mb")?,
    })
}

fn printed(command: &mut Command) -> Result<Value> {
    let printed = exec::capture(command)?;
    let last = printed.lines().last().context("the driver printed nothing")?;
    serde_json::from_str(last).with_context(|| format!("the driver printed no JSON: {last}"))
}
