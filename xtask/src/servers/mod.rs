//! The private servers of a test run, and `cargo xtask servers`, which keeps them up for runs by hand.

mod pgbouncer;
mod postgres;
mod rabbitmq;
mod url;

use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

pub(crate) use self::pgbouncer::PgBouncer;
pub(crate) use self::postgres::{Postgres, StopMode, Tuning};
pub(crate) use self::rabbitmq::RabbitMq;
pub(crate) use self::url::ServerUrl;
use crate::apt::{self, Package};
use crate::interrupt::{self, Interrupted};
use crate::workspace::Workspace;
use crate::{duckdb, exec, output, python, scratch};

/// What the servers and the tests around them need of Debian.
pub(crate) const PACKAGES: &[Package] = &[
    Package::PostgreSql,
    Package::PgBouncer,
    Package::RabbitMq,
    Package::Faketime,
    Package::Python,
];

const POSTGRES: &str = "LAVRA_TEST_POSTGRES";
const PGBOUNCER: &str = "LAVRA_TEST_PGBOUNCER";
const AMQP: &str = "LAVRA_TEST_AMQP";
const FAKETIME: &str = "LAVRA_TEST_FAKETIME";
const PYTHON: &str = "LAVRA_TEST_PYTHON";

/// A server of ours, or one that the environment names.
#[derive(Debug)]
enum Source<S> {
    Private(S),
    Given(String),
}

/// Everything a test may ask for. Dropped, the private ones stop and leave nothing behind.
#[derive(Debug)]
pub(crate) struct Servers {
    pgbouncer: PgBouncer,
    postgres: Source<Postgres>,
    rabbitmq: Source<RabbitMq>,
    python: PathBuf,
}

impl Servers {
    /// Starts all of them, side by side: RabbitMQ alone takes most of the time.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self> {
        scratch::sweep();
        let python = python::of_the_tests(workspace)?;
        let start = Instant::now();
        let (postgres, rabbitmq) = std::thread::scope(|scope| {
            let rabbitmq = scope.spawn(|| source(AMQP, RabbitMq::start));
            let postgres = source(POSTGRES, || Postgres::start(Tuning::Tests));
            (postgres, rabbitmq.join())
        });
        let postgres = postgres?;
        let rabbitmq =
            rabbitmq.map_err(|_| anyhow::anyhow!("the thread that starts RabbitMQ panicked"))??;
        let pgbouncer = PgBouncer::start(&ServerUrl::parse(&postgres_url(&postgres))?)?;
        output::step(&format!("servers ready in {:.1} s", start.elapsed().as_secs_f32()));
        Ok(Self { pgbouncer, postgres, rabbitmq, python })
    }

    /// What the tests read.
    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, String)>> {
        let rabbitmq = match &self.rabbitmq {
            Source::Private(server) => server.url(),
            Source::Given(url) => url.clone(),
        };
        Ok(vec![
            (POSTGRES, postgres_url(&self.postgres)),
            (PGBOUNCER, self.pgbouncer.url().to_owned()),
            (AMQP, rabbitmq),
            (FAKETIME, Package::Faketime.path()?.display().to_string()),
            (PYTHON, self.python.display().to_string()),
        ])
    }
}

fn source<S>(variable: &str, start: impl FnOnce() -> Result<S>) -> Result<Source<S>> {
    match std::env::var(variable) {
        Ok(url) if !url.is_empty() => Ok(Source::Given(url)),
        Ok(_) | Err(_) => start().map(Source::Private),
    }
}

fn postgres_url(postgres: &Source<Postgres>) -> String {
    match postgres {
        Source::Private(server) => server.url("postgres"),
        Source::Given(url) => url.clone(),
    }
}

/// `cargo xtask servers`: for the command given, or until told to stop.
pub(crate) fn run(workspace: &Workspace, command: &[String]) -> Result<()> {
    apt::ensure(PACKAGES)?;
    duckdb::ensure(workspace)?;
    let servers = Servers::start(workspace)?;
    let environment = servers.environment()?;
    if let [program, args @ ..] = command {
        return exec::run(workspace.command(program).args(args).envs(environment));
    }
    for (name, value) in environment {
        output::data(&format!("export {name}='{value}'"));
    }
    output::note("servers stay up until stdin closes or Ctrl-C");
    stay()
}

/// Waits for a signal or for the end of stdin. One that is `/dev/null` was never open: a background job has it.
fn stay() -> Result<()> {
    static CLOSED: AtomicBool = AtomicBool::new(false);
    let stdin = std::fs::read_link("/proc/self/fd/0").context("cannot see what stdin is")?;
    if stdin.as_os_str() != "/dev/null" {
        std::thread::spawn(|| {
            let mut buffer = [0; 256];
            while matches!(std::io::stdin().read(&mut buffer), Ok(read) if read > 0) {}
            CLOSED.store(true, Ordering::SeqCst);
        });
    }
    while !CLOSED.load(Ordering::SeqCst) {
        match interrupt::sleep(Duration::from_millis(50)) {
            Err(error) if error.is::<Interrupted>() => break,
            other => other?,
        }
    }
    Ok(())
}
