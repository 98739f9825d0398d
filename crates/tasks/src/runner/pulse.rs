//! When this process last said that it lives. Whoever has been silent for too long has lost what it
//! held, and can know that before anyone tells it: it was frozen, or the database was away.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Of a runner, which keeps it. The default is one of somebody who never falls silent.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Option<Arc<Mutex<Instant>>>);

impl Pulse {
    pub(super) fn new() -> Self {
        Self(Some(Arc::new(Mutex::new(Instant::now()))))
    }

    /// A heartbeat that was begun at `at` was written.
    pub(super) fn felt(&self, at: Instant) {
        if let Some(last) = &self.0 {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = at;
        }
    }

    pub fn silent_for(&self) -> Duration {
        let last = self.0.as_ref().map(|last| *last.lock().unwrap_or_else(PoisonError::into_inner));
        last.map_or(Duration::ZERO, |last| last.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_is_from_the_beginning_of_the_last_heartbeat_that_was_written() {
        let pulse = Pulse::new();
        tokio::time::advance(Duration::from_secs(3)).await;
        let begun = Instant::now();
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(pulse.silent_for(), Duration::from_secs(5));
        pulse.clone().felt(begun);
        assert_eq!(pulse.silent_for(), Duration::from_secs(2));
        assert_eq!(Pulse::default().silent_for(), Duration::ZERO);
    }
}
