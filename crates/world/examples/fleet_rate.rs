//! How many requests a fleet answers in a second, without sockets: a simulation asks millions.

use std::time::{Duration, Instant};

use lavra_world::{FleetBody, FleetConfig, FleetFaults, FleetRequest, FleetWorld};
use serde_json::json;

const WORKERS: usize = 50;
const ROUNDS: u64 = 40_000;

#[expect(clippy::print_stdout, reason = "the rate is what it is run for")]
fn main() {
    let config = FleetConfig { workers: WORKERS, worker_key: None, ..FleetConfig::default() };
    let fleet = FleetWorld::new(config, 7);
    if fleet.set_faults(FleetFaults::all()).is_err() {
        return;
    }
    let scrape = json!({ "filters": {
        "date_range": { "start": "2025-01-15", "end": "2025-01-15" },
        "format": "video", "sort_by": "qtd_ads", "languages": ["pt"],
    }});
    let mut jobs = vec![String::new(); WORKERS];
    let (start, mut asked) = (Instant::now(), 0_u64);
    let mut ask = |now, method: &str, url: &str, key: Option<&str>, body: FleetBody<'_>| {
        asked += 1;
        let request = FleetRequest { idempotency_key: key, body, ..FleetRequest::new(method, url) };
        fleet.answer(now, &request)
    };
    for round in 0..ROUNDS {
        let now = Duration::from_secs(round * 10);
        for (worker, job) in jobs.iter_mut().enumerate() {
            let base = fleet_url(worker);
            match round % 200 {
                0 => {
                    let proxy = json!({ "server": format!("p{worker}:1") });
                    let body = json!({ "force_refresh": true, "proxy": proxy });
                    ask(now, "POST", &format!("{base}/session"), None, FleetBody::Json(&body));
                }
                1..10 => {
                    ask(now, "GET", &format!("{base}/session/status"), None, FleetBody::Nothing);
                }
                10 => {
                    let (key, url) = (format!("m{worker}:{round}"), format!("{base}/scrape"));
                    let answer = ask(now, "POST", &url, Some(&key), FleetBody::Json(&scrape));
                    let id =
                        answer.value().and_then(|body| Some(body["job_id"].as_str()?.to_owned()));
                    *job = id.unwrap_or_default();
                }
                _ => {
                    ask(now, "GET", &format!("{base}/scrape/{job}"), None, FleetBody::Nothing);
                }
            }
        }
    }
    let took = start.elapsed();
    println!("{asked} requests in {took:.2?}: {:.2?} each", took / asked.max(1) as u32);
}

fn fleet_url(worker: usize) -> String {
    format!("http://fleet.test/worker/{worker}")
}
