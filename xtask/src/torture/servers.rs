//! The handles that the other scenarios rely on: a server that was stopped or killed comes back on the
//! same address, with the data it had.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::apt;
use crate::output;
use crate::servers::{PACKAGES, Postgres, RabbitMq, StopMode, Tuning};
use crate::workspace::Workspace;

type End = fn(&mut Postgres) -> Result<()>;

pub(crate) fn run(_workspace: &Workspace, args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "`torture servers` takes no arguments");
    apt::ensure(PACKAGES)?;
    let mut postgres = timed("PostgreSQL starts", || Postgres::start(Tuning::Torture))?;
    postgres.sql("postgres", "CREATE TABLE survivor (step int)")?;
    let ways: [(&str, End); 3] = [
        ("PostgreSQL stops fast", |server| server.stop(StopMode::Fast)),
        ("PostgreSQL stops at once", |server| server.stop(StopMode::Immediate)),
        ("PostgreSQL is killed", Postgres::kill),
    ];
    for (step, (what, end)) in ways.into_iter().enumerate() {
        postgres.sql("postgres", &format!("INSERT INTO survivor VALUES ({step})"))?;
        timed(what, || end(&mut postgres))?;
        ensure!(
            postgres.sql("postgres", "SELECT 1").is_err(),
            "PostgreSQL answers although it was stopped"
        );
        timed("PostgreSQL starts again", || postgres.resume())?;
        let rows = postgres.sql("postgres", "SELECT count(*) FROM survivor")?;
        ensure!(
            rows == (step + 1).to_string(),
            "PostgreSQL lost rows: {rows} are left of {}",
            step + 1
        );
    }

    let mut rabbitmq = timed("RabbitMQ starts", RabbitMq::start)?;
    timed("RabbitMQ stops", || rabbitmq.stop())?;
    timed("RabbitMQ starts again", || rabbitmq.resume())?;
    timed("RabbitMQ is killed", || rabbitmq.kill())?;
    timed("RabbitMQ starts again", || rabbitmq.resume())
}

fn timed<T>(what: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = act()?;
    output::step(&format!("{what} ({:.1} s)", start.elapsed().as_secs_f32()));
    Ok(result)
}
