//! Which fault falls on a request.

use std::time::Duration;

use super::{Faults, Latency};
use crate::dice::Dice;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    TooMany,
    RetryAfter,
    ServerError,
    Gateway,
    InputString,
    Dates,
    Hang,
    Reset,
    CutChunks,
    CutLength,
    Html,
    ZeroLength,
    WrongJson,
    Huge,
    HugeTotal,
}

/// One draw against all shares in a row.
pub(crate) fn draw(faults: &Faults, dice: &mut Dice) -> Option<Fault> {
    let mut drawn = dice.share();
    let shares = faults.shares().map(|(_, share, fault)| (share, fault));
    for (share, fault) in shares.into_iter().chain([(faults.huge_total, Fault::HugeTotal)]) {
        if drawn < share {
            return Some(fault);
        }
        drawn -= share;
    }
    None
}

pub(crate) fn delay(latency: &Latency, page: u64, dice: &mut Dice) -> Duration {
    let jitter = latency.jitter_ms as f64 * dice.share();
    let depth = latency.per_hundred_pages_ms as f64 * page.saturating_sub(1) as f64 / 100.0;
    Duration::from_millis(latency.fixed_ms) + Duration::from_micros(((jitter + depth) * 1e3) as u64)
}
