//! What was measured, the table of it, and what Lavra means to reach.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::driver::System;
use crate::bench::bars::{Rule, line, ratio};
use crate::bench::numbers::{median, thousands};

/// Bytes of a row.
pub(crate) const SIZES: [usize; 2] = [250, 1500];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    /// New rows, of which none may be there.
    Insert(usize),
    /// New rows, of which each might have been there.
    Upsert(usize),
    /// Rows that are there.
    Update(usize),
    /// With so many bad rows in ten thousand.
    Mixed(Mixture, usize),
    PeakMb,
}

/// What is wrong with bad rows, and how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mixture {
    /// An upsert of values that their column does not take: such rows look bad from outside.
    Value,
    /// An upsert of rows that only the table finds bad.
    Check,
    /// An insert of the first.
    Insert,
}

impl Mixture {
    pub(crate) const ALL: [Self; 3] = [Self::Value, Self::Check, Self::Insert];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Value => "no numbers, upsert",
            Self::Check => "a CHECK forbids them, upsert",
            Self::Insert => "no numbers, insert",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Figures(BTreeMap<(System, Figure), Vec<f64>>);

impl Figures {
    pub(crate) fn take(&mut self, system: System, figure: Figure, value: f64) {
        self.0.entry((system, figure)).or_default().push(value);
    }

    fn of(&self, system: System, figure: Figure) -> Option<f64> {
        self.0.get(&(system, figure)).and_then(|values| median(values))
    }

    pub(crate) fn table(&self) -> String {
        let mut table = format!("{:<26}", "rows/s");
        for bytes in SIZES {
            for what in ["insert", "upsert", "update"] {
                let _infallible = write!(table, "{:>15}", format!("{what} {bytes} B"));
            }
        }
        for system in System::ALL {
            let _infallible = write!(table, "\n{:<26}", system.title());
            for bytes in SIZES {
                for figure in [Figure::Insert(bytes), Figure::Upsert(bytes), Figure::Update(bytes)]
                {
                    let value = self.of(system, figure).map_or_else(|| "-".to_owned(), thousands);
                    let _infallible = write!(table, "{value:>15}");
                }
            }
        }
        for mixture in Mixture::ALL {
            for bad in [0, 1, 10, 100, 1000] {
                let Some(value) = self.of(System::Lavra, Figure::Mixed(mixture, bad)) else {
                    continue;
                };
                let what = format!("10 000 rows, {bad} bad ({})", mixture.title());
                let _infallible = write!(table, "\n{what:<52}{:>12}", thousands(value));
            }
        }
        table
    }

    pub(crate) fn judge(&self) -> String {
        let lavra = |figure| self.of(System::Lavra, figure);
        let mut lines = Vec::new();
        for bytes in SIZES {
            let ceiling = self.of(System::Copy, Figure::Insert(bytes));
            for (figure, what, bar) in
                [(Figure::Insert(bytes), "insert", 0.8), (Figure::Update(bytes), "update", 0.6)]
            {
                let what = format!("{what} of {bytes} B / \\copy's");
                lines.push(line(&what, ratio(lavra(figure), ceiling), Rule::AtLeast(bar)));
            }
            for (figure, what) in
                [(Figure::Upsert(bytes), "upsert"), (Figure::Update(bytes), "update")]
            {
                let what = format!("{what} of {bytes} B / dlt's");
                let peer = self.of(System::Dlt, figure);
                lines.push(line(&what, ratio(lavra(figure), peer), Rule::AtLeast(10.0)));
            }
        }
        for mixture in Mixture::ALL {
            let what = format!("1 % bad / none bad ({})", mixture.title());
            let [clean, some] = [0, 100].map(|bad| lavra(Figure::Mixed(mixture, bad)));
            lines.push(line(&what, ratio(some, clean), Rule::AtLeast(0.5)));
        }
        lines.push(line(
            "peak memory with a body of 2 GB, MB",
            lavra(Figure::PeakMb),
            Rule::AtMost(150.0),
        ));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_told_and_judged() {
        let mut figures = Figures::default();
        figures.take(System::Copy, Figure::Insert(250), 100.0);
        figures.take(System::Lavra, Figure::Insert(250), 90.0);
        assert!(figures.table().contains("90"));
        let judged = figures.judge();
        let first = judged.lines().next().unwrap_or_default();
        assert!(first.contains("0.90") && first.ends_with("PASS"), "{first}");
        assert!(judged.contains("not measured"));
    }
}
