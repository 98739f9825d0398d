//! `cargo xtask bench NAME`: Lavra beside other systems, in one run on one machine with the same
//! servers, so that the ratios mean something where the figures do not.
//!
//! It is a report: bars that are missed do not make it fail, measurements that did not run do.

mod bars;
mod extract;
mod failures;
mod fleet;
pub(crate) mod numbers;
mod pages;
mod tasks;
mod writer;

use anyhow::{Result, bail, ensure};

use crate::workspace::Workspace;
use crate::{output, scratch};
use failures::Failures;

/// One comparison.
struct Comparison {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace, &[String]) -> Result<()>,
}

const ALL: &str = "all";

const COMPARISONS: &[Comparison] = &[
    Comparison {
        name: "extract",
        about:
            "an API of 960 and 3,840 pages into DuckDB: medians of three rounds, or `-- --rounds N`;
            Lavra on 100,000 pages: `-- --long`; with a binary that is there: `-- --lavra FILE`",
        run: extract::run,
    },
    Comparison {
        name: "fleet",
        about: "how long a worker of a hundred is idle while missions wait, on PostgreSQL; with a binary
            that is there: `-- --lavra FILE`",
        run: fleet::run,
    },
    Comparison {
        name: "pages",
        about: "Mission Control over 100,000 missions and 1,000,000 entries of the log, on PostgreSQL; with a
            binary that is there: `-- --lavra FILE`",
        run: pages::run,
    },
    Comparison {
        name: "tasks",
        about: "task systems on PostgreSQL, and delivery by RabbitMQ: medians of three rounds, or `-- --rounds N`",
        run: tasks::run,
    },
    Comparison {
        name: "writer",
        about: "JSON into a table of PostgreSQL, beside \\copy, execute_batch and dlt: medians of three rounds,
            or `-- --rounds N`; without the body of 2 GB: `-- --quick`",
        run: writer::run,
    },
];

pub(crate) fn run(workspace: &Workspace, name: Option<&str>, args: &[String]) -> Result<()> {
    let Some(name) = name else {
        output::data(&list());
        return Ok(());
    };
    scratch::sweep();
    if name == ALL {
        return all(workspace, args);
    }
    let Some(comparison) = COMPARISONS.iter().find(|comparison| comparison.name == name) else {
        bail!("there is no bench `{name}`. There are:\n{}", list());
    };
    (comparison.run)(workspace, args)
}

/// One after the other; what cannot run does not keep the rest from running.
fn all(workspace: &Workspace, args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "`bench all` takes no arguments: each bench has its own");
    let mut failures = Failures::default();
    for comparison in COMPARISONS {
        output::step(&format!("bench {}", comparison.name));
        failures.note((comparison.run)(workspace, &[]))?;
    }
    output::step("bench extract -- --long");
    failures.note(extract::run(workspace, &["--long".to_owned()]))?;
    failures.end()
}

fn list() -> String {
    let mut lines: Vec<String> = COMPARISONS
        .iter()
        .map(|comparison| format!("{:<12}{}", comparison.name, comparison.about))
        .collect();
    lines.push(format!("{ALL:<12}each of them, and the long extraction: about an hour"));
    lines.join("\n")
}
