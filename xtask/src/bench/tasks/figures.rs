//! What was measured, and the table of it. Several rounds of the same measurement become their median.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use serde_json::Value;

use super::driver::System;
use crate::bench::numbers::{field, median, thousands};

/// How many tasks wait when the workers start.
pub(crate) const SIZES: [usize; 3] = [20_000, 100_000, 200_000];
/// The size whose creation is compared.
pub(crate) const CREATION: usize = 100_000;

/// One thing that is measured of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    CreatePerSecond(usize),
    CompletePerSecond(usize),
    PickupMedian,
    PickupWorst,
}

impl Figure {
    fn field(self) -> &'static str {
        match self {
            Self::CreatePerSecond(_) => "create_per_s",
            Self::CompletePerSecond(_) => "complete_per_s",
            Self::PickupMedian => "pickup_p50_ms",
            Self::PickupWorst => "pickup_p99_ms",
        }
    }
}

/// Everything measured so far.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    systems: BTreeMap<(System, Figure), Vec<f64>>,
    publish: Vec<f64>,
    deliver: Vec<f64>,
    complete_with_broker: Vec<f64>,
}

impl Figures {
    /// Takes figures out of what a driver printed.
    pub(crate) fn take(
        &mut self,
        system: System,
        figures: &[Figure],
        printed: &Value,
    ) -> Result<()> {
        for figure in figures {
            let value = field(printed, figure.field())?;
            self.systems.entry((system, *figure)).or_default().push(value);
        }
        Ok(())
    }

    pub(crate) fn take_publish(&mut self, printed: &Value) -> Result<()> {
        self.publish.push(field(printed, "publish_per_s")?);
        Ok(())
    }

    pub(crate) fn take_deliver(&mut self, printed: &Value) -> Result<()> {
        self.deliver.push(field(printed, "deliver_per_s")?);
        self.complete_with_broker.push(field(printed, "complete_per_s")?);
        Ok(())
    }

    pub(crate) fn of(&self, system: System, figure: Figure) -> Option<f64> {
        self.systems.get(&(system, figure)).and_then(|rounds| median(rounds))
    }

    pub(crate) fn publish(&self) -> Option<f64> {
        median(&self.publish)
    }

    pub(crate) fn deliver(&self) -> Option<f64> {
        median(&self.deliver)
    }

    /// One line per system.
    pub(crate) fn table(&self) -> String {
        let mut table = format!(
            "{:<32}{:>10}{:>33}{:>20}\n",
            "", "create/s", "complete/s, waiting:", "pick-up, ms"
        );
        let mut heading = format!("{:<32}{:>10}", "", thousands(CREATION as f64));
        for size in SIZES {
            let _ = write!(heading, "{:>11}", thousands(size as f64));
        }
        let _ = writeln!(table, "{heading}{:>12}{:>8}", "p50", "p99");
        for system in System::ALL {
            let rate = |figure| self.of(system, figure).map_or_else(|| "-".to_owned(), thousands);
            let delay = |figure| {
                self.of(system, figure).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
            };
            let _ = write!(
                table,
                "{:<32}{:>10}",
                system.title(),
                rate(Figure::CreatePerSecond(CREATION))
            );
            for size in SIZES {
                let _ = write!(table, "{:>11}", rate(Figure::CompletePerSecond(size)));
            }
            let _ = writeln!(
                table,
                "{:>12}{:>8}",
                delay(Figure::PickupMedian),
                delay(Figure::PickupWorst)
            );
        }
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), thousands);
        let _ = writeln!(
            table,
            "\n{:<32}{:>10}/s",
            "RabbitMQ, confirmed publish",
            rate(self.publish())
        );
        let _ =
            writeln!(table, "{:<32}{:>10}/s", "Lavra, outbox to RabbitMQ", rate(self.deliver()));
        let _ = write!(
            table,
            "{:<32}{:>10}/s",
            "Lavra, completed with RabbitMQ",
            rate(median(&self.complete_with_broker))
        );
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rounds_become_their_median() {
        let mut figures = Figures::default();
        for value in [7.0, 1.0, 9.0] {
            figures
                .take(System::Awa, &[Figure::PickupMedian], &json!({ "pickup_p50_ms": value }))
                .unwrap();
        }
        assert_eq!(figures.of(System::Awa, Figure::PickupMedian), Some(7.0));
        assert_eq!(figures.of(System::Lavra, Figure::PickupMedian), None);
    }

    #[test]
    fn a_figure_that_is_missing_is_an_error_and_a_dash() {
        let mut figures = Figures::default();
        assert!(figures.take_publish(&json!({ "publish": 1 })).is_err());
        assert!(figures.table().contains('-'));
    }
}
