//! A bad day outside, as in the demonstration. The faults of the PNCP API are arguments of the world; the
//! ad library and the proxies are told of theirs, forget them when the world is killed, and are told again.

use serde_json::{Value, json};

use super::parts::{PROXIES, Parts};
use crate::http;

/// A bad day of the API, beside being killed. None of it changes what the API has: an answer that came
/// twice is the same, and takes the place of no other.
const FAULTS: [&str; 8] = [
    "latency.fixed_ms=30",
    "latency.jitter_ms=60",
    "too_many=0.01",
    "server_error=0.01",
    "gateway=0.01",
    "cut_chunks=0.01",
    "html=0.005",
    "reset=0.01",
];

/// By their numbers: one is slow, one denies everybody until somebody repairs it.
const SLOW: usize = 1;
const DENIES: usize = 3;

/// The arguments of the world.
pub(super) fn world(ads: u16, first_proxy: u16, seed: u64) -> Vec<String> {
    let mut arguments = vec![
        "world".to_owned(),
        format!("--seed={seed}"),
        "--scale=0.02".to_owned(),
        "--now=2026-10-15T12:00:00Z".to_owned(),
        format!("--ads=127.0.0.1:{ads}"),
        "--ads-per-day=60".to_owned(),
        format!("--proxies={PROXIES}"),
        format!("--proxy-port={first_proxy}"),
    ];
    arguments.extend(FAULTS.map(|fault| format!("--fault={fault}")));
    arguments
}

pub(super) struct Outside {
    /// Where the library talks about itself and its proxies.
    port: u16,
    first_proxy: u16,
}

impl Outside {
    pub(super) fn new(parts: &Parts) -> Self {
        Self { port: parts.ads, first_proxy: parts.first_proxy }
    }

    /// Makes a world that has just begun as bad as it should be.
    pub(super) fn trouble(&self) {
        let faults = json!({
            "too_many": 0.02, "server_error": 0.02, "html": 0.005, "cut": 0.01, "reset": 0.01,
            "latency_ms": 30,
        });
        let is_fresh = self
            .ask("GET", "/_world/faults", "")
            .is_some_and(|told| told["latency_ms"].as_u64() != faults["latency_ms"].as_u64());
        if is_fresh {
            self.set_proxy(SLOW, &json!({ "kind": { "slow": { "millis": 15 } } }));
            self.set_proxy(DENIES, &json!({ "kind": "deny" }));
            // Last: by this it is known that the others were told.
            self.ask("PUT", "/_world/faults", &faults.to_string());
        }
    }

    /// The proxy at a port of the row does again what it should.
    pub(super) fn repair(&self, port: u64) {
        if let Some(number) = port.checked_sub(u64::from(self.first_proxy)) {
            self.set_proxy(number as usize, &Value::Null);
        }
    }

    /// Nothing fails any more.
    pub(super) fn calm(&self) {
        self.set_proxy(SLOW, &Value::Null);
        self.set_proxy(DENIES, &Value::Null);
        self.ask("PUT", "/_world/faults", "{}");
    }

    fn set_proxy(&self, number: usize, fault: &Value) {
        self.ask("PUT", &format!("/_world/proxies/{number}"), &fault.to_string());
    }

    /// What a world says that answers; while it is away there is nothing to be told.
    fn ask(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let (status, answer) = http::send(self.port, method, path, &[], body).ok()?;
        (status == 200).then(|| serde_json::from_str(&answer).unwrap_or_default())
    }
}
