//! An ad library over HTTP: what scrapes of real workers read.
//!
//! It holds the ads that the doubles of [`crate::fleet`] find for the same seed, each as a whole record of
//! one to two kilobytes. What a mission (days, media type, languages) must bring home is a pure function of
//! the seed and its filters: [`AdLibrary::truth`], over HTTP `GET /_world/ads?…`.

mod config;
mod faults;
mod page;
mod query;
mod record;
mod server;
mod stats;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

pub use config::AdsConfig;
pub use faults::{AdFaults, BadAdFaults};
pub use stats::AdStats;

use crate::fleet::ads::Library;
use crate::fleet::{Ad, Filters};
use crate::proxy::ForwardProxy;
use stats::Ledger;

/// A library of ads. Clones are the same library.
#[derive(Clone, Debug)]
pub struct AdLibrary {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: AdsConfig,
    library: Library,
    faults: Mutex<AdFaults>,
    ledger: Mutex<Ledger>,
    requests: AtomicU64,
    /// What was found for some filters: a client asks for many pages of the same.
    found: Mutex<HashMap<Filters, Arc<Vec<Ad>>>>,
    proxies: Mutex<Vec<ForwardProxy>>,
}

/// So many answers are remembered.
const REMEMBERED: usize = 64;

impl AdLibrary {
    pub fn new(config: AdsConfig) -> Self {
        let library = Library::of(config.seed, config.ads, config.empty);
        let inner = Inner {
            config,
            library,
            faults: Mutex::default(),
            ledger: Mutex::default(),
            requests: AtomicU64::new(0),
            found: Mutex::default(),
            proxies: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The records that a scrape with these filters must find, in the order of the pages.
    pub fn truth(&self, filters: &Filters) -> Vec<Value> {
        self.find(filters).iter().map(|ad| record::of(ad, self.inner.config.seed)).collect()
    }

    /// How many they are.
    pub fn total(&self, filters: &Filters) -> u64 {
        self.inner.library.count(filters)
    }

    pub fn faults(&self) -> AdFaults {
        self.inner.faults.lock().clone()
    }

    /// Sets all switches at once, for the requests from now on.
    pub fn set_faults(&self, faults: AdFaults) -> Result<(), BadAdFaults> {
        faults.check()?;
        *self.inner.faults.lock() = faults;
        Ok(())
    }

    pub fn stats(&self) -> AdStats {
        self.inner.ledger.lock().stats()
    }

    /// Has `/_world/proxies` tell of these, and turn their switches.
    pub fn tell_of(&self, proxies: Vec<ForwardProxy>) {
        *self.inner.proxies.lock() = proxies;
    }

    fn find(&self, filters: &Filters) -> Arc<Vec<Ad>> {
        if let Some(found) = self.inner.found.lock().get(filters) {
            return Arc::clone(found);
        }
        let ads = Arc::new(self.inner.library.truth(filters));
        let mut found = self.inner.found.lock();
        if found.len() >= REMEMBERED {
            found.clear();
        }
        found.insert(filters.clone(), Arc::clone(&ads));
        ads
    }

    /// The number of a request, from 1.
    fn count(&self) -> u64 {
        self.inner.requests.fetch_add(1, Ordering::Relaxed) + 1
    }
}
