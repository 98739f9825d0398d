//! The doubles of workers and writers, as an orchestrator meets them.

mod anything;
mod careful;
mod faults;
mod served;
mod violations;
mod worker;
mod writer;

use std::time::Duration;

use jiff::civil::{Date, date};
use lavra_world::fleet::{Filters, Format};
use lavra_world::{FleetAnswer, FleetBody, FleetConfig, FleetFaults, FleetRequest, FleetWorld};
use serde_json::{Value, json};

const DAY: Date = date(2025, 1, 15);

/// Someone who asks, and a clock that goes only when they say so.
struct Caller {
    fleet: FleetWorld,
    now: Duration,
}

impl Caller {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut FleetFaults)) -> Self {
        let config = FleetConfig { empty: 0.0, ..FleetConfig::default() };
        let fleet = FleetWorld::new(config, 7);
        let mut faults = FleetFaults::default();
        change(&mut faults);
        fleet.set_faults(faults).unwrap();
        Self { fleet, now: Duration::from_secs(5) }
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn ask(&self, method: &str, url: &str, key: Option<&str>, body: Option<&Value>) -> FleetAnswer {
        let number = url.split('/').nth(2).unwrap();
        let kind = if url.starts_with("/worker") { "worker" } else { "writer" };
        let api_key = format!("{kind}-{number}-key");
        let request = FleetRequest {
            method,
            url,
            api_key: Some(&api_key),
            idempotency_key: key,
            body: body.map_or(FleetBody::Nothing, FleetBody::Json),
        };
        self.fleet.answer(self.now, &request)
    }

    fn open(&self, worker: usize, proxy: &str, key: Option<&str>) -> FleetAnswer {
        let proxy = json!({ "server": proxy, "username": "user", "password": "pass" });
        let body = json!({ "force_refresh": true, "proxy": proxy });
        self.ask("POST", &format!("/worker/{worker}/session"), key, Some(&body))
    }

    fn session(&self, worker: usize) -> String {
        let answer = self.ask("GET", &format!("/worker/{worker}/session/status"), None, None);
        match answer.status {
            200 => answer.value().unwrap()["status"].as_str().unwrap().to_owned(),
            status => status.to_string(),
        }
    }

    fn close(&self, worker: usize) -> FleetAnswer {
        self.ask("DELETE", &format!("/worker/{worker}/session"), None, None)
    }

    fn start(&self, worker: usize, key: &str) -> FleetAnswer {
        let body = scrape(&Filters::day(DAY, Format::All, "pt"));
        self.ask("POST", &format!("/worker/{worker}/scrape"), Some(key), Some(&body))
    }

    /// Starts a job, which must be possible, and gives its id.
    #[track_caller]
    fn started(&self, worker: usize, key: &str) -> String {
        let answer = self.start(worker, key);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.value().unwrap()["job_id"].as_str().unwrap().to_owned()
    }

    /// Opens a session, waits until it is ready and starts a job on it.
    #[track_caller]
    fn scraping(&mut self, worker: usize, key: &str) -> String {
        let proxy = format!("proxy{worker}:8080");
        assert_eq!(self.open(worker, &proxy, None).status, 200);
        self.wait(90);
        assert_eq!(self.session(worker), "ready");
        self.started(worker, key)
    }

    fn job(&self, worker: usize, id: &str) -> Value {
        let answer = self.ask("GET", &format!("/worker/{worker}/scrape/{id}"), None, None);
        answer.value().unwrap_or_else(|| panic!("{answer:?}"))
    }

    fn job_status(&self, worker: usize, id: &str) -> String {
        let job = self.job(worker, id);
        job["status"].as_str().unwrap_or("none").to_owned()
    }

    fn cancel(&self, worker: usize, id: &str) -> FleetAnswer {
        self.ask("POST", &format!("/worker/{worker}/scrape/{id}/cancel"), None, None)
    }

    fn results(&self, worker: usize, id: &str) -> FleetAnswer {
        let url = format!("/worker/{worker}/{id}/{id}_results.json");
        self.fleet.answer(self.now, &FleetRequest::new("GET", &url))
    }

    fn process(&self, id: Option<&str>, url: &str) -> FleetAnswer {
        self.ask("POST", "/writer/0/process", None, Some(&process(id, url)))
    }

    fn write(&self, id: &str) -> Value {
        let answer = self.ask("GET", &format!("/writer/0/status/{id}"), None, None);
        answer.value().unwrap_or_else(|| panic!("{answer:?}"))
    }
}

fn scrape(filters: &Filters) -> Value {
    json!({
        "filters": {
            "date_range": { "start": filters.start, "end": filters.end },
            "format": filters.format, "sort_by": "qtd_ads", "languages": filters.languages,
        },
        "options": { "max_ads": "all", "batch_size": 150 },
    })
}

fn process(id: Option<&str>, url: &str) -> Value {
    json!({
        "job_id": id,
        "config": {
            "table": "ads", "schema": "public", "operation": "upsert", "conflict_key": "id",
        },
        "source": { "type": "url", "url": url, "json_path": "ads" },
    })
}
