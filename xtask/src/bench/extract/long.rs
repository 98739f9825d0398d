//! `bench extract -- --long`: Lavra alone on a hundred thousand pages. Its memory has to stay where it
//! is, and its pace too: anything that grows with what is stored already would show here.
//!
//! Pages are told apart by when they were fetched, which the database has. Where the machine is busy
//! with other things, the processor time of a page tells more than the pages of a second.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::lavra::Lavra;
use super::process::{self, Process, Sample};
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
    let mut samples = Vec::new();
    let mut command = lavra.extract(&world, &directory, &database)?;
    let process = process::watch(&mut command, &directory, |sample| samples.push(sample))?;
    drop(world);
    output::note(&format!("{:.1} s", process.seconds));
    let file_bytes = size(&database)?;
    let stored = lavra.count(&database)?;
    ensure!(stored == (PAGES, PAGES), "{stored:?} rows and pages are in the file, not {PAGES}");
    let stretches = |length| -> Result<Vec<Stretch>> {
        let rows = lavra.sql(&database, &question(length))?;
        rows.iter().map(|row| Stretch::of(row, length, &samples)).collect()
    };
    let first = stretches(FIRST)?.first().copied().context("no pages")?;
    output::data(&report(&process, file_bytes, first, &stretches(STEP)?));
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

/// From when to when each so many pages came.
fn question(length: usize) -> String {
    format!(
        "WITH numbered AS (
             SELECT epoch_us(fetched_at) AS moment,
                    (row_number() OVER (ORDER BY fetched_at) - 1) // {length} AS stretch
             FROM psa.bench_pages
         )
         SELECT min(moment) AS first, max(moment) AS last
         FROM numbered GROUP BY stretch ORDER BY stretch"
    )
}

/// So many pages one after the other.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    pages_per_second: f64,
    processor_ms_per_page: f64,
    most_mb: f64,
}

impl Stretch {
    fn of(row: &Value, pages: usize, samples: &[Sample]) -> Result<Self> {
        let (first, last) = (field(row, "first")?, field(row, "last")?);
        let within: Vec<&Sample> =
            samples.iter().filter(|sample| (first..=last).contains(&sample.moment)).collect();
        let (begin, end) = within.first().zip(within.last()).context("too short to be seen")?;
        // The samples do not begin and end exactly when the pages do.
        let share = (end.moment - begin.moment) / (last - first);
        let processor_ms = (end.processor_seconds - begin.processor_seconds) * 1e3 / share;
        let most = within.iter().map(|sample| sample.bytes).max().unwrap_or(0);
        Ok(Self {
            pages_per_second: (pages - 1) as f64 * 1e6 / (last - first),
            processor_ms_per_page: processor_ms / pages as f64,
            most_mb: most as f64 / 1e6,
        })
    }
}

fn report(process: &Process, file_bytes: u64, first: Stretch, steps: &[Stretch]) -> String {
    let whole = Stretch {
        pages_per_second: PAGES as f64 / process.seconds,
        processor_ms_per_page: process.processor_seconds * 1e3 / PAGES as f64,
        most_mb: process.peak_bytes as f64 / 1e6,
    };
    let mut lines =
        vec![format!("{:<32}{:>12}{:>14}{:>12}", "", "pages/s", "cpu ms/page", "peak MB")];
    let mut tell = |what: &str, stretch: Stretch| {
        let rate = thousands(stretch.pages_per_second);
        let Stretch { processor_ms_per_page, most_mb, .. } = stretch;
        lines.push(format!("{what:<32}{rate:>12}{processor_ms_per_page:>14.2}{most_mb:>12.0}"));
    };
    tell("the whole process", whole);
    tell(&format!("the first {}", thousands(FIRST as f64)), first);
    for (number, step) in steps.iter().enumerate() {
        tell(&format!("to page {}", thousands(((number + 1) * STEP) as f64)), *step);
    }
    lines.push(format!("{:<32}{:>12.1} MB\n", "the file", file_bytes as f64 / 1e6));
    lines.push(line("peak memory, MB", Some(whole.most_mb), Rule::AtMost(200.0)));
    let slowest = steps.iter().map(|step| step.pages_per_second).min_by(f64::total_cmp);
    lines.push(line(
        &format!("pages/s of the slowest {STEP} / of the first {FIRST}"),
        ratio(slowest, Some(first.pages_per_second)),
        Rule::AtLeast(0.85),
    ));
    let dearest = steps.iter().map(|step| step.processor_ms_per_page).max_by(f64::total_cmp);
    lines.push(line(
        "cpu per page of the dearest / of the first",
        ratio(dearest, Some(first.processor_ms_per_page)),
        Rule::NoBar,
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stretch_is_what_was_seen_between_its_first_page_and_its_last() {
        let sample = |moment: f64, processor_seconds, megabytes: u64| Sample {
            moment: moment * 1e6,
            processor_seconds,
            bytes: megabytes * 1_000_000,
        };
        let samples = [
            sample(4.0, 0.0, 900),
            sample(5.0, 1.0, 70),
            sample(5.5, 1.5, 80),
            sample(7.0, 9.0, 900),
        ];
        let row = json!({ "first": 5_000_000, "last": 6_000_000 });
        let stretch = Stretch::of(&row, 1000, &samples).unwrap();
        assert!((stretch.pages_per_second - 999.0).abs() < 0.1, "{stretch:?}");
        assert!((stretch.processor_ms_per_page - 1.0).abs() < 0.01, "{stretch:?}");
        assert!((stretch.most_mb - 80.0).abs() < 0.1, "{stretch:?}");
        assert!(Stretch::of(&json!({}), 1000, &samples).is_err());
    }

    #[test]
    fn a_pace_that_falls_is_a_bar_missed() {
        let process = Process { seconds: 100.0, processor_seconds: 90.0, peak_bytes: 150_000_000 };
        let at = |pages_per_second| Stretch {
            pages_per_second,
            processor_ms_per_page: 1.0,
            most_mb: 100.0,
        };
        let flat = report(&process, 1, at(1000.0), &[at(1000.0), at(990.0)]);
        assert_eq!(flat.matches("PASS").count(), 2, "{flat}");
        let falling = report(&process, 1, at(1000.0), &[at(1000.0), at(500.0)]);
        assert_eq!(falling.matches("FAIL").count(), 1, "{falling}");
    }
}
