//! `bench writer`: the same items into the same table of one PostgreSQL, by each system in turn within a
//! round: new, new as far as is known, and once more with another price. `\copy` is the ceiling: it
//! updates nothing, and its file is ready for it.

mod driver;
mod figures;

use anyhow::{Context, Result, bail, ensure};

use super::failures::Failures;
use crate::scratch::Scratch;
use crate::servers::{Postgres, Tuning};
use crate::user::User;
use crate::workspace::Workspace;
use crate::{apt, duckdb, output};
use driver::{Drivers, Operation, System};
use figures::{Figure, Figures, Mixture, SIZES};

/// Rows of each measurement; dlt gets fewer, it would take minutes.
const ROWS: usize = 100_000;
const FEWER: usize = 20_000;
/// Of which one in a hundred is bad.
const MIXED: usize = 10_000;
const MIXTURES: &[(Mixture, &[usize])] = &[
    (Mixture::Value, &[0, 10_000, 1000, 100, 10]),
    (Mixture::Check, &[0, 100]),
    (Mixture::Insert, &[0, 100]),
];
/// The body that must not be in memory.
const LONG: u64 = 2 << 30;

const TABLE: &str =
    "DROP SCHEMA IF EXISTS dlt_items CASCADE; DROP TABLE IF EXISTS items; CREATE TABLE items (
    sku text PRIMARY KEY, name text, price numeric, url text, scraped_at timestamptz, attrs jsonb)";
/// As the writer makes a table for upserts; dlt makes its own. What is copied or inserted has no need of it.
const ROOM_TO_CHANGE: &str = "ALTER TABLE items SET (fillfactor = 50)";

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let wanted = Wanted::parse(args)?;
    apt::ensure(&[apt::Package::PostgreSql])?;
    duckdb::ensure(workspace)?;
    let mut run = Run {
        drivers: Drivers::prepare(workspace)?,
        postgres: Postgres::start(Tuning::Bench)?,
        scratch: Scratch::new("bench", &User::Myself)?,
        figures: Figures::default(),
        failures: Failures::default(),
    };
    for round in 1..=wanted.rounds {
        let which = format!("round {round} of {}", wanted.rounds);
        for bytes in SIZES {
            for system in System::ALL {
                output::step(&format!("{which}: {}, rows of {bytes} bytes", system.title()));
                let measured = run.measure(system, bytes);
                run.failures.note(measured)?;
            }
        }
        for (mixture, bads) in MIXTURES {
            for bad in *bads {
                output::step(&format!(
                    "{which}: {MIXED} rows, one in {bad} bad: {}",
                    mixture.title()
                ));
                let measured = run.mixed(*mixture, *bad);
                run.failures.note(measured)?;
            }
        }
    }
    if !wanted.quick {
        output::step("a body of 2 GB");
        let measured = run.long();
        run.failures.note(measured)?;
    }
    output::data(&format!("{}\n\n{}", run.figures.table(), run.figures.judge()));
    run.failures.end()
}

struct Wanted {
    rounds: usize,
    /// Without the long body.
    quick: bool,
}

impl Wanted {
    fn parse(args: &[String]) -> Result<Self> {
        let mut wanted = Self { rounds: 3, quick: false };
        let mut words = args.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rounds" => {
                    let count = words.next().context("--rounds wants a number")?;
                    wanted.rounds = count.parse().context("--rounds wants a number")?;
                }
                "--quick" => wanted.quick = true,
                other => bail!("`bench writer` takes --rounds N and --quick, not {other}"),
            }
        }
        ensure!(wanted.rounds > 0, "--rounds wants at least 1");
        Ok(wanted)
    }
}

struct Run {
    drivers: Drivers,
    postgres: Postgres,
    scratch: Scratch,
    figures: Figures,
    failures: Failures,
}

impl Run {
    fn measure(&mut self, system: System, bytes: usize) -> Result<()> {
        let (insert, upsert) = (Figure::Insert(bytes), Figure::Upsert(bytes));
        if matches!(system, System::Copy | System::Lavra) {
            self.fresh(Operation::Insert)?;
            self.once(system, Operation::Insert, "1.5", insert, bytes)?;
        }
        if system != System::Copy {
            self.fresh(Operation::Upsert)?;
            self.once(system, Operation::Upsert, "1.5", upsert, bytes)?;
            self.once(system, Operation::Upsert, "2.5", Figure::Update(bytes), bytes)?;
        }
        Ok(())
    }

    fn once(
        &mut self,
        system: System,
        operation: Operation,
        price: &str,
        figure: Figure,
        bytes: usize,
    ) -> Result<()> {
        let rows = if system == System::Dlt { FEWER } else { ROWS };
        self.drivers.generate(rows, bytes, price, (0, price), self.scratch.path())?;
        self.postgres.sql("postgres", "CHECKPOINT")?;
        let url = self.postgres.url("postgres");
        let rate = self.drivers.write(system, operation, &url, self.scratch.path())?;
        output::note(&format!("{figure:?}: {rate:.0} rows/s"));
        self.figures.take(system, figure, rate);
        let table = if system == System::Dlt { "dlt_items.items" } else { "items" };
        let sql = format!(
            "SELECT count(*) || '/' || count(*) FILTER (WHERE price = {price}) FROM {table}"
        );
        let stored = self.postgres.sql("postgres", &sql)?;
        let wanted = format!("{rows}/{rows}");
        ensure!(stored == wanted, "{}: {stored} rows are stored", system.title());
        Ok(())
    }

    /// `MIXED` rows of which one in `bad` fails.
    fn mixed(&mut self, mixture: Mixture, bad: usize) -> Result<()> {
        let (operation, price) = match mixture {
            Mixture::Value => (Operation::Upsert, "\"none\""),
            Mixture::Check => (Operation::Upsert, "\"-1\""),
            Mixture::Insert => (Operation::Insert, "\"none\""),
        };
        self.fresh(operation)?;
        if mixture == Mixture::Check {
            self.postgres.sql("postgres", "ALTER TABLE items ADD CHECK (price > 0)")?;
        }
        self.drivers.generate(MIXED, 250, "1.5", (bad, price), self.scratch.path())?;
        self.postgres.sql("postgres", "CHECKPOINT")?;
        let url = self.postgres.url("postgres");
        let told = self.drivers.lavra(operation, &url, self.scratch.path())?;
        let expected = MIXED.checked_div(bad).unwrap_or(0);
        ensure!(told.failed == expected, "{} rows failed, not {expected}", told.failed);
        let price = price.trim_matches('"');
        let items = format!(
            "SELECT count(*) || '/' || count(*) FILTER (WHERE data::jsonb->>'price' = '{price}')
             FROM kodus_workflow.writer_failed_items"
        );
        let kept = self.postgres.sql("postgres", &items)?;
        ensure!(kept == format!("{expected}/{expected}"), "{kept} failed items are kept");
        output::note(&format!("{:.0} rows/s", told.rate));
        self.figures.take(System::Lavra, Figure::Mixed(mixture, expected), told.rate);
        Ok(())
    }

    fn long(&mut self) -> Result<()> {
        self.fresh(Operation::Upsert)?;
        let told = self.drivers.long(&self.postgres.url("postgres"), LONG)?;
        output::note(&format!("{:.0} rows/s, {:.0} MB at most", told.rate, told.peak_mb));
        self.figures.take(System::Lavra, Figure::PeakMb, told.peak_mb);
        Ok(())
    }

    /// An empty table, for what comes.
    fn fresh(&self, operation: Operation) -> Result<()> {
        self.postgres.sql("postgres", "DROP SCHEMA IF EXISTS kodus_workflow CASCADE")?;
        self.postgres.sql("postgres", TABLE)?;
        match operation {
            Operation::Insert => {}
            Operation::Upsert => drop(self.postgres.sql("postgres", ROOM_TO_CHANGE)?),
        }
        Ok(())
    }
}
