//! `cargo xtask torture NAME`: scenarios that kill real processes while work goes on, and then look
//! whether anything was lost or done twice. Longer than a test may take, so not among the tests.

mod all;
mod extract;
mod fleet;
mod servers;
mod tasks;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use crate::{output, scratch};

/// One scenario.
struct Scenario {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace, &[String]) -> Result<()>,
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "servers",
        about: "the private servers themselves: stopped, killed, started again, data kept",
        run: servers::run,
    },
    Scenario {
        name: "tasks",
        about: "servers and runners killed and frozen while tasks go through (--seconds 120, --seed N)",
        run: tasks::run,
    },
    Scenario {
        name: "extract",
        about: "extractions killed at random, on DuckDB and by three on PostgreSQL (--kills 200, --seed N)",
        run: extract::run,
    },
    Scenario {
        name: "fleet",
        about: "thousands of simulated fleets whose orchestrators are killed, and a day of a thousand workers (--seeds 2000, --seed N)",
        run: fleet::run,
    },
    Scenario {
        name: "all",
        about: "the demonstration as processes on PostgreSQL and RabbitMQ, everything killed, then every table audited (--seconds 300, --seed N)",
        run: all::run,
    },
];

pub(crate) fn run(workspace: &Workspace, name: Option<&str>, args: &[String]) -> Result<()> {
    let Some(name) = name else {
        output::data(&list());
        return Ok(());
    };
    let Some(scenario) = SCENARIOS.iter().find(|scenario| scenario.name == name) else {
        bail!("there is no torture `{name}`. There are:\n{}", list());
    };
    scratch::sweep();
    (scenario.run)(workspace, args)
}

fn list() -> String {
    let lines: Vec<String> = SCENARIOS
        .iter()
        .map(|scenario| format!("{:<12}{}", scenario.name, scenario.about))
        .collect();
    lines.join("\n")
}
