//! Requests under way: counted from their arrival until their answer is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stats::{Ledger, PageKey};

/// How many there are, and the most there were.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    now: AtomicU64,
    most: AtomicU64,
}

impl Flights {
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

/// One request under way.
#[derive(Debug)]
pub(crate) struct Ticket {
    ledger: Arc<Ledger>,
    /// The page that is served by it, if it is.
    page: Option<PageKey>,
    /// This one included.
    pub(crate) in_flight: u64,
}

impl Ticket {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Self {
        let in_flight = ledger.flights.now.fetch_add(1, Ordering::Relaxed) + 1;
        ledger.flights.most.fetch_max(in_flight, Ordering::Relaxed);
        Self { ledger, page: None, in_flight }
    }

    pub(crate) fn serves(&mut self, page: PageKey) {
        self.ledger.begun(page.clone());
        self.page = Some(page);
    }

    /// What was to be served is not, or not rightly.
    pub(crate) fn spoil(&mut self) {
        self.page = None;
    }

    pub(crate) fn delivered(mut self) {
        if let Some(page) = self.page.take() {
            self.ledger.served(page);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.ledger.flights.now.fetch_sub(1, Ordering::Relaxed);
    }
}
