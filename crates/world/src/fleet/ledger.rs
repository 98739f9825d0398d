//! What was asked of a fleet, and what a right orchestrator would never have asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::ask::Fate;
use super::route::Route;

/// The most that are kept of each.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) requests: [u64; Route::NAMES.len()],
    pub(super) fates: Fates,
    pub(super) sessions: u64,
    pub(super) missions: BTreeMap<Arc<str>, Mission>,
    pub(super) violations: Vec<String>,
    /// The same, but where the fleet itself did not let the orchestrator end what was before.
    pub(super) excused: Vec<String>,
}

/// The jobs of a mission, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Mission {
    pub(super) jobs: Vec<usize>,
    /// Those that were not over when it was last looked at.
    pub(super) live: Vec<usize>,
}

/// How exchanges ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Fates {
    pub delivered: u64,
    pub refused: u64,
    pub timeout: u64,
    pub reset: u64,
}

impl Ledger {
    pub(super) fn asked(&mut self, route: &Route<'_>, fate: Fate) {
        if let Some(count) = self.requests.get_mut(route.number()) {
            *count += 1;
        }
        *match fate {
            Fate::Delivered => &mut self.fates.delivered,
            Fate::Refused => &mut self.fates.refused,
            Fate::Timeout => &mut self.fates.timeout,
            Fate::Reset => &mut self.fates.reset,
        } += 1;
    }

    pub(super) fn violated(&mut self, now: Duration, is_excused: bool, what: &str) {
        let list = if is_excused { &mut self.excused } else { &mut self.violations };
        if list.len() < MOST {
            list.push(format!("after {now:.3?}: {what}"));
        }
    }
}
