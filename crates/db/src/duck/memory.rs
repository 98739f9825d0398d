//! How much memory DuckDB may have: little to begin with, and twice as much whenever a write does not
//! fit.

use std::sync::atomic::{AtomicU64, Ordering};

/// Never more than this, in megabytes, unless one value needs it.
const MOST: u64 = 4096;

#[derive(Debug)]
pub(super) struct Memory(AtomicU64);

impl Memory {
    pub(super) fn new(megabytes: u64) -> Self {
        Self(AtomicU64::new(megabytes))
    }

    pub(super) fn megabytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn raise_to(&self, megabytes: u64) {
        self.0.fetch_max(megabytes, Ordering::Relaxed);
    }

    /// `false` if it has all that it may have.
    pub(super) fn double(&self) -> bool {
        let more = |now: u64| (now < MOST).then(|| (2 * now).min(MOST));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// The statement that tells DuckDB.
    pub(super) fn sql(&self) -> String {
        format!("SET GLOBAL memory_limit = '{}MB'", self.megabytes())
    }
}

/// Whether more memory would have helped.
pub(super) fn is_short(error: &crate::Error) -> bool {
    let crate::Error::Duck { source, .. } = error else { return false };
    let text = source.to_string();
    ["Out of Memory Error", "failed to pin block", "could not allocate block"]
        .iter()
        .any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_the_most() {
        let memory = Memory::new(1500);
        assert!(memory.double());
        assert_eq!(memory.megabytes(), 3000);
        assert!(memory.double());
        assert_eq!(memory.sql(), "SET GLOBAL memory_limit = '4096MB'");
        assert!(!memory.double());
        memory.raise_to(5000);
        memory.raise_to(10);
        assert_eq!(memory.megabytes(), 5000);
    }
}
