//! How many requests may be under way at one host.
//!
//! Nobody tells: the portal counts requests in flight, answers the surplus with 429 or 500, and
//! how many it bears changes with the hour. So the number is found out and followed: one more
//! when the number was reached and all went well for a round (at first twice as many, until
//! something is refused), a quarter less when a request was refused. Refusals of requests that were under way together are one event, or a burst would
//! take it to the floor. What was too much is remembered: the nearer and the more often, the
//! longer it waits before it tries that number again, because each try costs the server a refusal.

use tokio::time::Instant;

/// The most rounds of success before a number that was too much is tried again.
const LONGEST_PATIENCE: usize = 6;

#[derive(Debug)]
pub struct Limiter {
    limit: usize,
    cap: usize,
    in_flight: usize,
    /// Successes since the limit last changed, of requests that were begun since.
    successes: usize,
    strains: usize,
    /// Whether as many as allowed were under way since the limit last changed.
    was_reached: bool,
    changed: Instant,
    /// Whether nothing was ever refused.
    is_finding: bool,
    /// The number that was too much, and how many rounds to wait before it is tried again.
    too_much: Option<usize>,
    patience: usize,
}

impl Limiter {
    /// Begins with one, at `now`; never more than `cap`.
    pub fn new(cap: usize, now: Instant) -> Self {
        Self {
            limit: 1,
            cap: cap.max(1),
            in_flight: 0,
            successes: 0,
            strains: 0,
            was_reached: false,
            changed: now,
            is_finding: true,
            too_much: None,
            patience: 1,
        }
    }

    /// Somebody else who asks the same host allows it no more than this.
    pub fn lower_cap(&mut self, cap: usize, now: Instant) {
        self.cap = self.cap.min(cap.max(1));
        if self.limit > self.cap {
            self.change(self.cap, now);
        }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether one more may begin; if so, it has.
    pub fn begin(&mut self) -> bool {
        if self.in_flight >= self.limit {
            return false;
        }
        self.in_flight += 1;
        self.was_reached |= self.in_flight == self.limit;
        true
    }

    /// One is no longer under way; how it went may be said later.
    pub fn landed(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// One that began at `begun` went well.
    pub fn succeeded(&mut self, begun: Instant, now: Instant) {
        if begun < self.changed {
            return;
        }
        self.successes += 1;
        let next = if self.is_finding { self.limit * 2 } else { self.limit + 1 };
        let next = next.min(self.cap);
        let rounds = if self.too_much == Some(next) { self.patience } else { 1 };
        if self.was_reached && next > self.limit && self.successes >= self.limit * rounds {
            if self.too_much.is_some_and(|too_much| next > too_much) {
                // It bears more than it did.
                self.too_much = None;
                self.patience = 1;
            }
            self.change(next, now);
        }
    }

    /// One that began at `begun` was refused because there were too many.
    pub fn refused(&mut self, begun: Instant, now: Instant) {
        if begun < self.changed {
            return;
        }
        self.is_finding = false;
        self.patience = match self.too_much {
            Some(too_much) if too_much == self.limit => (self.patience * 2).min(LONGEST_PATIENCE),
            _ => 1,
        };
        self.too_much = Some(self.limit);
        self.change((self.limit * 3 / 4).max(1), now);
    }

    /// One that began at `begun` failed in a way that may have had other reasons. Some always do;
    /// it counts when they are many.
    pub fn strained(&mut self, begun: Instant, now: Instant) {
        if begun >= self.changed {
            self.strains += 1;
            if self.strains >= 2 && self.strains * 3 > self.successes {
                self.refused(begun, now);
            }
        }
    }

    /// After an outage it begins anew: nobody knows what the host bears now.
    pub fn restart(&mut self, now: Instant) {
        self.is_finding = false;
        self.too_much = None;
        self.patience = 1;
        self.change(1, now);
    }

    fn change(&mut self, limit: usize, now: Instant) {
        self.limit = limit;
        self.successes = 0;
        self.strains = 0;
        self.was_reached = self.in_flight >= limit;
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// A server that bears `bears(t)` requests at once and refuses the surplus at once; a client
    /// that always has more to ask. Says how many went well in each second.
    fn served(
        cap: usize,
        seconds: u64,
        latency: Duration,
        mut luck: u64,
        bears: impl Fn(u64) -> usize,
    ) -> Vec<usize> {
        let start = Instant::now();
        let mut limiter = Limiter::new(cap, start);
        let mut served = vec![0; seconds as usize];
        let (mut now, mut at_work) = (start, 0);
        // When it ends, when it began, whether it is served; the number keeps the order total.
        let mut ends: BinaryHeap<Reverse<(Instant, u64, Instant, bool)>> = BinaryHeap::new();
        let mut number = 0;
        loop {
            let second = now.duration_since(start).as_secs();
            if second >= seconds {
                return served;
            }
            while limiter.begin() {
                number += 1;
                luck = luck.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let is_served = at_work < bears(second);
                at_work += usize::from(is_served);
                let share = 0.5 + (luck >> 33) as f64 / f64::from(1_u32 << 31);
                let takes = if is_served { latency.mul_f64(share) } else { latency / 20 };
                ends.push(Reverse((now + takes, number, now, is_served)));
            }
            let Some(Reverse((end, _, began, is_served))) = ends.pop() else { return served };
            now = end;
            if is_served {
                at_work -= 1;
                limiter.landed();
                limiter.succeeded(began, now);
                if let Some(count) = served.get_mut(now.duration_since(start).as_secs() as usize) {
                    *count += 1;
                }
            } else {
                limiter.landed();
                limiter.refused(began, now);
            }
        }
    }

    /// The share of the best possible throughput over the last 40 s of a stretch.
    fn share(served: &[usize], end: usize, bears: usize, latency: Duration) -> f64 {
        let done: usize = served[end - 40..end].iter().sum();
        done as f64 / (40.0 * bears as f64 / latency.as_secs_f64())
    }

    proptest! {
        #[test]
        fn it_finds_what_a_server_bears(
            bears in prop::sample::select(vec![1_usize, 3, 8]),
            millis in 200_u64..1500,
            luck: u64,
        ) {
            let latency = Duration::from_millis(millis);
            let served = served(32, 60, latency, luck, |_| bears);
            let share = share(&served, 60, bears, latency);
            prop_assert!(share >= 0.8, "{share} of what {bears} at once would give");
        }

        #[test]
        fn it_follows_a_server_that_bears_now_more_and_now_less(millis in 200_u64..1500, luck: u64) {
            let latency = Duration::from_millis(millis);
            let bears = |second: u64| [8, 2, 6][(second / 60).min(2) as usize];
            let served = served(32, 180, latency, luck, bears);
            for stretch in 0..3 {
                let bears = bears(stretch * 60);
                let share = share(&served, (stretch as usize + 1) * 60, bears, latency);
                prop_assert!(share >= 0.8, "{share} of what {bears} at once would give");
            }
        }
    }

    #[test]
    fn a_burst_of_refusals_is_one_event() {
        let begun = Instant::now();
        let mut limiter = Limiter { limit: 8, ..Limiter::new(8, begun) };
        let together = begun + Duration::from_secs(1);
        while limiter.begin() {}
        for n in 1..=8 {
            limiter.landed();
            limiter.refused(together, together + Duration::from_millis(n));
        }
        assert_eq!((limiter.limit(), limiter.in_flight()), (6, 0));
    }

    #[test]
    fn it_grows_only_when_the_limit_was_reached_and_never_beyond_the_cap() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(3, begun);
        for n in 1..200 {
            // Never more than one at once.
            assert!(limiter.begin());
            let now = begun + Duration::from_secs(n);
            limiter.landed();
            limiter.succeeded(now, now);
        }
        assert_eq!(limiter.limit(), 2, "two were never under way");
        for n in 200..400 {
            while limiter.begin() {}
            while limiter.in_flight() > 0 {
                let now = begun + Duration::from_secs(n);
                limiter.landed();
                limiter.succeeded(now, now);
            }
        }
        assert_eq!(limiter.limit(), 3);
    }
}
