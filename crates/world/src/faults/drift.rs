//! Totals that change under the eyes of a reader.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::BadFaults;
use crate::day::Day;
use crate::endpoint::{Dates, Endpoint, FanOut};
use crate::listing::Selection;
use crate::overlay::Overlay;
use crate::volume::Volume;

/// The most records of one change.
const MOST: u64 = 1_000_000_000;

/// Records that come or go once a list has been asked for often enough.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub endpoint: Endpoint,
    /// `2024-07`: the month of the records' own days (of lists by year, its year).
    pub month: String,
    /// Needed where the list has one.
    #[serde(default)]
    pub fan_out: Option<u16>,
    /// The number of requests that still see the old state: of those whose window touches the month,
    /// since the change was set.
    #[serde(default)]
    pub after: u64,
    /// How many records come, or, below 0, go.
    pub records: i64,
    #[serde(default)]
    pub at: At,
}

/// Where in the month.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum At {
    Start,
    Middle,
    #[default]
    End,
}

impl Change {
    pub(super) fn check(&self) -> Result<(), BadFaults> {
        let known = match (self.endpoint.fan_out(), self.fan_out) {
            (FanOut::None, fan_out) => fan_out.is_none(),
            // Codes that have no records yet may come to have some.
            (FanOut::Modality { .. }, Some(code)) => (1..20).contains(&code),
            (FanOut::Class | FanOut::System, Some(code)) => self.endpoint.fans().contains(&code),
            (_, None) => false,
        };
        let reason = if self.first().is_none() {
            "must name a month such as 2024-07"
        } else if !known {
            "must name a fan_out that the list can have, and none where it has none"
        } else if self.records.unsigned_abs() > MOST {
            "is of more than 1,000,000,000 records"
        } else {
            return Ok(());
        };
        let (endpoint, month) = (self.endpoint.to_string(), self.month.clone());
        Err(BadFaults::Change { endpoint, month, reason })
    }

    fn first(&self) -> Option<Date> {
        let (year, month) = self.month.split_once('-')?;
        let (year, month) = (year.parse().ok()?, month.parse().ok()?);
        Date::new(year, month, 1).ok().filter(|_| (1..=9998).contains(&year))
    }

    /// The first and the last of the days it is about.
    fn days(&self) -> Option<(Day, Day)> {
        let first = self.first()?;
        if self.endpoint.dates() == Dates::Year {
            let day = Day::first_of(first.year().into());
            return Some((day, day));
        }
        Some((first.into(), first.last_of_month().into()))
    }

    fn fan(&self) -> u16 {
        self.fan_out.unwrap_or(0)
    }

    /// Whether a request for this counts.
    pub(super) fn concerns(&self, selection: &Selection) -> bool {
        self.endpoint == selection.endpoint
            && selection.fans.contains(&self.fan())
            && self
                .days()
                .is_some_and(|(first, last)| first <= selection.last && last >= selection.first)
    }

    pub(super) fn apply(&self, volume: &Volume, overlay: &mut Overlay) {
        let Some((first, last)) = self.days() else { return };
        let (place, days) = ((self.endpoint, self.fan()), first.through(last));
        let each = days.clone().map(|day| overlay.count(volume, place.0, place.1, day));
        let total = each.fold(0, u64::saturating_add);
        let count = self.records.unsigned_abs();
        if self.records >= 0 {
            let position = match self.at {
                At::Start => 0,
                At::Middle => total / 2,
                At::End => total,
            };
            overlay.grow(volume, place, days, position, count);
        } else {
            let count = count.min(total);
            let start = match self.at {
                At::Start => 0,
                At::Middle => (total - count) / 2,
                At::End => total - count,
            };
            overlay.shrink(volume, place, days, &(start..start + count));
        }
    }
}
