//! What was asked of the library, and what it gave.

use std::collections::BTreeMap;

use serde::Serialize;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AdStats {
    /// All requests for pages.
    pub requests: u64,
    /// By status; 0 where there was no answer.
    pub statuses: BTreeMap<u16, u64>,
    /// How often each page was given whole, by its query.
    pub pages: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
pub(super) struct Ledger(AdStats);

impl Ledger {
    pub(super) fn stats(&self) -> AdStats {
        self.0.clone()
    }

    /// `page` where one was given as it is.
    pub(super) fn answered(&mut self, status: u16, page: Option<&str>) {
        self.0.requests += 1;
        *self.0.statuses.entry(status).or_default() += 1;
        if let Some(page) = page {
            *self.0.pages.entry(page.to_owned()).or_default() += 1;
        }
    }
}
