//! The life of a writer's job.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ads::Ad;
use super::config::{fraction, part};
use super::faults::{WriteFault, WriteFaults, draw};
use crate::dice::Dice;

#[derive(Debug)]
pub(super) struct Write {
    pub(super) url: String,
    /// The scrape job whose results they are, if they are of this world.
    pub(super) source: Option<usize>,
    total: u64,
    started: Duration,
    length: Duration,
    plan: Plan,
}

/// What comes of it; shares are of its length.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Completes,
    /// With so many items that fail.
    Partial(u64),
    Fails(f64, Failure),
    Silent(f64),
    Forgotten(f64),
    Unknown(f64),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Failure(&'static str, &'static str);

const FAILED: Failure = Failure("ERROR300", "the database went away");
const SCHEMA: Failure = Failure("ERROR303", "relation \"public.ads\" has no column \"id\"");
const NO_DATA: Failure = Failure("ERROR400", "404 from the storage: there are no such results");

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    Processing,
    Unknown,
    Completed,
    Partial,
    Failed,
    Forgotten,
}

impl Phase {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Unknown => "vacuuming",
            Self::Completed => "completed",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Forgotten => "forgotten",
        }
    }

    /// Whether the data is stored.
    pub(super) const fn is_written(self) -> bool {
        matches!(self, Self::Completed | Self::Partial)
    }
}

impl Write {
    /// `source` is the scrape job with the number of its ads, which is none where it has no results.
    pub(super) fn start(
        url: String,
        source: Option<(usize, Option<u64>)>,
        now: Duration,
        length: Duration,
        faults: &WriteFaults,
        dice: &mut Dice,
    ) -> Self {
        let share = dice.share();
        let missing = matches!(source, Some((_, None)));
        let elsewhere = 1 + dice.below(2000);
        let total = match source {
            Some((_, count)) => count.unwrap_or(0),
            None => elsewhere,
        };
        let plan = match draw(&faults.kinds(), dice) {
            _ if missing => Plan::Fails(share, NO_DATA),
            None => Plan::Completes,
            Some(WriteFault::Fails) => Plan::Fails(share, FAILED),
            Some(WriteFault::Schema) => Plan::Fails(share, SCHEMA),
            Some(WriteFault::Silent) => Plan::Silent(share),
            Some(WriteFault::Forgotten) => Plan::Forgotten(share),
            Some(WriteFault::Partial) => Plan::Partial((1 + dice.below(20)).min(total)),
            Some(WriteFault::Unknown) => Plan::Unknown(share),
        };
        Self { url, source: source.map(|(number, _)| number), total, started: now, length, plan }
    }

    pub(super) fn phase(&self, now: Duration) -> Phase {
        let passed = self.passed(now);
        match self.plan {
            Plan::Fails(share, _) if passed >= share => Phase::Failed,
            Plan::Forgotten(share) if passed >= share => Phase::Forgotten,
            Plan::Unknown(share) if passed >= share && passed < 1.0 => Phase::Unknown,
            Plan::Silent(_) => Phase::Processing,
            _ if passed < 1.0 => Phase::Processing,
            Plan::Partial(failed) if failed > 0 => Phase::Partial,
            _ => Phase::Completed,
        }
    }

    fn passed(&self, now: Duration) -> f64 {
        fraction(now.saturating_sub(self.started), self.length)
    }

    /// The place of the failed item: they are spread evenly.
    fn failed_index(&self, number: u64, failed: u64) -> u64 {
        (2 * number + 1) * self.total / (2 * failed.max(1))
    }

    /// What `GET /status/{job_id}` says. `ads` makes the data, if an item failed.
    pub(super) fn report(
        &self,
        id: &str,
        now: Duration,
        began: Timestamp,
        ads: impl FnOnce() -> Vec<Ad>,
    ) -> Value {
        let phase = self.phase(now);
        let passed = self.passed(now);
        let done = match self.plan {
            Plan::Fails(share, _) | Plan::Silent(share) | Plan::Forgotten(share) => {
                passed.min(share)
            }
            Plan::Completes | Plan::Partial(_) | Plan::Unknown(_) => passed,
        };
        let processed = (self.total as f64 * done) as u64;
        let failing = if let Plan::Partial(failed) = self.plan { failed } else { 0 };
        let failed: Vec<u64> = (0..failing)
            .map(|number| self.failed_index(number, failing))
            .filter(|index| *index < processed)
            .collect();
        let items = if failed.is_empty() { Vec::new() } else { items(&failed, &ads()) };
        let mut report = json!({
            "job_id": id,
            "status": phase.word(),
            "progress": {
                "total": self.total,
                "processed": processed,
                "success_count": processed - failed.len() as u64,
                "failed_count": failed.len(),
            },
            "failed_items": items,
            "started_at": calendar(began, self.started),
        });
        let end = match phase {
            Phase::Completed | Phase::Partial => Some(self.length),
            Phase::Failed => Some(part(self.length, done)),
            Phase::Processing | Phase::Unknown | Phase::Forgotten => None,
        };
        if let Value::Object(fields) = &mut report {
            if let Some(end) = end {
                let at = calendar(began, self.started.saturating_add(end));
                fields.insert("completed_at".into(), json!(at));
            }
            if let (Phase::Failed, Plan::Fails(_, Failure(code, message))) = (phase, self.plan) {
                fields.insert("error_code".into(), json!(code));
                fields.insert("error_message".into(), json!(message));
            }
        }
        report
    }
}

fn items(failed: &[u64], ads: &[Ad]) -> Vec<Value> {
    let item = |index: &u64| {
        let data = match ads.get(*index as usize) {
            Some(ad) => json!(ad),
            None => json!({ "id": format!("ad{index}") }),
        };
        json!({ "index": index, "data": data, "error": "invalid byte sequence for encoding \"UTF8\"" })
    };
    failed.iter().map(item).collect()
}

/// A time of the world, as the calendar has it.
pub(super) fn calendar(began: Timestamp, now: Duration) -> Timestamp {
    began.saturating_add(Duration::from_secs(now.as_secs())).unwrap_or(began)
}
