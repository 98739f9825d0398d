//! `cargo xtask torture all`: what the demonstration shows, as separate processes on PostgreSQL and
//! RabbitMQ. Everything is killed and frozen at random, the world and the servers too, while people go on
//! making work; then all of it ends, and every table is held against the world.

mod audit;
mod parts;
mod people;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use self::parts::Parts;
use self::people::People;
use super::tasks::chaos;
use crate::random::Random;
use crate::servers::{PACKAGES, Postgres, RabbitMq, Tuning};
use crate::workspace::Workspace;
use crate::{apt, duckdb, exec, interrupt, output};

const DATABASE: &str = "torture";
/// How long everything may take to end once nothing is killed any more.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often the servers were ended.
#[derive(Debug, Default)]
struct Toll {
    postgres: u32,
    rabbitmq: u32,
}

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (seconds, seed) = super::arguments(args, "--seconds", 300)?;
    output::step(&format!("torture all: {seconds} s, seed {seed}"));
    apt::ensure(PACKAGES)?;
    duckdb::ensure(workspace)?;
    exec::run_beside_data(workspace.cargo().args(["build", "--workspace", "--bin", "lavra"]))?;
    let mut postgres = Postgres::start(Tuning::Torture)?;
    let mut rabbitmq = RabbitMq::start()?;
    postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
    let mut parts = Parts::start(workspace, &postgres.url(DATABASE), &rabbitmq.url(), seed)?;
    let mut people = People::new(&parts);
    people.furnish(&parts)?;

    let mut random = Random::new(seed);
    let mut toll = Toll::default();
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        strike(&mut random, &mut parts, &mut postgres, &mut rabbitmq, &mut toll)?;
        people.tend();
        interrupt::sleep(Duration::from_millis(random.between(300, 1800)))?;
    }
    output::step("quiet now: everything comes back and ends");
    parts.revive()?;
    settle(&mut people, &mut parts, &postgres)?;
    let audited = audit::audit(&postgres, DATABASE, &parts)?;
    let table = parts.toll(&[("PostgreSQL", toll.postgres), ("RabbitMQ", toll.rabbitmq)]);
    output::data(&table);
    output::data(&audited.summary);
    if audited.findings.is_empty() {
        parts.stop()?;
        output::data("nothing lost, nothing twice, nothing held");
        return Ok(());
    }
    let logs = parts.keep();
    bail!("seed {seed}:\n{}\nthe logs are in {}", audited.findings.join("\n"), logs.display())
}

/// One blow. Most fall on the processes, a few on the servers.
fn strike(
    random: &mut Random,
    parts: &mut Parts,
    postgres: &mut Postgres,
    rabbitmq: &mut RabbitMq,
    toll: &mut Toll,
) -> Result<()> {
    parts.thaw();
    // What ended by itself, because a server was away when it began, is begun again.
    parts.restart()?;
    let place = random.below(parts.len() as u64) as usize;
    match random.below(100) {
        0..65 => parts.kill(place)?,
        // Often past the lease (2.5 s), sometimes not.
        65..92 => parts.freeze(place, Duration::from_millis(random.between(200, 6000))),
        92..96 => {
            chaos::end_postgres(random, postgres)?;
            toll.postgres += 1;
        }
        _ => {
            chaos::end_rabbitmq(random, rabbitmq)?;
            toll.rabbitmq += 1;
        }
    }
    Ok(())
}

/// Waits until all that was asked for is done, and everybody has let go of it.
fn settle(people: &mut People, parts: &mut Parts, postgres: &Postgres) -> Result<()> {
    let start = Instant::now();
    while !people.finish() || audit::held(postgres, DATABASE)? > 0 {
        parts.restart()?;
        if start.elapsed() > PATIENCE {
            output::note(&format!("not all is done after {} s", PATIENCE.as_secs()));
            return Ok(());
        }
        interrupt::sleep(Duration::from_secs(1))?;
    }
    Ok(())
}
