//! What a run has done so far, counted from its events.

use std::sync::{Mutex, PoisonError};

use crate::event::{Event, Summary};

#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Summary>);

impl Tally {
    fn with(&self, change: impl FnOnce(&mut Summary)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn request(&self) {
        self.with(|summary| summary.requests += 1);
    }

    pub(super) fn count(&self, event: &Event) {
        self.with(|summary| match event {
            Event::PageStored { records, bytes, again, .. } => {
                summary.pages += 1;
                summary.records += *records as u64;
                summary.bytes += *bytes as u64;
                summary.again += u64::from(*again);
            }
            Event::PageFailed { kind, .. } => {
                *summary.failures.entry(kind.as_str()).or_default() += 1;
            }
            Event::Drifted { .. } => summary.drifts += 1,
            Event::Planned { .. }
            | Event::Discovering { .. }
            | Event::Discovered { .. }
            | Event::DiscoveryFailed { .. }
            | Event::PagesDiffer { .. }
            | Event::Fetching { .. }
            | Event::TaskBegun { .. }
            | Event::TaskEnded { .. }
            | Event::TaskLost { .. }
            | Event::OutageBegan { .. }
            | Event::OutageEnded { .. }
            | Event::LeftAlone { .. }
            | Event::Waiting { .. }
            | Event::Ended { .. } => {}
        });
    }

    pub(super) fn summary(&self) -> Summary {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
