//! `cargo xtask torture fleet`: the orchestrator under virtual time. Thousands of seeds, each a fleet of
//! its own with every fault, whose orchestrators are killed and frozen; then a day of a thousand workers.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::workspace::Workspace;
use crate::{duckdb, exec, output};

/// What a seed is at most; each has its own numbers below these.
const FLEET: [&str; 6] = ["--workers", "50", "--missions", "120", "--orchestrators", "3"];
const DAY: [&str; 4] = ["--workers", "1000", "--missions", "50000"];
/// Seconds that the two may take.
const SEEDS_LIMIT: f64 = 600.0;
const DAY_LIMIT: f64 = 120.0;

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (seeds, first) = super::arguments(args, "--seeds", 2000)?;
    duckdb::ensure(workspace)?;
    exec::run_beside_data(workspace.cargo().args(["build", "--release", "--package", "lavra"]))?;
    let lavra = || {
        let mut command = Command::new(workspace.target().join("release/lavra"));
        command.arg("simulate");
        command
    };
    output::step(&format!("torture fleet: {seeds} seeds from {first} on"));
    let (seeds, first) = (seeds.to_string(), first.to_string());
    let mut many = lavra();
    many.args(FLEET).args(["--vary", "--chaos", "--faults", "all"]);
    timed(many.args(["--seeds", &seeds, "--seed", &first]), "all seeds", SEEDS_LIMIT)?;
    output::step("a day of a thousand workers");
    timed(lavra().args(DAY), "the day", DAY_LIMIT)
}

fn timed(command: &mut Command, what: &str, limit: f64) -> Result<()> {
    let begun = Instant::now();
    exec::run(command)?;
    let took = begun.elapsed().as_secs_f64();
    output::data(&format!("{what}: {took:.0} s (at most {limit:.0} s)"));
    ensure!(took <= limit, "{what} took longer than {limit:.0} s");
    Ok(())
}
