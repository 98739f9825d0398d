//! When a server is away.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dice::Dice;

/// Times in which a server refuses connections. What runs there goes on.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outages {
    /// In every period of this length, for each server by itself, if above 0,
    pub every_ms: u64,
    /// with this chance,
    pub share: f64,
    /// one outage of this length.
    pub lasts_ms: u64,
    /// And these.
    pub windows: Vec<Window>,
}

/// An outage at a known time, since the world began.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    pub from_ms: u64,
    pub until_ms: u64,
    /// Of this server, or of all.
    #[serde(default)]
    pub server: Option<usize>,
}

impl Outages {
    /// Whether the server is away at that time; `parts` name it.
    pub(in crate::fleet) fn is_away(&self, now: Duration, server: usize, parts: [u64; 2]) -> bool {
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let concerns = |window: &Window| {
            window.server.is_none_or(|only| only == server)
                && (window.from_ms..window.until_ms).contains(&now)
        };
        if self.windows.iter().any(concerns) {
            return true;
        }
        if self.every_ms == 0 || self.share <= 0.0 {
            return false;
        }
        let [seed, kind] = parts;
        let mut dice = Dice::of(&[seed, kind, server as u64, now / self.every_ms, 0x0A7A]);
        if !dice.chance(self.share) {
            return false;
        }
        // One that is longer than its period fills it.
        let start = dice.below(self.every_ms.saturating_sub(self.lasts_ms).max(1));
        let end = start.saturating_add(self.lasts_ms);
        (start..end).contains(&(now % self.every_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_away_for_one_stretch_of_a_period() {
        let outages = Outages { every_ms: 1000, share: 1.0, lasts_ms: 200, windows: Vec::new() };
        let away = |at: u64| outages.is_away(Duration::from_millis(at), 1, [7, 1]);
        for period in 0..20 {
            let times: Vec<u64> = (0..1000).filter(|at| away(period * 1000 + at)).collect();
            assert_eq!(times.len(), 200);
            assert_eq!(times.last().unwrap() - times.first().unwrap(), 199);
        }
    }
}
