//! Whose clock decides: the store's.
//!
//! A process whose own clock is an hour off must not claim too early, take over too soon or write
//! ids that sort into the future. So the wall clock of this machine is read only where this
//! process *is* the store (a DuckDB file): followed when it runs ahead, as after a laptop slept,
//! and never followed back. With PostgreSQL the server's time is noted now and then, together
//! with a monotonic reading, and carried on from there.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use uuid::Uuid;

/// How far the wall clock may run ahead before it is followed.
const AHEAD: SignedDuration = SignedDuration::from_millis(500);

#[derive(Clone, Debug)]
pub struct Clock {
    anchor: Arc<Mutex<Anchor>>,
}

#[derive(Debug)]
struct Anchor {
    at: Instant,
    time: Timestamp,
    /// Whether this machine's wall clock is the store's.
    is_ours: bool,
    /// Ids without chance in them, so that a simulation can be repeated.
    is_simulated: bool,
    /// The greatest id time handed out, in milliseconds, with a counter below it.
    last_id: (u64, u32),
}

impl Clock {
    /// This machine's wall clock, for the owner of a file.
    pub(crate) fn ours() -> Self {
        Self::starting_at(Timestamp::now(), true, false)
    }

    /// A server's clock, to be told by [`Clock::set`] before it is asked.
    pub(crate) fn theirs() -> Self {
        Self::starting_at(Timestamp::now(), false, false)
    }

    /// The clock of a store in memory: it begins at `time` and follows tokio's, which a simulation
    /// can stop.
    pub fn simulated(time: Timestamp) -> Self {
        Self::starting_at(time, false, true)
    }

    fn starting_at(time: Timestamp, is_ours: bool, is_simulated: bool) -> Self {
        let anchor = Anchor { at: Instant::now(), time, is_ours, is_simulated, last_id: (0, 0) };
        Self { anchor: Arc::new(Mutex::new(anchor)) }
    }

    /// Takes over the store's time, back as well as forward; ids stay in order all the same.
    pub fn set(&self, time: Timestamp) {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        anchor.time = time;
        anchor.at = Instant::now();
    }

    pub fn now(&self) -> Timestamp {
        self.anchor.lock().unwrap_or_else(PoisonError::into_inner).now()
    }

    /// A new version-7 id by the store's clock: later ids of one process are greater.
    pub fn new_id(&self) -> Uuid {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = anchor.now().as_millisecond().max(0) as u64;
        let (last, count) = anchor.last_id;
        // 12 bits of counter in rand_a; past them, borrow the next millisecond.
        anchor.last_id = if millis > last {
            (millis, 0)
        } else if count < 0xFFF {
            (last, count + 1)
        } else {
            (last + 1, 0)
        };
        let (millis, count) = anchor.last_id;
        let random = if anchor.is_simulated { Uuid::from_u128(2 << 62) } else { Uuid::new_v4() };
        drop(anchor);
        id(millis, count, random)
    }
}

/// Version 7 by hand only where the counter has its place; the rest comes from a version 4.
fn id(millis: u64, count: u32, random: Uuid) -> Uuid {
    let mut bytes = *random.as_bytes();
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6] = 0x70 | ((count >> 8) & 0x0F) as u8;
    bytes[7] = (count & 0xFF) as u8;
    Uuid::from_bytes(bytes)
}

impl Anchor {
    fn now(&mut self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.at.elapsed()).unwrap_or(SignedDuration::MAX);
        let carried_on = self.time.checked_add(elapsed).unwrap_or(Timestamp::MAX);
        if self.is_ours {
            // The monotonic clock stands still while a machine sleeps.
            let wall = Timestamp::now();
            if wall.duration_since(carried_on) > AHEAD {
                (self.at, self.time) = (Instant::now(), wall);
                return wall;
            }
        }
        carried_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_process_grow_even_within_a_millisecond() {
        let clock = Clock::theirs();
        let ids: Vec<Uuid> = (0..20_000).map(|_| clock.new_id()).collect();
        assert!(ids.is_sorted(), "an id was smaller than the one before");
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
    }

    #[test]
    fn the_stores_time_wins_over_the_machines() {
        let clock = Clock::theirs();
        let theirs: Timestamp = "2031-01-01T00:00:00Z".parse().unwrap();
        clock.set(theirs);
        assert!(clock.now().duration_since(theirs) < SignedDuration::from_secs(5));
    }

    #[test]
    fn ids_stay_in_order_when_the_stores_time_goes_back() {
        let clock = Clock::theirs();
        let before = clock.new_id();
        clock.set(clock.now() - SignedDuration::from_hours(1));
        assert!(clock.new_id() > before);
    }

    #[test]
    fn our_own_clock_wakes_up_with_the_machine() {
        let asleep = SignedDuration::from_hours(8);
        let clock = Clock::starting_at(Timestamp::now() - asleep, true, false);
        assert!(Timestamp::now().duration_since(clock.now()) < SignedDuration::from_secs(1));
    }

    #[test]
    fn our_own_clock_is_not_turned_back() {
        let ahead = Timestamp::now() + SignedDuration::from_hours(1);
        assert!(Clock::starting_at(ahead, true, false).now() >= ahead);
    }
}
