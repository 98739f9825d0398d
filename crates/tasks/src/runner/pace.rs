//! How much to claim: what can run now, and a little ahead when the work is fast.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// What was finished in this time may be claimed ahead: it will not wait for longer.
const AHEAD: Duration = Duration::from_millis(200);
const SLICES: usize = 20;

#[derive(Debug)]
pub(super) struct Pace {
    concurrency: usize,
    batch: usize,
    running: AtomicUsize,
    /// A place became free.
    changed: Notify,
    lately: Mutex<Lately>,
}

impl Pace {
    pub(super) fn new(concurrency: usize, batch: usize) -> Self {
        Self {
            concurrency,
            batch,
            running: AtomicUsize::new(0),
            changed: Notify::new(),
            lately: Mutex::new(Lately::new(Instant::now())),
        }
    }

    /// Waits until something may be claimed, and says how much.
    pub(super) async fn room(&self) -> usize {
        loop {
            let changed = self.changed.notified();
            let allowed = self.concurrency + self.finished_lately(0);
            let free = allowed.saturating_sub(self.running.load(Ordering::Acquire));
            // A small claim costs as much as a large one: wait for a good part of the room.
            if free > 0 && free * 4 >= allowed.min(self.batch) {
                return power_of_two_within(free.min(self.batch));
            }
            changed.await;
        }
    }

    pub(super) fn started(&self, count: usize) {
        self.running.fetch_add(count, Ordering::AcqRel);
    }

    pub(super) fn finished(&self) {
        self.finished_lately(1);
        self.running.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    fn finished_lately(&self, more: usize) -> usize {
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        lately.count(Instant::now(), more)
    }
}

/// Few different sizes: each is a statement of its own, which a database plans once.
fn power_of_two_within(room: usize) -> usize {
    1 << room.max(1).ilog2()
}

/// What was finished in the last moments, as a ring of slices of time.
#[derive(Debug)]
struct Lately {
    since: Instant,
    newest: usize,
    slices: [usize; SLICES],
    sum: usize,
}

impl Lately {
    fn new(since: Instant) -> Self {
        Self { since, newest: 0, slices: [0; SLICES], sum: 0 }
    }

    /// Counts `more` at `now` and says how many there are of late.
    fn count(&mut self, now: Instant, more: usize) -> usize {
        let slice = AHEAD / SLICES as u32;
        let passed = now.saturating_duration_since(self.since).as_nanos() / slice.as_nanos();
        let passed = usize::try_from(passed).unwrap_or(usize::MAX);
        for _ in 0..passed.min(SLICES) {
            self.newest = (self.newest + 1) % SLICES;
            self.sum -= std::mem::take(&mut self.slices[self.newest]);
        }
        // After a long pause nothing is left, and the slices may begin anew.
        self.since = if passed > SLICES { now } else { self.since + slice * passed as u32 };
        self.slices[self.newest] += more;
        self.sum += more;
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_finished_is_forgotten_after_a_moment() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let mut lately = Lately::new(begun);
        assert_eq!(lately.count(at(0), 5), 5);
        assert_eq!(lately.count(at(95), 2), 7);
        assert_eq!(lately.count(at(199), 0), 7);
        assert_eq!(lately.count(at(201), 1), 3);
        assert_eq!(lately.count(at(5_000), 0), 0);
        assert_eq!(lately.count(at(5_001), 4), 4);
    }

    #[tokio::test]
    async fn fast_work_is_claimed_ahead_and_slow_work_is_not() {
        let pace = Pace::new(4, 1000);
        assert_eq!(pace.room().await, 4);
        pace.started(4);
        let waiting = tokio::time::timeout(Duration::from_millis(20), pace.room()).await;
        assert!(waiting.is_err(), "all places are taken");
        (0..4).for_each(|_| pace.finished());
        assert_eq!(pace.room().await, 8, "as many again as were finished just now");
        pace.started(8);
        tokio::time::sleep(AHEAD * 2).await;
        pace.finished();
        let waiting = tokio::time::timeout(Duration::from_millis(20), pace.room()).await;
        assert!(waiting.is_err(), "seven still run, and what was finished is long ago");
    }
}
