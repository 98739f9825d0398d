//! What was measured, and the table of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::process::Process;
use crate::bench::numbers::{median, thousands};

/// How many pages the world holds.
pub(crate) const SIZES: [usize; 2] = [960, 3840];
pub(crate) const PAGE_BYTES: usize = 87_000;
/// Of the measurement from far away, which is long enough for the beginning and the end not to count.
pub(crate) const LATENCY_MS: u64 = 50;
pub(crate) const FAR_PAGES: usize = 7680;

/// Something that extracts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum System {
    Lavra,
    DltRest,
    DltRaw,
    Loop,
}

impl System {
    pub(crate) const ALL: [Self; 4] = [Self::Lavra, Self::DltRest, Self::DltRaw, Self::Loop];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Lavra => "Lavra",
            Self::DltRest => "dlt 1.31.0, REST source",
            Self::DltRaw => "dlt 1.31.0, by hand",
            Self::Loop => "asyncio loop",
        }
    }
}

/// What an extraction took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) process: Process,
    /// What the world had of the same processors meanwhile.
    pub(crate) world_seconds: f64,
    pub(crate) file_bytes: u64,
}

impl Cost {
    pub(crate) fn line(&self, pages: usize) -> String {
        format!(
            "{:.0} pages/s: {:.2} s, {:.2} s of processors and {:.2} s of the world's, {:.0} MB at most, file {:.1} MB",
            pages as f64 / self.process.seconds,
            self.process.seconds,
            self.process.processor_seconds,
            self.world_seconds,
            self.process.peak_bytes as f64 / 1e6,
            self.file_bytes as f64 / 1e6
        )
    }
}

/// The world when nobody does more than read it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    pub(crate) pages_per_second: f64,
}

/// DuckDB's appender on bodies that are in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Appended {
    pub(crate) seconds: f64,
    pub(crate) file_bytes: f64,
    pub(crate) zstd_bytes: f64,
}

/// Everything measured so far. What is asked for is the median of the rounds.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    costs: BTreeMap<(System, usize), Vec<Cost>>,
    limits: BTreeMap<usize, Vec<(Served, Appended)>>,
    far: Vec<f64>,
}

impl Figures {
    pub(crate) fn take(&mut self, system: System, pages: usize, cost: Cost) {
        self.costs.entry((system, pages)).or_default().push(cost);
    }

    pub(crate) fn take_limits(&mut self, pages: usize, served: Served, appended: Appended) {
        self.limits.entry(pages).or_default().push((served, appended));
    }

    /// Lavra's, from far away.
    pub(crate) fn take_far(&mut self, pages: usize, cost: Cost) {
        self.far.push(pages as f64 / cost.process.seconds);
    }

    /// Pages per second of the whole process.
    pub(crate) fn rate(&self, system: System, pages: usize) -> Option<f64> {
        self.of(system, pages, |cost| pages as f64 / cost.process.seconds)
    }

    pub(crate) fn peak_mb(&self, system: System, pages: usize) -> Option<f64> {
        self.of(system, pages, |cost| cost.process.peak_bytes as f64 / 1e6)
    }

    pub(crate) fn file_mb(&self, system: System, pages: usize) -> Option<f64> {
        self.of(system, pages, |cost| cost.file_bytes as f64 / 1e6)
    }

    pub(crate) fn appender(&self, pages: usize) -> Option<f64> {
        self.limit(pages, |(_, appended)| pages as f64 / appended.seconds)
    }

    pub(crate) fn zstd_mb(&self, pages: usize) -> Option<f64> {
        self.limit(pages, |(_, appended)| appended.zstd_bytes / 1e6)
    }

    pub(crate) fn far(&self) -> Option<f64> {
        median(&self.far)
    }

    fn of(&self, system: System, pages: usize, figure: impl Fn(&Cost) -> f64) -> Option<f64> {
        median(&self.costs.get(&(system, pages))?.iter().map(figure).collect::<Vec<_>>())
    }

    fn limit(&self, pages: usize, figure: impl Fn(&(Served, Appended)) -> f64) -> Option<f64> {
        median(&self.limits.get(&pages)?.iter().map(figure).collect::<Vec<_>>())
    }

    /// One line per system.
    pub(crate) fn table(&self) -> String {
        let mut table = format!("{:<32}", "");
        for pages in SIZES {
            let _ = write!(table, "{:>44}", format!("{} pages", thousands(pages as f64)));
        }
        let _ = write!(table, "\n{:<32}", "");
        for _ in SIZES {
            let _ =
                write!(table, "{:>12}{:>10}{:>12}{:>10}", "pages/s", "cpu s", "peak MB", "file MB");
        }
        for system in System::ALL {
            let cpu = |pages| self.of(system, pages, |cost| cost.process.processor_seconds);
            let line = line(system.title(), |pages| {
                let (peak, file) = (self.peak_mb(system, pages), self.file_mb(system, pages));
                [self.rate(system, pages), cpu(pages), peak, file]
            });
            let _ = write!(table, "\n{line}");
        }
        let appender = line("DuckDB's appender, no network *", |pages| {
            let file = self.limit(pages, |(_, appended)| appended.file_bytes / 1e6);
            [self.appender(pages), None, None, file]
        });
        let world = line("the world alone **", |pages| {
            let rate = self.limit(pages, |(served, _)| served.pages_per_second);
            let seconds = self.of(System::Lavra, pages, |cost| cost.world_seconds);
            [rate, seconds, None, None]
        });
        let bodies =
            line("the bodies, zstd -3 each", |pages| [None, None, None, self.zstd_mb(pages)]);
        let far = self.far().map_or_else(|| "-".to_owned(), thousands);
        let _ = write!(
            table,
            "\n{appender}\n{world}\n{bodies}\n{:<32}{far:>12}\n\n\
             *  only appending and the checkpoint, of bodies that are in memory already\n\
             ** read by a client that does nothing else; cpu: the world's while Lavra read it",
            format!("Lavra, {LATENCY_MS} ms away, {FAR_PAGES} pages")
        );
        table
    }
}

/// Rate, processor seconds, peak and file for each size; a dash for what there is not.
fn line(title: &str, figures: impl Fn(usize) -> [Option<f64>; 4]) -> String {
    let mut line = format!("{title:<32}");
    for pages in SIZES {
        let [rate, cpu, peak, file] = figures(pages);
        let shown = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let rate = rate.map_or_else(|| "-".to_owned(), thousands);
        let _ = write!(
            line,
            "{rate:>12}{:>10}{:>12}{:>10}",
            shown(cpu, 1),
            shown(peak, 0),
            shown(file, 1)
        );
    }
    line
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cost(seconds: f64, peak_mb: u64, file_mb: u64) -> Cost {
        let process =
            Process { seconds, processor_seconds: seconds, peak_bytes: peak_mb * 1_000_000 };
        Cost { process, world_seconds: 0.5, file_bytes: file_mb * 1_000_000 }
    }

    #[test]
    fn rounds_become_their_median() {
        let mut figures = Figures::default();
        for seconds in [2.0, 1.0, 3.0] {
            figures.take(System::Lavra, 960, cost(seconds, 100, 10));
        }
        assert_eq!(figures.rate(System::Lavra, 960), Some(480.0));
        assert_eq!(figures.peak_mb(System::Lavra, 960), Some(100.0));
        assert_eq!(figures.rate(System::Loop, 960), None);
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let mut figures = Figures::default();
        figures.take(System::Lavra, 3840, cost(2.0, 150, 10));
        let table = figures.table();
        let of = |title: &str| table.lines().find(|line| line.starts_with(title)).unwrap();
        assert!(of("Lavra ").contains("1 920"), "{table}");
        assert!(!of("asyncio").chars().any(|letter| letter.is_ascii_digit()), "{table}");
    }
}
