//! `bench extract -- --long`: Lavra alone on a hundred thousand pages. Its memory has to stay where it
//! is, and its pace too: anything that grows with what is stored already would show here.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::lavra::Lavra;
use super::process::{self, Process};
use super::world::World;
use super::{fresh, size};
use crate::bench::bars::{Rule, line, ratio};
use crate::bench::numbers::{field, thousands};
use crate::scratch::Scratch;
use crate::user::User;
use crate::{exec, output};

const PAGES: usize = 100_000;
const PAGE_BYTES: usize = 90_000;
const FIRST: usize = 1000;
const STEP: usize = 10_000;
/// More than the pages without any compression.
const SPACE: u64 = 12_000_000_000;

pub(crate) fn run(lavra: &Lavra) -> Result<()> {
    let scratch = Scratch::new("bench", &User::Myself)?;
    check_space(scratch.path())?;
    let world = World::start(lavra, PAGES, PAGE_BYTES, scratch.path())?;
    let directory = fresh(scratch.path())?;
    let database = directory.join("pages.duckdb");
    output::step(&format!("Lavra, {PAGES} pages of {PAGE_BYTES} bytes"));
    let process = process::measure(&mut lavra.extract(&world, &directory, &database)?, &directory)?;
    drop(world);
    let file_bytes = size(&database)?;
    let stored = lavra.count(&database)?;
    ensure!(stored == (PAGES, PAGES), "{stored:?} rows and pages are in the file, not {PAGES}");
    let (first, steps) = (paces(lavra, &database, FIRST)?, paces(lavra, &database, STEP)?);
    output::data(&report(&process, file_bytes, &first, &steps));
    Ok(())
}

fn check_space(directory: &Path) -> Result<()> {
    let mut df = std::process::Command::new("df");
    let said = exec::capture(df.args(["--output=avail", "--block-size=1"]).arg(directory))?;
    let free: u64 = said.lines().last().unwrap_or_default().trim().parse().context("df")?;
    ensure!(
        free >= SPACE,
        "{} has {free} bytes free, and this wants {SPACE}: set TMPDIR",
        directory.display()
    );
    Ok(())
}

/// Pages per second of each so many pages, in the order in which they came.
fn paces(lavra: &Lavra, database: &Path, step: usize) -> Result<Vec<f64>> {
    let rows = lavra.sql(
        database,
        &format!(
            "WITH numbered AS (
                 SELECT epoch_us(fetched_at) AS at,
                        (row_number() OVER (ORDER BY fetched_at) - 1) // {step} AS step
                 FROM psa.bench_pages
             )
             SELECT step, min(at) AS first, max(at) AS last FROM numbered GROUP BY step ORDER BY step"
        ),
    )?;
    rows.iter().map(|row| pace(row, step)).collect()
}

fn pace(row: &Value, step: usize) -> Result<f64> {
    Ok((step - 1) as f64 * 1e6 / (field(row, "last")? - field(row, "first")?))
}

fn report(process: &Process, file_bytes: u64, firsts: &[f64], steps: &[f64]) -> String {
    let mut lines = vec![
        format!(
            "{:<32}{:>12}",
            "pages/s, whole process",
            thousands(PAGES as f64 / process.seconds)
        ),
        format!("{:<32}{:>12.1}", "cpu s", process.processor_seconds),
        format!("{:<32}{:>12.0}", "peak MB", process.peak_bytes as f64 / 1e6),
        format!("{:<32}{:>12.1}", "file MB", file_bytes as f64 / 1e6),
    ];
    let first = firsts.first().copied();
    let mut pace =
        |what: String, value: f64| lines.push(format!("{what:<32}{:>12}", thousands(value)));
    if let Some(first) = first {
        pace(format!("pages/s, the first {FIRST}"), first);
    }
    for (number, value) in steps.iter().enumerate() {
        pace(format!("pages/s, to {}", (number + 1) * STEP), *value);
    }
    let peak = Some(process.peak_bytes as f64 / 1e6);
    let slowest = steps.iter().copied().min_by(f64::total_cmp);
    let last = steps.last().copied();
    lines.push(String::new());
    lines.push(line("peak memory, MB", peak, Rule::AtMost(200.0)));
    lines.push(line(
        &format!("pages/s of the last {STEP} / of the first {FIRST}"),
        ratio(last, first),
        Rule::AtLeast(0.85),
    ));
    lines.push(line(
        &format!("pages/s of the slowest {STEP} / of the first"),
        ratio(slowest, steps.first().copied()),
        Rule::AtLeast(0.85),
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pace_is_pages_over_the_time_between_the_first_and_the_last() {
        let row = json!({ "step": 0, "first": 5_000_000, "last": 6_000_000 });
        assert_eq!(pace(&row, 1000).ok(), Some(999.0));
        assert!(pace(&json!({}), 1000).is_err());
    }

    #[test]
    fn a_pace_that_falls_is_a_bar_missed() {
        let process = Process { seconds: 100.0, processor_seconds: 90.0, peak_bytes: 150_000_000 };
        let flat = report(&process, 1, &[1000.0], &[1000.0, 990.0, 1010.0]);
        assert_eq!(flat.matches("PASS").count(), 3, "{flat}");
        let falling = report(&process, 1, &[1000.0], &[1000.0, 900.0, 500.0]);
        assert_eq!(falling.matches("FAIL").count(), 2, "{falling}");
    }
}
