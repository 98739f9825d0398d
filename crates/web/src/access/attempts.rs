//! How often someone may show a key that is none.
//!
//! A wrong key takes a token out of the bucket of the address it came from and of the one of the key it
//! names; ten are in each, and one comes back every six seconds. From an address without tokens no
//! key is looked at, except those that were right before: their holders go on. A right key costs
//! nothing. What is remembered is bounded, whatever is sent.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::credential::Hash;
use super::model::KeyId;

const TOKENS: f64 = 10.0;
const SECONDS_PER_TOKEN: f64 = 6.0;
/// Buckets, and keys that were right, that are remembered.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    buckets: HashMap<Source, Bucket>,
    known: HashMap<Hash, Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source {
    Address(IpAddr),
    Key(KeyId),
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn tokens(&self, now: Instant) -> f64 {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() / SECONDS_PER_TOKEN;
        (self.tokens + gained).min(TOKENS)
    }

    /// How long it takes until there is a token.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let missing = 1.0 - self.tokens(now);
        (missing > 0.0).then(|| Duration::from_secs_f64(missing * SECONDS_PER_TOKEN))
    }
}

impl Attempts {
    /// Whether a key from there is looked at; if not, how long to wait.
    pub(super) fn admit(
        &self,
        from: IpAddr,
        hash: Option<Hash>,
        now: Instant,
    ) -> Result<(), Duration> {
        let memory = self.memory();
        if hash.is_some_and(|hash| memory.known.contains_key(&hash)) {
            return Ok(());
        }
        let bucket = memory.buckets.get(&address(from));
        bucket.and_then(|bucket| bucket.wait(now)).map_or(Ok(()), Err)
    }

    /// A key was wrong. How long to wait, where too many were for the same one.
    pub(super) fn failed(
        &self,
        from: IpAddr,
        key: Option<KeyId>,
        now: Instant,
    ) -> Option<Duration> {
        let mut memory = self.memory();
        memory.take(address(from), now);
        key.and_then(|key| memory.take(Source::Key(key), now))
    }

    pub(super) fn succeeded(&self, hash: Hash, now: Instant) {
        let mut memory = self.memory();
        if memory.known.len() >= MOST && !memory.known.contains_key(&hash) {
            let oldest = memory.known.iter().min_by_key(|(_, at)| **at).map(|(hash, _)| *hash);
            oldest.and_then(|oldest| memory.known.remove(&oldest));
        }
        memory.known.insert(hash, now);
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// Takes a token; where there is none, says how long to wait.
    fn take(&mut self, source: Source, now: Instant) -> Option<Duration> {
        if self.buckets.len() >= MOST && !self.buckets.contains_key(&source) {
            // One that is full again says nothing; failing that, the fullest says least.
            self.buckets.retain(|_, bucket| bucket.tokens(now) < TOKENS);
            if self.buckets.len() >= MOST {
                let of = |bucket: &Bucket| bucket.tokens(now);
                let fullest = self.buckets.iter().max_by(|a, b| of(a.1).total_cmp(&of(b.1)));
                let fullest = fullest.map(|(source, _)| source.clone());
                fullest.and_then(|source| self.buckets.remove(&source));
            }
        }
        let bucket = self.buckets.entry(source).or_insert(Bucket { tokens: TOKENS, at: now });
        let wait = bucket.wait(now);
        *bucket = Bucket { tokens: (bucket.tokens(now) - 1.0).max(0.0), at: now };
        wait
    }
}

/// Who has one address of IPv6 has the 2⁶⁴ beside it.
fn address(from: IpAddr) -> Source {
    Source::Address(match from.to_canonical() {
        IpAddr::V6(wide) => Ipv6Addr::from_bits(wide.to_bits() >> 64 << 64).into(),
        narrow @ IpAddr::V4(_) => narrow,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn fail(attempts: &Attempts, from: IpAddr, times: u32, now: Instant) {
        for _ in 0..times {
            assert!(attempts.admit(from, None, now).is_ok());
            attempts.failed(from, None, now);
        }
    }

    #[test]
    fn ten_are_looked_at_and_then_one_every_six_seconds() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        fail(&attempts, HERE, 10, now);
        assert_eq!(attempts.admit(HERE, None, now), Err(Duration::from_secs(6)));
        assert!(attempts.admit(THERE, None, now).is_ok(), "others go on");
        let later = now + Duration::from_secs(6);
        fail(&attempts, HERE, 1, later);
        assert!(attempts.admit(HERE, None, later).is_err());
        fail(&attempts, HERE, 10, now + Duration::from_secs(600));
    }

    #[test]
    fn a_key_that_was_right_before_goes_on() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let right = Hash::of("right");
        attempts.succeeded(right, now);
        fail(&attempts, HERE, 10, now);
        assert!(attempts.admit(HERE, Some(right), now).is_ok());
        assert!(attempts.admit(HERE, Some(Hash::of("another")), now).is_err());
    }

    #[test]
    fn guesses_at_one_key_from_everywhere_are_counted_together() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let key = KeyId("abcdefgh".into());
        for host in 0..10 {
            assert!(attempts.failed([192, 0, 2, host].into(), Some(key.clone()), now).is_none());
        }
        assert!(attempts.failed([192, 0, 2, 99].into(), Some(key), now).is_some());
    }

    #[test]
    fn neighbours_of_one_network_of_ipv6_are_one_and_ipv4_in_ipv6_is_ipv4() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        fail(&attempts, "2001:db8::1".parse().unwrap(), 10, now);
        assert!(attempts.admit("2001:db8::ffff:1".parse().unwrap(), None, now).is_err());
        assert!(attempts.admit("2001:db8:0:1::1".parse().unwrap(), None, now).is_ok());
        fail(&attempts, HERE, 10, now);
        assert!(attempts.admit("::ffff:192.0.2.1".parse().unwrap(), None, now).is_err());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_worst_are_kept() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        fail(&attempts, HERE, 10, now);
        for number in 0..(MOST as u32 + 100) {
            attempts.failed(std::net::Ipv4Addr::from_bits(number).into(), None, now);
            attempts.succeeded(Hash::of(&number.to_string()), now);
        }
        let memory = attempts.memory();
        assert!(memory.buckets.len() <= MOST && memory.known.len() <= MOST);
        drop(memory);
        assert!(attempts.admit(HERE, None, now).is_err());
    }
}
