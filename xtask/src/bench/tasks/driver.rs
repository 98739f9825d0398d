//! The programs that drive one system each. All speak the same command line and print one line of JSON,
//! whatever they are written in: `bench/src/lib.rs` has it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::apt::{self, Package};
use crate::exec;
use crate::workspace::Workspace;

/// A measurement that hangs is ended, in seconds.
const LIMIT: &str = "1200";

/// A task system under measurement. RabbitMQ alone is not one: it only publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum System {
    Lavra,
    Awa,
    GraphileNode,
    GraphileRust,
}

impl System {
    pub(crate) const ALL: [Self; 4] =
        [Self::Lavra, Self::Awa, Self::GraphileNode, Self::GraphileRust];
    pub(crate) const PEERS: [Self; 3] = [Self::Awa, Self::GraphileNode, Self::GraphileRust];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Lavra => "Lavra",
            Self::Awa => "awa 0.6.9",
            Self::GraphileNode => "graphile-worker 0.17.3 (Node)",
            Self::GraphileRust => "graphile_worker 0.14.1 (Rust)",
        }
    }

    /// The name of its databases.
    pub(crate) fn database(self) -> &'static str {
        match self {
            Self::Lavra => "bench_lavra",
            Self::Awa => "bench_awa",
            Self::GraphileNode => "bench_graphile_node",
            Self::GraphileRust => "bench_graphile_rust",
        }
    }
}

/// The drivers, built.
#[derive(Debug)]
pub(crate) struct Drivers<'a> {
    workspace: &'a Workspace,
}

impl<'a> Drivers<'a> {
    /// Builds the drivers of the peers. That of Lavra may fail by itself, see [`Self::build_lavra`].
    pub(crate) fn build(workspace: &'a Workspace) -> Result<Self> {
        apt::ensure(&[Package::Npm])?;
        let drivers = Self { workspace };
        let bench = workspace.root().join("bench");
        let mut cargo = workspace.cargo();
        cargo.current_dir(&bench).env("CARGO_TARGET_DIR", drivers.peers_target());
        exec::run_beside_data(cargo.args(["build", "--release", "--locked"]))
            .context("cannot build the drivers in bench/")?;
        let mut npm = Command::new("npm");
        npm.current_dir(&bench).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
        exec::run_beside_data(&mut npm).context("cannot install the drivers in bench/")?;
        Ok(drivers)
    }

    pub(crate) fn build_lavra(&self) -> Result<()> {
        let mut cargo = self.workspace.cargo();
        cargo.args(["build", "--release", "--package", "lavra-tasks", "--example", "bench"]);
        exec::run_beside_data(&mut cargo)
            .context("cannot build Lavra's own driver, the example `bench` of lavra-tasks")
    }

    /// Runs a measurement of one system and gives what it printed.
    pub(crate) fn measure(&self, system: System, args: &[&str]) -> Result<Value> {
        let mut command = self.limited();
        match system {
            System::Lavra => command.arg(self.workspace.target().join("release/examples/bench")),
            System::Awa => command.arg(self.peers_target().join("release/awa")),
            System::GraphileRust => command.arg(self.peers_target().join("release/graphile-rs")),
            System::GraphileNode => command.arg("node").arg(self.script("graphile.mjs")),
        };
        result(command.args(args))
    }

    /// RabbitMQ by itself.
    pub(crate) fn publish(&self, args: &[&str]) -> Result<Value> {
        result(
            self.limited().arg("node").arg(self.script("rabbitmq.mjs")).arg("publish").args(args),
        )
    }

    fn limited(&self) -> Command {
        let mut command = self.workspace.command("timeout");
        command.arg(LIMIT);
        command
    }

    fn script(&self, name: &str) -> PathBuf {
        self.workspace.root().join("bench").join(name)
    }

    /// Not the target directory of Lavra: nothing in it is of use to the other.
    fn peers_target(&self) -> PathBuf {
        self.workspace.cache().join("bench-target")
    }
}

fn result(command: &mut Command) -> Result<Value> {
    let printed = exec::capture(command)?;
    let last = printed.lines().last().context("the driver printed nothing")?;
    serde_json::from_str(last).with_context(|| format!("the driver printed no JSON: {last}"))
}
