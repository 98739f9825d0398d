//! The natural key of a record: which organ, which year, which number of that year.
//!
//! It can be computed from the record's place (fan-out, day, number within the day) and the place
//! from it, so that keys are unique without a table of them, and a single record can be found by the
//! key that a list gave.

use crate::day::Day;
use crate::dice::mix;

/// How many organs there are; a power of two, so that the odd stride below can be undone.
pub(crate) const ORGANS: u64 = 8192;

/// Numbers of one day and fan-out value that share their organs' sequence.
const LANE: u64 = 128;
/// Fan-out values that have lanes of their own.
const FANS: u64 = 20;
const STRIDE: u64 = 97;
/// Sequence numbers beyond six digits begin a new lap.
const LAP: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Key {
    pub(crate) organ: u16,
    pub(crate) year: i32,
    pub(crate) sequence: u64,
}

impl Key {
    /// `lane` is the place of the fan-out value among its endpoint's, below 20.
    pub(crate) fn new(seed: u64, lane: u64, day: Day, number: u64) -> Self {
        let year = day.year();
        let base = (u64::from(day.of_year().unsigned_abs()) * FANS + lane) * LANE + number % LANE;
        let round = number / LANE;
        let organ = round.wrapping_mul(STRIDE).wrapping_add(shift(seed, year, base)) % ORGANS;
        Self { organ: organ as u16, year, sequence: 1 + base + round / ORGANS * LAP }
    }

    /// The lane, day and number that have this key, if any can.
    pub(crate) fn place(self, seed: u64) -> Option<(u64, Day, u64)> {
        let sequence = self.sequence.checked_sub(1)?;
        let (laps, base) = (sequence / LAP, sequence % LAP);
        let first = Day::first_of(self.year);
        let day = first.plus((base / LANE / FANS) as i32);
        if day.year() != self.year {
            return None;
        }
        let shifted = u64::from(self.organ).wrapping_sub(shift(seed, self.year, base));
        let round = shifted.wrapping_mul(inverse(STRIDE)) % ORGANS + laps * ORGANS;
        Some((base / LANE % FANS, day, round * LANE + base % LANE))
    }
}

/// Where the organs begin for one sequence number, so that they do not all begin alike.
fn shift(seed: u64, year: i32, base: u64) -> u64 {
    mix(seed ^ mix(base ^ ((year as u64) << 32))) % ORGANS
}

/// The number that undoes a multiplication by an odd one, modulo 2^64 (Newton).
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_leads_back_to_its_place(
            seed in any::<u64>(), lane in 0_u64..20, day in 18_000_i32..25_000, number in 0_u64..50_000_000,
        ) {
            let day = Day::first_of(1970).plus(day);
            let key = Key::new(seed, lane, day, number);
            prop_assert_eq!(key.place(seed), Some((lane, day, number)));
        }

        #[test]
        fn a_key_that_nobody_gave_leads_nowhere_or_to_a_place(
            organ in 0..ORGANS as u16, year in -10_000..10_000_i32, sequence in any::<u32>(),
        ) {
            let _some_or_none = Key { organ, year, sequence: sequence.into() }.place(1);
        }
    }

    #[test]
    fn sequence_numbers_have_six_digits_and_many_organs_take_part() {
        let day = Day::parse("20241231").unwrap();
        let keys: Vec<Key> = (0..5000).map(|number| Key::new(9, 19, day, number)).collect();
        assert!(keys.iter().all(|key| key.sequence < 1_000_000));
        let mut organs: Vec<u16> = keys.iter().map(|key| key.organ).collect();
        organs.sort_unstable();
        organs.dedup();
        assert!(organs.len() > 2000, "{}", organs.len());
    }
}
