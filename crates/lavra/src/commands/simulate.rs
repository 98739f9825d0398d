//! `lavra simulate`.

use std::time::{Duration, Instant};

use anyhow::Context;
use lavra_world::FleetFaults;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::cli::Simulate;
use crate::exit::{BadUsage, Exit};
use crate::printer::Printer;
use crate::simulate::{self, Scenario};

pub(crate) fn run(args: &Simulate, printer: &Printer) -> anyhow::Result<Exit> {
    let faults = match args.faults.as_str() {
        "none" => FleetFaults::default(),
        "all" => FleetFaults::all(),
        text => serde_json::from_str(text)
            .map_err(|error| BadUsage(format!("--faults is none, all or JSON: {error}")))?,
    };
    if args.workers == 0 || args.missions == 0 || args.orchestrators == 0 {
        return Err(BadUsage("there is nothing to simulate with none of them".into()).into());
    }
    let scenario = |seed: u64| {
        let (mut workers, mut orchestrators) = (args.workers, args.orchestrators);
        if args.vary {
            let mut dice = SmallRng::seed_from_u64(seed);
            workers = dice.random_range(1..=workers);
            orchestrators = dice.random_range(1..=orchestrators);
        }
        Scenario {
            seed,
            workers,
            missions: args.missions,
            proxies: args.proxies.unwrap_or(workers + workers / 4 + 2),
            writers: 1,
            orchestrators,
            faults: faults.clone(),
            chaos: args.chaos,
            is_guarded: !args.break_the_guard,
            at_most: Duration::from_secs(args.days * 24 * 3600),
        }
    };
    let begun = Instant::now();
    if args.seeds <= 1 {
        let report = simulate::run(&scenario(args.seed))?;
        printer.note(&format!("simulated in {:.1} s", begun.elapsed().as_secs_f64()));
        if args.timeline {
            report.log.iter().for_each(|line| printer.data(line));
        }
        if printer.is_json() {
            printer.json(&json!(report));
        } else {
            printer.data(&report.text());
        }
        return match report.wrong.as_slice() {
            [] => Ok(Exit::Done),
            wrong => Err(anyhow::anyhow!("seed {} is wrong:\n{}", args.seed, wrong.join("\n"))),
        };
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failed = std::thread::scope(|scope| {
        let each = (0..threads as u64).map(|first| {
            let scenario = &scenario;
            scope.spawn(move || {
                let seeds = (args.seed..args.seed + args.seeds).skip(first as usize);
                seeds
                    .step_by(threads)
                    .filter_map(|seed| match simulate::run(&scenario(seed)) {
                        Ok(report) => {
                            let first = report.wrong.first()?;
                            Some(anyhow::anyhow!("seed {seed}: {first}"))
                        }
                        Err(error) => Some(error),
                    })
                    .collect::<Vec<_>>()
            })
        });
        let running: Vec<_> = each.collect();
        let ended = running.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.collect::<Result<Vec<_>, _>>()
    });
    let failed: Vec<anyhow::Error> = failed
        .map_err(|_| anyhow::anyhow!("a simulation panicked"))
        .context("the seeds")?
        .into_iter()
        .flatten()
        .collect();
    let took = begun.elapsed().as_secs_f64();
    printer.note(&format!("{} seeds in {took:.1} s, {} failed", args.seeds, failed.len()));
    for error in &failed {
        printer.data(&format!("{error:#}"));
    }
    Ok(match failed.len() {
        0 => Exit::Done,
        count => Exit::WorkRemains(format!("{count} seeds failed")),
    })
}
