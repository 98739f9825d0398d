//! The switches as they are set, and since when.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::{Change, Faults};
use crate::listing::Selection;
use crate::overlay::Overlay;
use crate::volume::Volume;

/// One setting of the switches; another one takes its place as a whole.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) faults: Faults,
    outage_since: Instant,
    limit_since: Instant,
    drift: Vec<Arc<Pending>>,
}

/// A change, and the requests it has seen.
#[derive(Debug)]
struct Pending {
    change: Change,
    seen: AtomicU64,
}

/// Marks a change that has happened.
const HAPPENED: u64 = u64::MAX;

/// What is left of an outage that is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outaged {
    pub(crate) left: Duration,
    pub(crate) as_unavailable: bool,
}

impl Live {
    /// Of switches that were checked.
    pub(crate) fn new(faults: Faults, before: Option<&Self>) -> Self {
        let now = Instant::now();
        // What is set again as it was goes on as it was.
        let outage = before.filter(|before| before.faults.outage == faults.outage);
        let limit = before.filter(|before| before.faults.in_flight == faults.in_flight);
        let mut known = before.map(|before| before.drift.clone()).unwrap_or_default();
        let drift = faults.drift.iter().map(|change| {
            match known.iter().position(|pending| pending.change == *change) {
                Some(place) => known.swap_remove(place),
                None => Arc::new(Pending { change: change.clone(), seen: AtomicU64::new(0) }),
            }
        });
        Self {
            outage_since: outage.map_or(now, |before| before.outage_since),
            limit_since: limit.map_or(now, |before| before.limit_since),
            drift: drift.collect(),
            faults,
        }
    }

    pub(crate) fn outage(&self) -> Option<Outaged> {
        let outage = self.faults.outage?;
        let start = Duration::from_millis(outage.after_ms);
        let end = start.saturating_add(Duration::from_millis(outage.lasts_ms));
        let now = self.outage_since.elapsed();
        let left = end.checked_sub(now).filter(|left| now >= start && !left.is_zero())?;
        Some(Outaged { left, as_unavailable: outage.as_unavailable })
    }

    /// The most requests at once, now.
    pub(crate) fn limit(&self) -> Option<u64> {
        let limit = self.faults.in_flight.as_ref()?;
        let rounds = self.limit_since.elapsed().as_millis() / u128::from(limit.every_ms.max(1));
        let place = rounds % limit.limits.len().max(1) as u128;
        limit.limits.get(place as usize).copied()
    }

    /// The changes that wait for no request.
    pub(crate) fn immediate(&self) -> Vec<&Change> {
        let waits = |pending: &&Arc<Pending>| {
            pending.change.after == 0 && pending.seen.swap(HAPPENED, Ordering::Relaxed) != HAPPENED
        };
        self.drift.iter().filter(waits).map(|pending| &pending.change).collect()
    }

    /// Counts a request for the changes that wait for it, and gives those that are due before it.
    pub(crate) fn due(&self, selection: &Selection) -> Vec<&Change> {
        let mut due = Vec::new();
        for Pending { change, seen } in self.drift.iter().map(AsRef::as_ref) {
            if !change.concerns(selection) {
                continue;
            }
            let count = |seen: u64| match seen {
                HAPPENED => None,
                seen if seen >= change.after => Some(HAPPENED),
                seen => Some(seen + 1),
            };
            let before = seen.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
            if before.is_ok_and(|before| before >= change.after) {
                due.push(change);
            }
        }
        due
    }
}

/// Makes the changes.
pub(crate) fn apply(changes: &[&Change], volume: &Volume, overlay: &mut Overlay) {
    for change in changes {
        change.apply(volume, overlay);
    }
}
