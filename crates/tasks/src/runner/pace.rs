//! How much to claim: what can run now, and a little ahead when the work is fast.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Claim ahead what is finished in this time at the present rate.
const AHEAD: Duration = Duration::from_millis(200);
const MEASURE_EVERY: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Pace {
    concurrency: usize,
    batch: usize,
    running: AtomicUsize,
    finished: AtomicU64,
    /// A place became free.
    changed: Notify,
    measured: Mutex<Measured>,
}

#[derive(Debug)]
struct Measured {
    at: Instant,
    finished: u64,
    per_second: f64,
}

impl Pace {
    pub(super) fn new(concurrency: usize, batch: usize) -> Self {
        let measured = Measured { at: Instant::now(), finished: 0, per_second: 0.0 };
        Self {
            concurrency,
            batch,
            running: AtomicUsize::new(0),
            finished: AtomicU64::new(0),
            changed: Notify::new(),
            measured: Mutex::new(measured),
        }
    }

    /// Waits until something may be claimed, and says how much.
    pub(super) async fn room(&self) -> usize {
        loop {
            let changed = self.changed.notified();
            let allowed = self.concurrency + self.ahead();
            let free = allowed.saturating_sub(self.running.load(Ordering::Acquire));
            // A small claim costs as much as a large one: wait for a good part of the room,
            // unless less than that can ever run at once.
            if free > 0 && (free * 4 >= allowed.min(self.batch) || free >= self.batch) {
                return free.min(self.batch);
            }
            changed.await;
        }
    }

    pub(super) fn started(&self, count: usize) {
        self.running.fetch_add(count, Ordering::AcqRel);
    }

    pub(super) fn finished(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    fn ahead(&self) -> usize {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = measured.at.elapsed();
        if elapsed >= MEASURE_EVERY {
            let finished = self.finished.load(Ordering::Relaxed);
            let rate = (finished - measured.finished) as f64 / elapsed.as_secs_f64();
            // Quick to slow down, slower to speed up.
            measured.per_second = f64::midpoint(measured.per_second, rate).min(rate);
            measured.finished = finished;
            measured.at = Instant::now();
        }
        (measured.per_second * AHEAD.as_secs_f64()) as usize
    }
}
