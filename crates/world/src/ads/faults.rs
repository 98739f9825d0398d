//! What goes wrong, as switches. Faults are drawn from the seed and the number of the request.

use serde::{Deserialize, Serialize};

use crate::dice::Dice;

/// The switches. Shares are of all requests, from 0 to 1, and together no more than 1.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdFaults {
    /// 429, with `Retry-After` where `retry_after_seconds` is set.
    pub too_many: f64,
    pub retry_after_seconds: Option<u64>,
    /// 500 with JSON.
    pub server_error: f64,
    /// 403 with a page that asks whether one is human.
    pub blocked: f64,
    /// 200 with a page of HTML.
    pub html: f64,
    /// 200 and nothing.
    pub zero_length: f64,
    /// 200 with a list that is empty and a total of 0, though there are ads.
    pub empty: f64,
    /// The body breaks off.
    pub cut: f64,
    /// The connection is reset before the answer.
    pub reset: f64,
    /// No answer, for at most `hang_ms`.
    pub hang: f64,
    pub hang_ms: u64,
    /// Every answer takes so long.
    pub latency_ms: u64,
    /// One ad more than before is announced and shown, from this request on.
    pub one_more_after: Option<u64>,
}

/// Why switches cannot be set so.
#[derive(Debug, thiserror::Error)]
#[error("{0} must be a share from 0 to 1, and all of them together no more than 1")]
pub struct BadAdFaults(&'static str);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    TooMany,
    ServerError,
    Blocked,
    Html,
    ZeroLength,
    Empty,
    Cut,
    Reset,
    Hang,
}

impl AdFaults {
    fn shares(&self) -> [(&'static str, f64, Fault); 9] {
        [
            ("too_many", self.too_many, Fault::TooMany),
            ("server_error", self.server_error, Fault::ServerError),
            ("blocked", self.blocked, Fault::Blocked),
            ("html", self.html, Fault::Html),
            ("zero_length", self.zero_length, Fault::ZeroLength),
            ("empty", self.empty, Fault::Empty),
            ("cut", self.cut, Fault::Cut),
            ("reset", self.reset, Fault::Reset),
            ("hang", self.hang, Fault::Hang),
        ]
    }

    pub(super) fn check(&self) -> Result<(), BadAdFaults> {
        let mut sum = 0.0;
        for (name, share, _) in self.shares() {
            sum += share;
            if !(0.0..=1.0).contains(&share) || sum > 1.0 + 1e-9 {
                return Err(BadAdFaults(name));
            }
        }
        Ok(())
    }

    pub(super) fn draw(&self, seed: u64, number: u64) -> Option<Fault> {
        let mut share = Dice::of(&[seed, number, 0xADFA]).share();
        for (_, wanted, fault) in self.shares() {
            if share < wanted {
                return Some(fault);
            }
            share -= wanted;
        }
        None
    }
}
