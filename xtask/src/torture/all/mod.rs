//! `cargo xtask torture all`: what the demonstration shows, as separate processes on PostgreSQL and
//! RabbitMQ. Everything is killed and frozen at random, the world and the servers too, while people go on
//! making work; then all of it ends, and every table is held against the world and against what was promised.

mod api;
mod audit;
mod furnish;
mod outside;
mod parts;
mod people;
mod promises;

use std::time::{Duration, Instant};

use anyhow::Result;

use self::audit::floor;
use self::parts::Parts;
use self::people::People;
use super::chaos::Chaos;
use super::evidence;
use crate::servers::{PACKAGES, Postgres, RabbitMq, Tuning};
use crate::workspace::Workspace;
use crate::{apt, duckdb, exec, interrupt, output};

const DATABASE: &str = "torture";
/// How long everything may take to end once nothing is killed any more.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a new writer may take to clear away what its dead left behind.
const TIDYING: Duration = Duration::from_secs(15);

struct Scene {
    // Dropped before the servers that they need.
    parts: Parts,
    people: People,
    chaos: Chaos,
    postgres: Postgres,
    rabbitmq: RabbitMq,
}

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (seconds, seed) = super::arguments(args, "--seconds", 300)?;
    output::step(&format!("torture all: {seconds} s, seed {seed}"));
    apt::ensure(PACKAGES)?;
    duckdb::ensure(workspace)?;
    exec::run_beside_data(workspace.cargo().args(["build", "--workspace", "--bin", "lavra"]))?;
    let (postgres, rabbitmq) = (Postgres::start(Tuning::Torture)?, RabbitMq::start()?);
    postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
    let parts = Parts::new(workspace, &postgres.url(DATABASE), &rabbitmq.url(), seed)?;
    let (people, chaos) = (People::new(&parts), Chaos::new(seed, parts.processes.len()));
    let mut scene = Scene { parts, people, chaos, postgres, rabbitmq };

    let mut findings = Vec::new();
    let outcome = scene.torture(seconds, &mut findings);
    let Scene { parts, postgres, rabbitmq, .. } = scene;
    let keep = || evidence::keep(parts.processes, &postgres, &rabbitmq, DATABASE);
    evidence::judge(outcome, &findings, seed, keep)?;
    output::data("nothing lost, nothing twice, nothing held");
    Ok(())
}

impl Scene {
    fn torture(&mut self, seconds: u64, findings: &mut Vec<String>) -> Result<()> {
        self.parts.begin()?;
        furnish::furnish(&self.parts)?;
        let struck = self.strike(Duration::from_secs(seconds));
        let toll = self.chaos.toll(&self.parts.processes);
        output::data(&toll.to_string());
        struck?;
        output::step("quiet now: everything comes back and ends");
        let begun = Instant::now();
        self.parts.processes.revive()?;
        self.settle(findings)?;
        self.tidy()?;
        output::note(&format!("quiet after {} s", begun.elapsed().as_secs()));
        let promises = &self.people.promises;
        let amounts = audit::audit(&self.postgres, DATABASE, &self.parts, promises, findings);
        output::data(&audit::summary(&self.postgres, DATABASE, &amounts));
        findings.extend(floor::too_little(seconds, &amounts, &toll));
        if seconds < floor::LONG_ENOUGH {
            output::note("a run this short need not have killed everything");
        }
        self.parts.stop()
    }

    fn strike(&mut self, length: Duration) -> Result<()> {
        let end = Instant::now() + length;
        while Instant::now() < end {
            let processes = &mut self.parts.processes;
            self.chaos.strike(processes, &mut self.postgres, &mut self.rabbitmq)?;
            self.people.tend();
            self.chaos.pause(300, 1800)?;
        }
        Ok(())
    }

    /// Waits until all that was asked for is done, and everybody has let go of it.
    fn settle(&mut self, findings: &mut Vec<String>) -> Result<()> {
        let start = Instant::now();
        self.people.calm();
        while !self.people.finish() || audit::open(&self.postgres, DATABASE)? > 0 {
            self.parts.processes.restart()?;
            if start.elapsed() > PATIENCE {
                findings.push(format!("not all is done after {} s", PATIENCE.as_secs()));
                return Ok(());
            }
            interrupt::sleep(Duration::from_secs(1))?;
        }
        Ok(())
    }

    /// Has a new writer remove the secrets of jobs that ended when nobody was there to do it. What it
    /// leaves is found later.
    fn tidy(&mut self) -> Result<()> {
        self.parts.replace_writers()?;
        let start = Instant::now();
        while audit::secrets(&self.postgres, DATABASE)? > 0 && start.elapsed() < TIDYING {
            interrupt::sleep(Duration::from_millis(500))?;
        }
        Ok(())
    }
}
