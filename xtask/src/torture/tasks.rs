//! `cargo xtask torture tasks`: servers and runners are killed and frozen at random, PostgreSQL and
//! RabbitMQ are stopped and started, while tasks are created, cancelled and retried over HTTP. Then an
//! auditor reads the tables.

pub(super) mod audit;
mod load;
mod parts;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::chaos::Chaos;
use crate::apt;
use crate::output;
use crate::servers::{PACKAGES, Postgres, RabbitMq, Tuning};
use crate::workspace::Workspace;
use crate::{duckdb, exec, interrupt};

const DATABASE: &str = "torture";
/// How long everything may take to end once nothing is killed any more.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a process may take to stop.
const GRACE: Duration = Duration::from_secs(20);

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (seconds, seed) = super::arguments(args, "--seconds", 120)?;
    output::step(&format!("torture tasks: {seconds} s, seed {seed}"));
    apt::ensure(PACKAGES)?;
    duckdb::ensure(workspace)?;
    exec::run_beside_data(workspace.cargo().args([
        "build",
        "--package",
        "lavra",
        "--bin",
        "lavra",
    ]))?;
    let mut postgres = Postgres::start(Tuning::Torture)?;
    let mut rabbitmq = RabbitMq::start()?;
    postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
    let (mut processes, servers) =
        parts::start(workspace, &postgres.url(DATABASE), &rabbitmq.url())?;

    let load = load::Load::start(&servers, seed);
    let mut chaos = Chaos::new(seed, processes.len());
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        chaos.strike(&mut processes, &mut postgres, &mut rabbitmq)?;
        chaos.pause(100, 900)?;
    }
    output::step("quiet now: everything comes back and ends");
    processes.revive()?;
    let sent = load.stop()?;
    settle(&postgres)?;
    let findings = audit::findings(&postgres, DATABASE, &sent)?;
    processes.stop(GRACE)?;

    output::data(&chaos.toll(&processes).to_string());
    output::data(&audit::summary(&postgres, DATABASE, &sent)?);
    if findings.is_empty() {
        output::data("nothing lost, nothing ended twice, no gap, nothing stuck");
        return Ok(());
    }
    let logs = processes.keep();
    bail!("seed {seed}:\n{}\nthe logs are in {}", findings.join("\n"), logs.display())
}

/// Waits until nothing waits, nothing runs and the outbox is empty.
fn settle(postgres: &Postgres) -> Result<()> {
    let start = Instant::now();
    loop {
        let left = postgres.sql(
            DATABASE,
            "SELECT (SELECT count(*) FROM kodus_workflow.tasks
                     WHERE status IN ('PENDING', 'IN_PROGRESS') OR stop_by IS NOT NULL)
                  + (SELECT count(*) FROM kodus_workflow.task_outbox)",
        )?;
        if left == "0" {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            output::note(&format!("{left} rows are still open after {} s", PATIENCE.as_secs()));
            return Ok(());
        }
        interrupt::sleep(Duration::from_millis(500))?;
    }
}
