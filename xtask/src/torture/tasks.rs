//! `cargo xtask torture tasks`: servers and runners are killed and frozen at random, PostgreSQL and
//! RabbitMQ are stopped and started, while tasks are created, cancelled and retried over HTTP. Then an
//! auditor reads the tables.

pub(super) mod audit;
pub(super) mod chaos;
mod fleet;
mod load;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::apt;
use crate::output;
use crate::random::Random;
use crate::servers::{PACKAGES, Postgres, RabbitMq, Tuning};
use crate::workspace::Workspace;
use crate::{duckdb, exec, interrupt};

const DATABASE: &str = "torture";
/// How long everything may take to end once nothing is killed any more.
const PATIENCE: Duration = Duration::from_secs(120);

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
    let mut fleet = fleet::Fleet::start(workspace, &postgres.url(DATABASE), &rabbitmq.url())?;

    let load = load::Load::start(&fleet.servers(), seed);
    let mut random = Random::new(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut toll = chaos::Toll::default();
    while Instant::now() < end {
        chaos::strike(&mut random, &mut fleet, &mut postgres, &mut rabbitmq, &mut toll)?;
        interrupt::sleep(Duration::from_millis(random.between(100, 900)))?;
    }
    output::step("quiet now: everything comes back and ends");
    fleet.revive()?;
    let sent = load.stop()?;
    settle(&postgres)?;
    let findings = audit::findings(&postgres, DATABASE, &sent)?;
    fleet.stop()?;

    output::data(&toll.to_string());
    output::data(&audit::summary(&postgres, DATABASE, &sent)?);
    if findings.is_empty() {
        output::data("nothing lost, nothing ended twice, no gap, nothing stuck");
        return Ok(());
    }
    bail!("seed {seed}:\n{}", findings.join("\n"))
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
