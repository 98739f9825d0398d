//! `bench tasks`: each measurement on a fresh database of one PostgreSQL, system after system for one
//! size, so that a slow minute of the machine hits all of them.

mod bars;
mod driver;
mod figures;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::failures::Failures;
use crate::servers::{Postgres, RabbitMq, Tuning};
use crate::workspace::Workspace;
use crate::{apt, duckdb, output};
use driver::{Drivers, System};
use figures::{Figure, Figures, SIZES};

const MESSAGES: &str = "50000";

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let rounds = rounds(args)?;
    apt::ensure(&[apt::Package::PostgreSql, apt::Package::RabbitMq])?;
    duckdb::ensure(workspace)?;
    let mut run = Run::prepare(workspace)?;
    for round in 1..=rounds {
        for size in SIZES {
            for system in System::ALL {
                output::step(&format!(
                    "round {round} of {rounds}: {}, {size} tasks",
                    system.title()
                ));
                run.note(|run| run.create_complete(system, size))?;
            }
        }
        for system in System::ALL {
            output::step(&format!("round {round} of {rounds}: {}, pick-up", system.title()));
            run.note(|run| run.pickup(system))?;
        }
        output::step(&format!("round {round} of {rounds}: RabbitMQ"));
        run.note(Run::publish)?;
        run.note(Run::deliver)?;
    }
    output::data(&format!("{}\n\n{}", run.figures.table(), bars::judge(&run.figures)));
    run.failures.end()
}

fn rounds(args: &[String]) -> Result<usize> {
    match args {
        [] => Ok(3),
        [flag, count] if flag == "--rounds" => count.parse().context("--rounds wants a number"),
        other => bail!("`bench tasks` takes `--rounds N`, not `{}`", other.join(" ")),
    }
}

/// The servers, the drivers, and what came of them so far.
struct Run<'a> {
    drivers: Drivers<'a>,
    postgres: Postgres,
    rabbitmq: RabbitMq,
    figures: Figures,
    failures: Failures,
}

impl<'a> Run<'a> {
    fn prepare(workspace: &'a Workspace) -> Result<Self> {
        let drivers = Drivers::build(workspace)?;
        let lavra = drivers.build_lavra();
        let postgres = Postgres::start(Tuning::Bench)?;
        let rabbitmq = RabbitMq::start()?;
        let mut run = Self {
            drivers,
            postgres,
            rabbitmq,
            figures: Figures::default(),
            failures: Failures::default(),
        };
        run.note(|_| lavra)?;
        Ok(run)
    }

    fn note(&mut self, measure: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let measured = measure(self);
        self.failures.note(measured)
    }

    fn create_complete(&mut self, system: System, size: usize) -> Result<()> {
        let printed = self.measure(system, &["create-complete", "--n", &size.to_string()])?;
        self.figures.take(
            system,
            &[Figure::CreatePerSecond(size), Figure::CompletePerSecond(size)],
            &printed,
        )
    }

    fn pickup(&mut self, system: System) -> Result<()> {
        let printed = self.measure(system, &["pickup"])?;
        self.figures.take(system, &[Figure::PickupMedian, Figure::PickupWorst], &printed)
    }

    fn publish(&mut self) -> Result<()> {
        let printed = self.drivers.publish(&["--n", MESSAGES, "--broker", &self.rabbitmq.url()])?;
        output::note(&printed.to_string());
        self.figures.take_publish(&printed)
    }

    fn deliver(&mut self) -> Result<()> {
        let broker = self.rabbitmq.url();
        let printed =
            self.measure(System::Lavra, &["rabbit", "--n", MESSAGES, "--broker", &broker])?;
        self.figures.take_deliver(&printed)
    }

    /// On a database of its own that is gone afterwards, with nothing left to be written from before.
    fn measure(&self, system: System, args: &[&str]) -> Result<Value> {
        let database = system.database();
        self.postgres
            .sql("postgres", &format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"))?;
        self.postgres.sql("postgres", &format!("CREATE DATABASE {database}"))?;
        self.postgres.sql("postgres", "CHECKPOINT")?;
        let url = self.postgres.url(database);
        let arguments: Vec<&str> =
            args.iter().copied().chain(["--database", url.as_str()]).collect();
        let printed = self
            .drivers
            .measure(system, &arguments)
            .with_context(|| format!("{}: {}", system.title(), args.join(" ")))?;
        self.postgres.sql("postgres", &format!("DROP DATABASE {database} WITH (FORCE)"))?;
        output::note(&printed.to_string());
        Ok(printed)
    }
}
