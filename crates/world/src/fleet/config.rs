//! How large a fleet is, and how long its work takes.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dice::Dice;

/// What a fleet is made of. Everything in it is drawn from its seed and from this.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetConfig {
    pub workers: usize,
    pub writers: usize,
    /// What all URLs begin with where no socket says otherwise.
    pub base_url: String,
    /// The `x-api-key` of each worker; `{n}` stands for its number. Without one none is asked for.
    pub worker_key: Option<String>,
    pub writer_key: Option<String>,
    /// From `POST /session` to `ready`.
    pub session: Span,
    /// From `POST /scrape` to `completed`.
    pub job: Span,
    /// From `POST /process` to `completed`.
    pub write: Span,
    /// Every answer.
    pub latency: Span,
    /// How long a connection is held whose request is never answered.
    pub hang_ms: u64,
    /// Ads of one day, format and language, on average.
    pub ads: u64,
    /// The share of blocks of four days, of one format and language, in which there is no ad.
    pub empty: f64,
    /// Whether a job that is completed brings its ads along, in `data`.
    pub inline_data: bool,
    /// Which status refuses a scrape for want of a session that is ready; the specification names none.
    pub unready: u16,
    /// The calendar's time when the world began.
    pub began: Timestamp,
}

impl Default for FleetConfig {
    /// The times of a fleet as the specification describes it.
    fn default() -> Self {
        Self {
            workers: 4,
            writers: 1,
            base_url: "http://fleet.test".into(),
            worker_key: Some("worker-{n}-key".into()),
            writer_key: Some("writer-{n}-key".into()),
            session: Span::new(20_000, 90_000),
            job: Span::new(3 * 60_000, 40 * 60_000),
            write: Span::new(5_000, 4 * 60_000),
            latency: Span::new(5, 120),
            hang_ms: 300_000,
            ads: 12,
            empty: 0.12,
            inline_data: false,
            unready: 422,
            began: Timestamp::UNIX_EPOCH
                .saturating_add(Duration::from_secs(BEGAN))
                .unwrap_or_default(),
        }
    }
}

/// 2025-01-15T10:30:00Z, the time of the specification's examples.
const BEGAN: u64 = 1_736_937_000;

impl FleetConfig {
    /// Everything within milliseconds, for tests over real sockets.
    pub fn fast() -> Self {
        Self {
            session: Span::new(20, 60),
            job: Span::new(30, 120),
            write: Span::new(20, 60),
            latency: Span::new(0, 0),
            hang_ms: 5_000,
            ..Self::default()
        }
    }

    /// The key of one server, if it has one.
    pub(super) fn key(pattern: Option<&String>, number: usize) -> Option<String> {
        pattern.map(|pattern| pattern.replace("{n}", &number.to_string()))
    }
}

/// A time that is drawn anew for every session, job or request.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    pub least_ms: u64,
    pub most_ms: u64,
}

impl Span {
    pub const fn new(least_ms: u64, most_ms: u64) -> Self {
        Self { least_ms, most_ms }
    }

    pub(super) fn draw(self, dice: &mut Dice) -> Duration {
        let room = Duration::from_millis(self.most_ms.saturating_sub(self.least_ms));
        Duration::from_millis(self.least_ms).saturating_add(part(room, dice.share()))
    }
}

/// A share of a time.
pub(super) fn part(whole: Duration, share: f64) -> Duration {
    // A float that is too large becomes the largest number, one below 0 becomes 0.
    Duration::from_micros((whole.as_micros() as f64 * share) as u64)
}

/// How far a time is on its way, from 0 to 1.
pub(super) fn fraction(passed: Duration, whole: Duration) -> f64 {
    if whole.is_zero() {
        return 1.0;
    }
    (passed.as_secs_f64() / whole.as_secs_f64()).clamp(0.0, 1.0)
}
