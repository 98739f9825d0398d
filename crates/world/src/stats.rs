//! What was asked and what was served, so that a test can say what a client did.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::api::Asked;
use crate::flight::Flights;

/// The counts since the world began.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Stats {
    pub requests: u64,
    /// By path; single records under `/v1/orgaos`, all else under `elsewhere`.
    pub by_endpoint: BTreeMap<String, u64>,
    /// By status; what had none under `hang` or `reset`.
    pub by_status: BTreeMap<String, u64>,
    /// Pages that were sent to their end, with the right records in them.
    pub whole_pages: u64,
    pub in_flight: u64,
    pub most_in_flight: u64,
    /// Each page that was ever served whole.
    pub pages: Vec<PageCount>,
}

impl Stats {
    /// The pages that were served more than once.
    pub fn repeated(&self) -> impl Iterator<Item = &PageCount> {
        self.pages.iter().filter(|page| page.times > 1)
    }
}

/// How often a page was served whole.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct PageCount {
    pub endpoint: String,
    pub fan_out: Option<u16>,
    /// As in the request: `20240701..20240731`.
    pub window: String,
    pub page: u64,
    pub size: u64,
    /// Whether the request had filters beyond window and fan-out; their values count as well.
    pub filtered: bool,
    pub times: u64,
    /// How often its answer was begun, also of those that were cut, or are still under way.
    pub begun: u64,
}

/// A page as it is counted.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct PageKey {
    pub(crate) asked: Asked,
    pub(crate) page: u64,
    pub(crate) size: u64,
}

#[derive(Debug, Default)]
struct Counts {
    requests: u64,
    by_endpoint: BTreeMap<&'static str, u64>,
    by_status: BTreeMap<Outcome, u64>,
    whole: u64,
    pages: HashMap<PageKey, u64>,
    begun: HashMap<PageKey, u64>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Outcome {
    Status(u16),
    Hang,
    Reset,
}

/// Where it is all written down.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) flights: Flights,
    counts: Mutex<Counts>,
}

impl Ledger {
    pub(crate) fn asked(&self, endpoint: &'static str, outcome: Outcome) {
        let mut counts = self.counts.lock();
        counts.requests += 1;
        *counts.by_endpoint.entry(endpoint).or_default() += 1;
        *counts.by_status.entry(outcome).or_default() += 1;
    }

    pub(crate) fn begun(&self, page: PageKey) {
        *self.counts.lock().begun.entry(page).or_default() += 1;
    }

    pub(crate) fn served(&self, page: PageKey) {
        let mut counts = self.counts.lock();
        counts.whole += 1;
        *counts.pages.entry(page).or_default() += 1;
    }

    pub(crate) fn stats(&self) -> Stats {
        let counts = self.counts.lock();
        let mut pages: Vec<PageCount> =
            counts.pages.iter().map(|(key, times)| count(key, *times, &counts.begun)).collect();
        pages.sort();
        let status = |(outcome, count): (&Outcome, &u64)| {
            let name = match outcome {
                Outcome::Status(status) => status.to_string(),
                Outcome::Hang => "hang".into(),
                Outcome::Reset => "reset".into(),
            };
            (name, *count)
        };
        Stats {
            requests: counts.requests,
            by_endpoint: counts.by_endpoint.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            by_status: counts.by_status.iter().map(status).collect(),
            whole_pages: counts.whole,
            in_flight: self.flights.now(),
            most_in_flight: self.flights.most(),
            pages,
        }
    }
}

fn count(key: &PageKey, times: u64, begun: &HashMap<PageKey, u64>) -> PageCount {
    PageCount {
        endpoint: key.asked.endpoint.path().to_owned(),
        fan_out: key.asked.fan_out,
        window: key.asked.window.clone(),
        page: key.page,
        size: key.size,
        filtered: key.asked.filter != crate::listing::Filter::default(),
        times,
        begun: begun.get(key).copied().unwrap_or(times),
    }
}
