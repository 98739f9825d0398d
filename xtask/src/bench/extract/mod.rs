//! `bench extract`: one world, and every system asks it for all of its pages and has them in a DuckDB
//! file when its process ends. System after system within a round, so that a slow minute of the machine
//! hits all of them; the world competes with each of them for the same cores.

mod bars;
mod figures;
mod lavra;
mod limits;
mod long;
mod peers;
mod process;
mod world;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::failures::Failures;
use crate::scratch::Scratch;
use crate::user::User;
use crate::workspace::Workspace;
use crate::{duckdb, exec, interrupt, output};
use figures::{Cost, FAR_PAGES, Figures, LATENCY_MS, PAGE_BYTES, SIZES, System};
pub(crate) use lavra::Lavra;
use limits::Limits;
use peers::Peers;
use world::World;

/// Requests that every system may have under way.
const IN_FLIGHT: usize = 16;

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let wanted = Wanted::parse(args)?;
    duckdb::ensure(workspace)?;
    let lavra = Lavra::prepare(workspace, wanted.lavra)?;
    if wanted.long {
        return long::run(&lavra);
    }
    let mut run = Run {
        lavra,
        limits: Limits::build(workspace)?,
        peers: Peers::install(workspace)?,
        figures: Figures::default(),
        failures: Failures::default(),
    };
    for round in 1..=wanted.rounds {
        let which = format!("round {round} of {}", wanted.rounds);
        for pages in SIZES {
            run.round(&which, pages)?;
        }
        run.far(&which)?;
    }
    output::data(&format!("{}\n\n{}", run.figures.table(), bars::judge(&run.figures)));
    run.failures.end()
}

#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    rounds: usize,
    long: bool,
    /// A binary that is there already, instead of one that is built now.
    lavra: Option<PathBuf>,
}

impl Wanted {
    fn parse(args: &[String]) -> Result<Self> {
        let mut wanted = Self { rounds: 3, long: false, lavra: None };
        let mut words = args.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            match word.as_str() {
                "--rounds" => {
                    wanted.rounds = value()?.parse().context("--rounds wants a number")?;
                }
                "--lavra" => wanted.lavra = Some(std::path::absolute(value()?)?),
                "--long" => wanted.long = true,
                other => {
                    bail!("`bench extract` takes --rounds N, --long and --lavra FILE, not {other}")
                }
            }
        }
        ensure!(wanted.rounds > 0, "--rounds wants at least 1");
        Ok(wanted)
    }
}

/// The programs, and what came of them so far.
struct Run {
    lavra: Lavra,
    limits: Limits,
    peers: Peers,
    figures: Figures,
    failures: Failures,
}

impl Run {
    /// Everything once, at one size, of one world.
    fn round(&mut self, which: &str, pages: usize) -> Result<()> {
        let scratch = Scratch::new("bench", &User::Myself)?;
        let world = World::start(&self.lavra, pages, PAGE_BYTES, scratch.path())?;
        output::step(&format!("{which}: the world alone and the appender, {pages} pages"));
        let measured = self.limit(&world, pages, scratch.path());
        self.failures.note(measured)?;
        for system in System::ALL {
            output::step(&format!("{which}: {}, {pages} pages", system.title()));
            let measured = self.extract(system, &world, pages, scratch.path());
            let measured = measured.map(|cost| self.figures.take(system, pages, cost));
            self.failures.note(measured)?;
        }
        Ok(())
    }

    /// Lavra alone, of a world that is far away.
    fn far(&mut self, which: &str) -> Result<()> {
        output::step(&format!("{which}: Lavra, {LATENCY_MS} ms away, {FAR_PAGES} pages"));
        let scratch = Scratch::new("bench", &User::Myself)?;
        let world = World::start(&self.lavra, FAR_PAGES, PAGE_BYTES, scratch.path())?;
        world.latency(LATENCY_MS)?;
        let measured = self.extract(System::Lavra, &world, FAR_PAGES, scratch.path());
        let measured = measured.map(|cost| self.figures.take_far(FAR_PAGES, cost));
        self.failures.note(measured)
    }

    fn limit(&mut self, world: &World, pages: usize, scratch: &Path) -> Result<()> {
        let bodies = scratch.join("bodies");
        let served = self.limits.read(world, pages, &bodies)?;
        let directory = fresh(scratch)?;
        let appended = self.limits.append(&bodies, &directory)?;
        std::fs::remove_file(&bodies)?;
        self.figures.take_limits(pages, served, appended);
        Ok(())
    }

    /// In a directory of its own that is empty before and gone afterwards.
    fn extract(&self, system: System, world: &World, pages: usize, scratch: &Path) -> Result<Cost> {
        let directory = fresh(scratch)?;
        let database = directory.join("pages.duckdb");
        let mut command = match system {
            System::Lavra => self.lavra.extract(world, &directory, &database)?,
            System::DltRest => self.peers.command("dlt_rest.py", world, pages, &directory),
            System::DltRaw => self.peers.command("dlt_raw.py", world, pages, &directory),
            System::Loop => self.peers.command("loop.py", world, pages, &directory),
        };
        let before = world.processor_seconds()?;
        let process = process::measure(&mut command, &directory)
            .with_context(|| format!("{}, {pages} pages", system.title()))?;
        let world_seconds = world.processor_seconds()? - before;
        let file_bytes = size(&database)?;
        let stored = match system {
            System::Lavra => self.lavra.count(&database)?,
            System::DltRest | System::DltRaw | System::Loop => self.peers.count(&database)?,
        };
        ensure!(
            stored == (pages, pages),
            "{}: {} rows of {} pages are in the file, not {pages}",
            system.title(),
            stored.0,
            stored.1
        );
        let cost = Cost { process, world_seconds, file_bytes };
        output::note(&cost.line(pages));
        std::fs::remove_dir_all(&directory)?;
        Ok(cost)
    }
}

/// An empty directory, with nothing left to be written to the disk from before.
fn fresh(scratch: &Path) -> Result<PathBuf> {
    interrupt::check()?;
    let directory = scratch.join("run");
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir(&directory)?;
    exec::capture(&mut Command::new("sync"))?;
    Ok(directory)
}

/// The database with the log that belongs to it.
fn size(database: &Path) -> Result<u64> {
    let file = std::fs::metadata(database).context("there is no database after the run")?;
    let log = std::fs::metadata(database.with_extension("duckdb.wal"));
    Ok(file.len() + log.map_or(0, |log| log.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Wanted> {
        Wanted::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn three_rounds_unless_told_otherwise() {
        assert_eq!(parsed("").unwrap(), Wanted { rounds: 3, long: false, lavra: None });
        assert_eq!(parsed("--rounds 1").unwrap().rounds, 1);
        assert!(parsed("--long").unwrap().long);
        assert_eq!(parsed("--lavra /bin/lavra").unwrap().lavra, Some("/bin/lavra".into()));
        assert!(parsed("--rounds").is_err());
        assert!(parsed("--rounds 0").is_err());
        assert!(parsed("--fast").is_err());
    }

    #[test]
    fn the_log_counts_as_the_file_does() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("pages.duckdb");
        assert!(size(&database).is_err());
        std::fs::write(&database, "12345").unwrap();
        assert_eq!(size(&database).unwrap(), 5);
        std::fs::write(directory.path().join("pages.duckdb.wal"), "678").unwrap();
        assert_eq!(size(&database).unwrap(), 8);
    }
}
