//! Whether this process says in time that it lives. Whoever has been silent for too long may have
//! lost what it held, and can know that before anyone tells it: it was frozen, or the database was
//! away.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often is looked whether a heartbeat was written.
const LOOK: Duration = Duration::from_millis(50);

/// Of a runner, which keeps it. The default is one of somebody who never falls silent.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Option<Arc<Kept>>);

#[derive(Debug)]
struct Kept {
    /// The longest silence that nobody takes for death.
    most: Duration,
    beats: Mutex<Beats>,
}

#[derive(Clone, Copy, Debug)]
struct Beats {
    /// When the last heartbeat that was written was begun.
    last: Instant,
    /// When the last silence that was too long ended.
    since: Instant,
}

impl Pulse {
    /// Of a process that others take for dead after a silence of `stale`.
    pub fn new(stale: Duration) -> Self {
        let now = Instant::now();
        let beats = Mutex::new(Beats { last: now, since: now });
        Self(Some(Arc::new(Kept { most: stale * 3 / 4, beats })))
    }

    /// A heartbeat that was begun at `at` is written now.
    pub fn felt(&self, at: Instant) {
        if let Some(kept) = &self.0 {
            let mut beats = kept.beats.lock().unwrap_or_else(PoisonError::into_inner);
            if beats.last.elapsed() > kept.most {
                beats.since = Instant::now();
            }
            beats.last = at;
        }
    }

    pub fn silent_for(&self) -> Duration {
        self.0.as_ref().map_or(Duration::ZERO, |kept| kept.beats().last.elapsed())
    }

    /// Whether nobody can have taken this process for dead at any time since `at`.
    pub fn is_unbroken_since(&self, at: Instant) -> bool {
        self.0.as_ref().is_none_or(|kept| {
            let beats = kept.beats();
            beats.since <= at && beats.last.elapsed() <= kept.most
        })
    }

    /// Waits while it is silent.
    pub async fn regained(&self) {
        let Some(kept) = &self.0 else { return };
        while kept.beats().last.elapsed() > kept.most {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Kept {
    fn beats(&self) -> Beats {
        *self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn seconds(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_from_the_beginning_of_the_last_heartbeat_that_was_written() {
        let pulse = Pulse::new(Duration::from_secs(12));
        seconds(3).await;
        let begun = Instant::now();
        seconds(2).await;
        assert_eq!(pulse.silent_for(), Duration::from_secs(5));
        pulse.clone().felt(begun);
        assert_eq!(pulse.silent_for(), Duration::from_secs(2));
        assert_eq!(Pulse::default().silent_for(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_claimed_before_a_long_silence_is_not_held_after_it() {
        let pulse = Pulse::new(Duration::from_secs(12));
        let claimed = Instant::now();
        seconds(9).await;
        assert!(pulse.is_unbroken_since(claimed));
        pulse.felt(Instant::now());
        seconds(10).await;
        assert!(!pulse.is_unbroken_since(claimed), "silent for too long");
        let waiting = tokio::spawn({
            let pulse = pulse.clone();
            async move { pulse.regained().await }
        });
        seconds(1).await;
        assert!(!waiting.is_finished());
        pulse.felt(Instant::now());
        waiting.await.unwrap();
        assert!(!pulse.is_unbroken_since(claimed), "and nobody knows what happened meanwhile");
        assert!(pulse.is_unbroken_since(Instant::now()));
        assert!(Pulse::default().is_unbroken_since(claimed));
    }
}
