//! `cargo xtask torture NAME`: scenarios that kill real processes while work goes on, and then look
//! whether anything was lost or done twice. Longer than a test may take, so not among the tests.

mod all;
mod chaos;
mod evidence;
mod extract;
mod fleet;
mod half;
mod peers;
mod processes;
mod rules;
mod servers;
mod tasks;

use anyhow::{Context, Result, bail, ensure};

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
        name: "peers",
        about: "dlt, Airbyte's CDK, Scrapy and Lavra, each killed at half of an extraction and started again",
        run: peers::run,
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

/// How much of it, by the flag `measure`, and the seed (`--seed`) of what is left to chance.
fn arguments(args: &[String], measure: &str, usual: u64) -> Result<(u64, u64)> {
    let (mut much, mut seed) = (usual, u64::from(std::process::id()));
    for pair in args.chunks(2) {
        let [name, value] = pair else { bail!("{} needs a value", pair.join(" ")) };
        let place = match name.as_str() {
            "--seed" => &mut seed,
            name if name == measure => &mut much,
            other => bail!("it takes {measure} N and --seed N, not {other}"),
        };
        *place = value.parse().with_context(|| format!("{name} takes a number"))?;
    }
    ensure!(much > 0, "{measure} must be more than 0");
    Ok((much, seed))
}

fn list() -> String {
    let lines: Vec<String> = SCENARIOS
        .iter()
        .map(|scenario| format!("{:<12}{}", scenario.name, scenario.about))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_much_and_a_seed_may_be_said() {
        let said = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            arguments(&words, "--kills", 200)
        };
        assert_eq!(said("").unwrap().0, 200);
        assert_eq!(said("--seed 7 --kills 3").unwrap(), (3, 7));
        for wrong in ["--kills", "--kills many", "--kills 0", "--seconds 3"] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
    }
}
