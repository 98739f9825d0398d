//! How long to wait before the next attempt: exponential, with jitter so that what failed
//! together does not come back together.

use std::time::Duration;

/// The settings of the waits between attempts.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(2), longest: Duration::from_secs(600) }
    }
}

impl Backoff {
    /// The wait before retry number `retry` (from 1): between half and the whole of its step.
    pub fn wait(&self, retry: i32) -> Duration {
        self.wait_with(retry, rand::random())
    }

    fn wait_with(&self, retry: i32, chance: f64) -> Duration {
        let doublings = retry.clamp(1, 31) - 1;
        let step = self.first.saturating_mul(1 << doublings).min(self.longest);
        step.mul_f64(0.5 + chance / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn waits_grow_and_stay_within_their_step(retry in i32::MIN..i32::MAX, chance in 0.0..1.0) {
            let backoff = Backoff::default();
            let wait = backoff.wait_with(retry, chance);
            prop_assert!(wait >= backoff.first / 2);
            prop_assert!(wait <= backoff.longest);
            prop_assert!(backoff.wait_with(retry.saturating_add(1), 1.0) >= wait);
        }
    }
}
