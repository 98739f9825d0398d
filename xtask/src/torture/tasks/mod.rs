//! `cargo xtask torture tasks`: servers and runners are killed and frozen at random, PostgreSQL and
//! RabbitMQ are stopped and started, while tasks are created, cancelled and retried over HTTP. Then an
//! auditor reads the tables.

pub(super) mod audit;
mod load;
mod parts;

use std::time::{Duration, Instant};

use anyhow::Result;

use self::load::Load;
use super::chaos::Chaos;
use super::evidence;
use super::processes::Processes;
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

struct Scene {
    // Dropped before the servers that they need.
    processes: Processes,
    chaos: Chaos,
    postgres: Postgres,
    rabbitmq: RabbitMq,
}

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
    let (postgres, rabbitmq) = (Postgres::start(Tuning::Torture)?, RabbitMq::start()?);
    postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
    let (processes, servers) = parts::start(workspace, &postgres.url(DATABASE), &rabbitmq.url())?;
    let chaos = Chaos::new(seed, processes.len());
    let mut scene = Scene { processes, chaos, postgres, rabbitmq };

    let load = Load::start(&servers, seed);
    let mut findings = Vec::new();
    let outcome = scene.torture(Duration::from_secs(seconds), load, &mut findings);
    let Scene { processes, postgres, rabbitmq, .. } = scene;
    let keep = || evidence::keep(processes, &postgres, &rabbitmq, DATABASE);
    evidence::judge(outcome, &findings, seed, keep)?;
    output::data("nothing lost, nothing ended twice, no gap, nothing stuck");
    Ok(())
}

impl Scene {
    fn torture(&mut self, length: Duration, load: Load, findings: &mut Vec<String>) -> Result<()> {
        let end = Instant::now() + length;
        while Instant::now() < end {
            self.chaos.strike(&mut self.processes, &mut self.postgres, &mut self.rabbitmq)?;
            self.chaos.pause(100, 900)?;
        }
        output::step("quiet now: everything comes back and ends");
        self.processes.revive()?;
        let sent = load.stop()?;
        settle(&self.postgres)?;
        findings.extend(audit::findings(&self.postgres, DATABASE, &sent)?);
        self.processes.stop(GRACE)?;
        output::data(&self.chaos.toll(&self.processes).to_string());
        output::data(&audit::summary(&self.postgres, DATABASE, &sent)?);
        Ok(())
    }
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
