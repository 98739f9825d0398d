//! What happens in a run, told once; the bars, the log, the JSON and the task's steps listen.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::model::{ExtractionId, Status, Totals};
use crate::reading::Kind;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Planned {
        tasks: usize,
        new: usize,
    },
    /// `waiting` tasks have their totals to be found out.
    Discovering {
        waiting: usize,
    },
    Discovered {
        task: ExtractionId,
        totals: Totals,
        missing: i64,
    },
    DiscoveryFailed {
        task: ExtractionId,
        error: String,
    },
    /// The source announces another number of pages than its total makes; the total counts.
    PagesDiffer {
        task: ExtractionId,
        announced: i64,
        counted: i64,
    },
    /// `pages` are missing in all.
    Fetching {
        tasks: usize,
        pages: i64,
    },
    TaskBegun {
        task: ExtractionId,
        missing: i64,
    },
    PageStored {
        task: ExtractionId,
        records: i64,
        bytes: i64,
        again: bool,
    },
    PageFailed {
        task: ExtractionId,
        page: i64,
        kind: Kind,
        error: String,
    },
    /// The source announces another total than before.
    Drifted {
        task: ExtractionId,
        from: i64,
        to: i64,
    },
    TaskEnded {
        task: ExtractionId,
        status: Status,
        verdict: Option<String>,
        error: Option<String>,
    },
    /// Another process has taken it.
    TaskLost {
        task: ExtractionId,
    },
    OutageBegan {
        endpoint: String,
        error: String,
    },
    OutageEnded {
        endpoint: String,
    },
    /// The host said when it wants to be asked again, and is not asked before.
    LeftAlone {
        until: Timestamp,
    },
    /// Nothing can be done but wait.
    Waiting {
        tasks: usize,
        why: &'static str,
    },
    Ended {
        summary: Summary,
    },
}

/// What a run has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub complete: usize,
    pub partial: usize,
    pub failed: usize,
    pub pending: usize,
    pub pages: u64,
    pub records: u64,
    pub bytes: u64,
    pub requests: u64,
    /// Pages that were there and were asked for again, because totals moved or a month was open.
    pub again: u64,
    pub failures: BTreeMap<&'static str, u64>,
    pub drifts: u64,
    pub is_interrupted: bool,
}

impl Summary {
    /// Whether something remains to be done.
    pub fn is_short(&self) -> bool {
        self.partial + self.failed + self.pending > 0
    }
}
