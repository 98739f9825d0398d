//! Faults as switches: everything that was seen of the real API on its bad days. All are off until
//! someone turns them on.
//!
//! The faults of a request are drawn from the world's seed and the number of the request, so that a
//! client that asks one thing after another meets the same faults in the same places again. At most
//! one of the shares falls on a request; latency, the limit of requests in flight, outages and drift
//! come on top.

mod draw;
mod drift;
mod html;
mod live;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use draw::{Fault, delay, draw};
pub use drift::{At, Change};
pub(crate) use html::{gateway_page, too_many_page, waf_page};
pub(crate) use live::{Live, apply};

/// The switches. Shares are of all requests, from 0 to 1, and together no more than 1.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    pub latency: Latency,
    /// 429: the gateway's HTML page, without `Retry-After`.
    pub too_many: f64,
    /// 429 with a `Retry-After`.
    pub retry_after: RetryAfter,
    /// 500 with one of its three messages.
    pub server_error: f64,
    /// 502, 503 or 504, as HTML.
    pub gateway: f64,
    /// 400 `For input string: ""` for a request that is right.
    pub input_string: f64,
    /// 422 for dates that are right.
    pub dates: f64,
    pub hang: Hang,
    /// The connection is reset before the answer.
    pub reset: f64,
    /// The chunks break off.
    pub cut_chunks: f64,
    /// The body is shorter than its `content-length`.
    pub cut_length: f64,
    /// 200 and a page of HTML.
    pub html: f64,
    /// 200 and nothing, from lists that have another way to be empty.
    pub zero_length: f64,
    /// 200 and JSON that stops in the middle, though all that was announced arrived.
    pub wrong_json: f64,
    pub huge: Huge,
    /// A page whose totals are those of a billion records.
    pub huge_total: f64,
    pub in_flight: Option<InFlight>,
    pub outage: Option<Outage>,
    /// Totals that change while they are read. A change that was in the list before keeps its count
    /// of requests; one that happened stays happened, also when it leaves the list.
    pub drift: Vec<Change>,
}

/// How long answers take.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    pub fixed_ms: u64,
    /// Up to so much more.
    pub jitter_ms: u64,
    /// So much more for every hundred pages before the one that is asked for.
    pub per_hundred_pages_ms: u64,
}

/// 429 that says when to come back.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryAfter {
    pub share: f64,
    /// May be 0.
    pub seconds: u64,
    /// As an HTTP date instead of a number.
    pub as_date: bool,
}

/// No answer until the client gives up, or this has passed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hang {
    pub share: f64,
    pub at_most_ms: u64,
}

impl Default for Hang {
    fn default() -> Self {
        Self { share: 0.0, at_most_ms: 300_000 }
    }
}

/// A page with a single record of enormous length.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Huge {
    pub share: f64,
    pub bytes: u64,
}

impl Default for Huge {
    fn default() -> Self {
        Self { share: 0.0, bytes: 200 * 1024 * 1024 }
    }
}

/// More than so many requests at once, and the surplus is refused.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InFlight {
    /// One limit, or several that follow one another and begin again.
    pub limits: Vec<u64>,
    /// How long each of them lasts.
    #[serde(default = "a_minute")]
    pub every_ms: u64,
    /// 500 instead of 429.
    #[serde(default)]
    pub as_server_error: bool,
}

fn a_minute() -> u64 {
    60_000
}

/// A time in which nothing above TCP answers. It is counted from when the switch was set.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    #[serde(default)]
    pub after_ms: u64,
    pub lasts_ms: u64,
    /// 503 instead of silence.
    #[serde(default)]
    pub as_unavailable: bool,
}

/// Why switches cannot be set so.
#[derive(Debug, thiserror::Error)]
pub enum BadFaults {
    #[error("{0} must be a share from 0 to 1")]
    Share(&'static str),
    #[error("the shares together must not be more than 1")]
    Together,
    #[error("in_flight needs at least one limit, and every_ms above 0")]
    InFlight,
    #[error("the change of {endpoint} in {month} {reason}")]
    Change { endpoint: String, month: String, reason: &'static str },
    #[error("not a switch: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0:?} must be name=value, such as too_many=0.01 or latency.fixed_ms=20")]
    Setting(String),
    #[error("there is no fault {0:?}; there are: {1}")]
    Unknown(String, String),
    #[error("{name} cannot be so: {source}")]
    Value { name: String, source: serde_json::Error },
}

impl Faults {
    /// The shares by name, in the order in which they are drawn.
    fn shares(&self) -> [(&'static str, f64, Fault); 14] {
        [
            ("too_many", self.too_many, Fault::TooMany),
            ("retry_after.share", self.retry_after.share, Fault::RetryAfter),
            ("server_error", self.server_error, Fault::ServerError),
            ("gateway", self.gateway, Fault::Gateway),
            ("input_string", self.input_string, Fault::InputString),
            ("dates", self.dates, Fault::Dates),
            ("hang.share", self.hang.share, Fault::Hang),
            ("reset", self.reset, Fault::Reset),
            ("cut_chunks", self.cut_chunks, Fault::CutChunks),
            ("cut_length", self.cut_length, Fault::CutLength),
            ("html", self.html, Fault::Html),
            ("zero_length", self.zero_length, Fault::ZeroLength),
            ("wrong_json", self.wrong_json, Fault::WrongJson),
            ("huge.share", self.huge.share, Fault::Huge),
        ]
    }

    pub(crate) fn check(&self) -> Result<(), BadFaults> {
        let shares = self.shares();
        let named = shares.iter().map(|(name, share, _)| (*name, *share));
        for (name, share) in named.chain([("huge_total", self.huge_total)]) {
            if !(0.0..=1.0).contains(&share) {
                return Err(BadFaults::Share(name));
            }
        }
        let sum: f64 = shares.iter().map(|(_, share, _)| share).sum::<f64>() + self.huge_total;
        if sum > 1.0 + 1e-9 {
            return Err(BadFaults::Together);
        }
        let wrong = |limit: &InFlight| limit.limits.is_empty() || limit.every_ms == 0;
        if self.in_flight.as_ref().is_some_and(wrong) {
            return Err(BadFaults::InFlight);
        }
        self.drift.iter().try_for_each(Change::check)
    }

    /// Turns one switch, named as in the JSON: `too_many=0.01`, `latency.fixed_ms=20`,
    /// `in_flight={"limits":[8,2,6]}`.
    pub fn set(&mut self, setting: &str) -> Result<(), BadFaults> {
        let bad = || BadFaults::Setting(setting.to_owned());
        let (name, value) = setting.split_once('=').ok_or_else(bad)?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        let mut all = serde_json::to_value(&*self)?;
        let known = names(&all);
        let pointer = format!("/{}", name.replace('.', "/"));
        let Some(switch) = all.pointer_mut(&pointer) else {
            return Err(BadFaults::Unknown(name.to_owned(), known.join(", ")));
        };
        *switch = value;
        let wrong = |source| BadFaults::Value { name: name.to_owned(), source };
        let changed: Self = serde_json::from_value(all).map_err(wrong)?;
        changed.check()?;
        *self = changed;
        Ok(())
    }
}

/// What can be set, by name.
fn names(switches: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for (name, switch) in switches.as_object().into_iter().flatten() {
        match switch.as_object() {
            Some(parts) => names.extend(parts.keys().map(|part| format!("{name}.{part}"))),
            None => names.push(name.clone()),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_set_by_their_names() {
        let mut faults = Faults::default();
        for setting in [
            "too_many=0.01",
            "latency.fixed_ms=20",
            "in_flight={\"limits\":[8,2,6]}",
            "retry_after.as_date=true",
            "outage={\"lasts_ms\":1000}",
        ] {
            faults.set(setting).unwrap();
        }
        assert_eq!(faults.latency.fixed_ms, 20);
        assert_eq!(faults.in_flight.as_ref().unwrap().every_ms, 60_000);
        for wrong in ["", "too_many", "nothing=1", "too_many=2", "html=0.999", "reset=\"x\""] {
            let before = faults.clone();
            assert!(faults.set(wrong).is_err(), "{wrong}");
            assert_eq!(faults, before);
        }
    }

    #[test]
    fn who_names_a_fault_that_is_none_is_told_those_there_are() {
        let said = Faults::default().set("nonsense=1").unwrap_err().to_string();
        for part in ["no fault \"nonsense\"", "too_many", "latency.fixed_ms", "in_flight", "drift"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = Faults::default().set("reset=often").unwrap_err().to_string();
        assert!(said.starts_with("reset cannot be so: ") && said.contains("often"), "{said}");
    }
}
