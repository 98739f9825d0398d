//! What became of single days since the world began.
//!
//! A day's records are numbered from 0 and stand in that order. Where records were added or taken
//! away the day is a list of runs of numbers instead: a new record has a number that none had
//! before, wherever it stands, and one that is gone does not give its number to another.

use std::collections::HashMap;
use std::ops::Range;

use crate::day::Day;
use crate::endpoint::Endpoint;
use crate::volume::Volume;

/// The days that are not as the volumes have them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    days: HashMap<(Endpoint, u16, Day), Runs>,
}

/// The records of one day, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Runs {
    runs: Vec<Range<u64>>,
    next: u64,
}

impl Runs {
    pub(crate) fn first(count: u64) -> Self {
        Self { runs: std::iter::once(0..count).collect(), next: count }
    }

    pub(crate) fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    /// The numbers at these positions.
    pub(crate) fn numbers(&self, positions: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let mut start = 0;
        self.runs.iter().flat_map(move |run| {
            let length = run.end - run.start;
            let from = positions.start.saturating_sub(start).min(length);
            let to = positions.end.saturating_sub(start).clamp(from, length);
            start += length;
            run.start + from..run.start + to
        })
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.runs.iter().any(|run| run.contains(&number))
    }

    fn split(&mut self, position: u64) -> usize {
        let mut start = 0;
        for index in 0..self.runs.len() {
            let run = self.runs[index].clone();
            if position <= start {
                return index;
            }
            let length = run.end - run.start;
            if position < start + length {
                let middle = run.start + (position - start);
                self.runs[index] = run.start..middle;
                self.runs.insert(index + 1, middle..run.end);
                return index + 1;
            }
            start += length;
        }
        self.runs.len()
    }

    fn insert(&mut self, position: u64, count: u64) {
        let index = self.split(position);
        let end = self.next.saturating_add(count);
        self.runs.insert(index, self.next..end);
        self.next = end;
    }

    fn remove(&mut self, positions: Range<u64>) {
        let first = self.split(positions.start);
        let last = self.split(positions.end).max(first);
        self.runs.drain(first..last);
    }
}

impl Overlay {
    pub(crate) fn of_day(&self, endpoint: Endpoint, fan: u16, day: Day) -> Option<&Runs> {
        // Worlds without changes, which are most, need not look.
        if self.days.is_empty() { None } else { self.days.get(&(endpoint, fan, day)) }
    }

    pub(crate) fn count(&self, volume: &Volume, endpoint: Endpoint, fan: u16, day: Day) -> u64 {
        let changed = self.of_day(endpoint, fan, day).map(Runs::count);
        changed.unwrap_or_else(|| volume.of_day(endpoint, fan, day))
    }

    fn changed(&mut self, volume: &Volume, endpoint: Endpoint, fan: u16, day: Day) -> &mut Runs {
        let place = (endpoint, fan, day);
        self.days.entry(place).or_insert_with(|| Runs::first(volume.of_day(endpoint, fan, day)))
    }

    /// Adds records before the one at `position` of these days together, or after the last.
    pub(crate) fn grow(
        &mut self,
        volume: &Volume,
        (endpoint, fan): (Endpoint, u16),
        days: impl Iterator<Item = Day>,
        position: u64,
        count: u64,
    ) {
        let mut start = 0;
        let mut place = None;
        for day in days {
            let here = self.count(volume, endpoint, fan, day);
            // A later day takes over only with records of its own: none goes after the last one.
            if place.is_none() || (here > 0 && position > start) {
                place = Some((day, position - start));
            }
            start += here;
            if position < start {
                break;
            }
        }
        if let Some((day, position)) = place {
            self.changed(volume, endpoint, fan, day).insert(position, count);
        }
    }

    /// Takes away the records at these positions of these days together.
    pub(crate) fn shrink(
        &mut self,
        volume: &Volume,
        (endpoint, fan): (Endpoint, u16),
        days: impl Iterator<Item = Day>,
        positions: &Range<u64>,
    ) {
        let mut start = 0;
        for day in days {
            let here = self.count(volume, endpoint, fan, day);
            let from = positions.start.saturating_sub(start).min(here);
            let to = positions.end.saturating_sub(start).min(here);
            if from < to {
                self.changed(volume, endpoint, fan, day).remove(from..to);
            }
            start += here;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list of numbers.
        #[test]
        fn runs_do_what_a_list_does(
            count in 0_u64..50,
            changes in proptest::collection::vec((any::<bool>(), 0_u64..60, 0_u64..20), 0..12),
        ) {
            let mut runs = Runs::first(count);
            let mut list: Vec<u64> = (0..count).collect();
            let mut next = count;
            for (grow, at, by) in changes {
                let at = at.min(list.len() as u64);
                if grow {
                    runs.insert(at, by);
                    list.splice(at as usize..at as usize, next..next + by);
                    next += by;
                } else {
                    let end = (at + by).min(list.len() as u64);
                    runs.remove(at..end);
                    list.drain(at as usize..end as usize);
                }
                prop_assert_eq!(runs.count(), list.len() as u64);
                prop_assert_eq!(&runs.numbers(0..u64::MAX).collect::<Vec<_>>(), &list);
                let half = list.len() / 2;
                let some: Vec<u64> = runs.numbers(half as u64..half as u64 + 3).collect();
                prop_assert_eq!(&some[..], &list[half..list.len().min(half + 3)]);
            }
        }
    }
}
