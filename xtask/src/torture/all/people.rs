//! What people do meanwhile, over HTTP: they make missions and extractions, retry what failed and put
//! proxies back. Whoever does not answer is asked again later, with the same key where it matters: what was
//! answered is noted, and nothing else was promised.

use serde_json::{Value, json};

use super::api::Api;
use super::outside::Outside;
use super::parts::Parts;
use super::promises::{LANGUAGES, LISTS, MEDIA_TYPES, Promises, YEAR};

/// Missions that there should be to do, at least.
const BUSY: i64 = 8;
/// The most days and months that are asked for.
const DAYS: u32 = 28;
const MONTHS: u32 = 12;

pub(super) struct People {
    api: Api,
    base_url: String,
    /// The next day of missions: of which month, and which.
    next_day: (u32, u32),
    /// Months that are wanted so far.
    months: u32,
    /// The order that nobody has answered yet.
    unanswered: Option<Order>,
    outside: Outside,
    pub(super) promises: Promises,
}

/// An extraction from January to the month `to`.
struct Order {
    key: String,
    to: u32,
    body: Value,
}

impl People {
    pub(super) fn new(parts: &Parts) -> Self {
        let base_url = format!("http://127.0.0.1:{}/api/consulta", parts.world());
        Self {
            api: Api::new(parts),
            base_url,
            next_day: (1, 1),
            months: 3,
            unanswered: None,
            outside: Outside::new(parts),
            promises: Promises::default(),
        }
    }

    /// There is always something to do, and nothing stays failed.
    pub(super) fn tend(&mut self) {
        self.outside.trouble();
        if let Some(fleet) = self.api.ask("GET", "/fleet", &Value::Null) {
            if open(&fleet) < BUSY {
                self.more_missions();
            }
            self.look_after(&fleet);
        }
        let Some(newest) = self.newest_extraction() else { return };
        match newest["status"].as_str() {
            Some("PENDING" | "IN_PROGRESS") => {}
            Some("COMPLETED") if self.unanswered.is_none() => {
                // When all months are there they are fetched anew.
                let refresh = self.months == MONTHS;
                self.months = (self.months + 1).min(MONTHS);
                self.extract(refresh);
            }
            _ => self.extract(false),
        }
    }

    /// Nothing goes wrong outside any more.
    pub(super) fn calm(&self) {
        self.outside.calm();
    }

    /// Asks for what is left, and says whether all is done.
    pub(super) fn finish(&mut self) -> bool {
        // A creation that died between its two steps.
        self.api.ask("POST", "/missions:queue", &json!({ "filter": { "in_bank": true } }));
        let Some(fleet) = self.api.ask("GET", "/fleet", &Value::Null) else { return false };
        self.look_after(&fleet);
        let Some(newest) = self.newest_extraction() else { return false };
        let extracted = match newest["status"].as_str() {
            Some("COMPLETED") if self.unanswered.is_none() => true,
            Some("PENDING" | "IN_PROGRESS") => false,
            _ => {
                self.extract(false);
                false
            }
        };
        let counts = &fleet["counts"];
        let is_none = |name: &str| counts[name] == 0;
        let missions = ["bank", "queued", "extracao", "armazenamento", "failed", "canceled"];
        extracted && missions.into_iter().all(is_none) && !self.is_running()
    }

    fn look_after(&mut self, fleet: &Value) {
        if fleet["counts"]["failed"].as_i64() > Some(0) {
            self.api.ask("POST", "/missions:retry", &json!({ "filter": { "status": "failed" } }));
        }
        for proxy in fleet["proxies"].as_array().into_iter().flatten() {
            if proxy["active"] == false
                && let (Some(id), Some(port)) = (proxy["id"].as_str(), proxy["port"].as_u64())
            {
                self.outside.repair(port);
                self.api.ask("POST", &format!("/fleet/proxies/{id}:reactivate"), &json!({}));
            }
        }
        if open(fleet) > 0 && !self.is_running() {
            let run = self.api.ask("POST", "/fleet/start", &json!({}));
            self.promises.runs.extend(run.as_ref().and_then(|run| named(run, "task_id")));
        }
    }

    /// A day of them. One that was made although nobody answered is known the next time.
    fn more_missions(&mut self) {
        let (month, day) = self.next_day;
        if month > MONTHS {
            return;
        }
        let date = format!("{YEAR}-{month:02}-{day:02}");
        let wanted = json!({
            "from": date, "to": date, "media_types": MEDIA_TYPES,
            "languages": LANGUAGES.map(|language| [language]), "queue": true,
        });
        self.promises.asked_days.insert(date.clone());
        if self.api.ask("POST", "/missions", &wanted).is_some() {
            self.promises.days.insert(date);
            self.next_day = if day < DAYS { (month, day + 1) } else { (month + 1, 1) };
        }
    }

    /// Orders all months that are wanted so far, or again what nobody answered to.
    fn extract(&mut self, refresh: bool) {
        let order = self.unanswered.take().unwrap_or_else(|| self.order(refresh));
        let headers = [("idempotency-key", order.key.as_str())];
        let task = self.api.ask_with(&headers, "POST", "/tasks", &order.body);
        match task.as_ref().and_then(|task| named(task, "id")) {
            Some(id) => {
                self.promises.months = self.promises.months.max(order.to);
                self.promises.extractions.insert(id);
            }
            None => self.unanswered = Some(order),
        }
    }

    fn order(&self, refresh: bool) -> Order {
        let body = json!({
            "type": "extract",
            "payload": {
                "source": "pncp", "from": format!("{YEAR}-01"),
                "to": format!("{YEAR}-{:02}", self.months),
                "endpoints": LISTS.map(|(name, ..)| name), "base_url": self.base_url,
                "refresh": refresh,
            },
        });
        let key = format!("extraction-{}", self.promises.extractions.len());
        Order { key, to: self.months, body }
    }

    /// Of those who answer; `Null` where there is none yet.
    fn newest_extraction(&self) -> Option<Value> {
        let tasks = self.api.ask("GET", "/tasks?type=extract&limit=1", &Value::Null)?;
        Some(tasks["items"].get(0).cloned().unwrap_or_default())
    }

    /// Whether there is a run, as far as anyone says.
    fn is_running(&self) -> bool {
        let is_some = |status: &str| {
            let path = format!("/tasks?type=fleet&status={status}&limit=1");
            let found = self.api.ask("GET", &path, &Value::Null);
            found.is_none_or(|found| found["items"].get(0).is_some())
        };
        is_some("IN_PROGRESS") || is_some("PENDING")
    }
}

fn named(answer: &Value, name: &str) -> Option<String> {
    answer[name].as_str().map(str::to_owned)
}

/// Missions that are to be done.
fn open(fleet: &Value) -> i64 {
    let count = |name: &str| fleet["counts"][name].as_i64().unwrap_or(0);
    count("queued") + count("extracao") + count("armazenamento")
}
