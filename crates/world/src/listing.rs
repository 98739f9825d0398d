//! The records of a window, in their order: by day, within it by fan-out value, within that as the
//! day has them.

use std::ops::Range;
use std::sync::Arc;

use crate::day::Day;
use crate::endpoint::{CLASSES, Endpoint, SYSTEMS};
use crate::overlay::Overlay;
use crate::records::{Facts, Records, Slot};
use crate::volume::Volume;

/// Which records: the days are those of the records themselves, both ends included.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Selection {
    pub(crate) endpoint: Endpoint,
    pub(crate) fans: Vec<u16>,
    pub(crate) first: Day,
    pub(crate) last: Day,
    pub(crate) filter: Filter,
}

/// What the optional parameters ask for.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Filter {
    pub(crate) cnpj: Option<String>,
    pub(crate) unit: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) town: Option<String>,
    pub(crate) system: Option<i64>,
    pub(crate) dispute: Option<i64>,
    pub(crate) instrument: Option<i64>,
    pub(crate) class: Option<String>,
}

impl Filter {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn keeps(&self, records: &Records, facts: &Facts) -> bool {
        let organ = records.organ(facts.key);
        let text =
            |wanted: &Option<String>, real: &str| wanted.as_deref().is_none_or(|text| text == real);
        let number =
            |wanted: Option<i64>, real: u16| wanted.is_none_or(|code| code == i64::from(real));
        text(&self.cnpj, &organ.cnpj)
            && text(&self.unit, &organ.unit_code)
            && text(&self.state, organ.state)
            && text(&self.town, &organ.town_code)
            && number(self.system, SYSTEMS[facts.system].0)
            && number(self.dispute, facts.dispute)
            && number(self.instrument, facts.instrument)
            && self.class.as_deref().is_none_or(|code| code == CLASSES[facts.class].0.to_string())
    }
}

/// The records of one day and fan-out value.
#[derive(Clone, Copy, Debug)]
struct Part {
    fan: u16,
    day: Day,
    /// How many records stand before these.
    start: u64,
    count: u64,
}

/// All records of a selection, none of them made yet.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    endpoint: Endpoint,
    parts: Vec<Part>,
    total: u64,
    overlay: Arc<Overlay>,
    /// Those that a filter keeps; without one, all.
    kept: Option<Vec<Slot>>,
}

impl Listing {
    pub(crate) fn new(
        volume: &Volume,
        overlay: Arc<Overlay>,
        records: &Records,
        selection: &Selection,
    ) -> Self {
        let endpoint = selection.endpoint;
        let (mut parts, mut total) = (Vec::with_capacity(31), 0_u64);
        for day in selection.first.through(selection.last) {
            for fan in &selection.fans {
                let count = overlay.count(volume, endpoint, *fan, day);
                if count > 0 {
                    parts.push(Part { fan: *fan, day, start: total, count });
                    total = total.saturating_add(count);
                }
            }
        }
        let mut listing = Self { endpoint, parts, total, overlay, kept: None };
        if !selection.filter.is_none() {
            let keeps = |slot: &Slot| selection.filter.keeps(records, &records.facts(slot));
            let parts = listing.parts.iter();
            let mut all = parts.flat_map(|part| listing.of_part(part, 0..part.count));
            let kept: Vec<Slot> = all.by_ref().filter(keeps).collect();
            drop(all);
            listing.total = kept.len() as u64;
            listing.kept = Some(kept);
        }
        listing
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The records at these positions, as far as there are any.
    pub(crate) fn slots(&self, positions: Range<u64>) -> Vec<Slot> {
        let Range { start, end } = positions.start.min(self.total)..positions.end.min(self.total);
        if let Some(kept) = &self.kept {
            return kept.get(start as usize..end as usize).unwrap_or_default().to_vec();
        }
        let first = self.parts.partition_point(|part| part.start + part.count <= start);
        let mut slots = Vec::with_capacity(end.saturating_sub(start).min(1000) as usize);
        for part in &self.parts[first..] {
            if part.start >= end {
                break;
            }
            let within = start.saturating_sub(part.start)..(end - part.start).min(part.count);
            slots.extend(self.of_part(part, within));
        }
        slots
    }

    fn of_part(&self, part: &Part, positions: Range<u64>) -> impl Iterator<Item = Slot> + '_ {
        let Part { fan, day, .. } = *part;
        let changed = self.overlay.of_day(self.endpoint, fan, day);
        let plain = changed.is_none().then(|| positions.clone());
        let numbers = changed.into_iter().flat_map(move |runs| runs.numbers(positions.clone()));
        let endpoint = self.endpoint;
        numbers.chain(plain.into_iter().flatten()).map(move |number| Slot {
            endpoint,
            fan,
            day,
            number,
        })
    }
}
