//! `lavra worker` as it is typed, in front of `lavra world --ads`, behind its proxies.

use std::time::Duration;

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{Place, Running, port, until};

const KEY: &str = "marker-worker-key-5d20";
const PASSWORD: &str = "proxy-password";
const DAYS: &str = "date_start=2025-03-03&date_end=2025-03-12&media_type=all&languages=pt,en";

/// Who calls the worker and the world.
struct Caller {
    runtime: tokio::runtime::Runtime,
    http: reqwest::Client,
}

impl Caller {
    fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _once = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { runtime, http }
    }

    fn ask(&self, method: Method, url: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let mut request = self.http.request(method, url).header("x-api-key", KEY);
        request = request.header("idempotency-key", "mis_1:1");
        if let Some(body) = body {
            request = request.json(body);
        }
        self.runtime.block_on(async {
            let answer = request.send().await.ok()?;
            Some((answer.status().as_u16(), answer.json().await.unwrap_or_default()))
        })
    }

    fn get(&self, url: &str) -> Value {
        self.ask(Method::GET, url, None).unwrap().1
    }

    fn until(&self, url: &str, what: impl Fn(&Value) -> bool) -> Value {
        let found = until(Duration::from_secs(25), || {
            let (_, body) = self.ask(Method::GET, url, None)?;
            what(&body).then_some(body)
        });
        found.unwrap_or_else(|| panic!("{url}: {:?}", self.ask(Method::GET, url, None)))
    }
}

/// What stands in the logs after `mark`, up to a space or a comma.
fn told(place: &Place, mark: &str) -> String {
    let found = until(Duration::from_secs(20), || {
        let logs = place.logs();
        let rest = logs.rsplit_once(mark)?.1.to_owned();
        let end = rest.find([' ', ',', ';', '\n'])?;
        Some(rest[..end].to_owned())
    });
    found.unwrap_or_else(|| panic!("no {mark:?}: {}", place.logs()))
}

fn worker(place: &Place, port: u16, base_url: &str) -> Running {
    let listen = format!("127.0.0.1:{port}");
    let args = ["worker", "--listen", &listen, "--data", "jobs", "--base-url", base_url];
    place.start_with(&args, &[("LAVRA_WORKER_API_KEY", KEY)])
}

#[test]
fn a_worker_is_killed_in_the_middle_of_a_scrape_and_brings_home_the_truth() {
    let (place, caller) = (Place::on_duckdb(), Caller::new());
    let args = ["world", "--listen", "127.0.0.1:0", "--ads", "127.0.0.1:0", "--proxies", "2"];
    let _world = place.start(&args);
    let ads = told(&place, "an ad library is at ");
    let world = ads.trim_end_matches("/v1").to_owned();
    let socks = told(&place, "proxy 1 is at ");
    let slow = json!({ "latency_ms": 60 });

    let port = port();
    let base = format!("http://127.0.0.1:{port}");
    let first = worker(&place, port, &ads);
    let session = json!({
        "force_refresh": true,
        "proxy": { "server": format!("socks5h://{socks}"), "username": "user", "password": PASSWORD },
    });
    let opened = until(Duration::from_secs(20), || {
        caller.ask(Method::POST, &format!("{base}/session"), Some(&session))
    });
    assert_eq!(opened.unwrap().0, 200);
    caller.until(&format!("{base}/session/status"), |body| body["status"] == "ready");
    caller.ask(Method::PUT, &format!("{world}/_world/faults"), Some(&slow));
    let scrape = json!({
        "filters": {
            "date_range": { "start": "2025-03-03", "end": "2025-03-12" }, "format": "all",
            "sort_by": "qtd_ads", "languages": ["pt", "en"],
        },
        "options": { "max_ads": "all", "batch_size": 150 },
    });
    let start = || caller.ask(Method::POST, &format!("{base}/scrape"), Some(&scrape)).unwrap().1;
    let id = start()["job_id"].as_str().unwrap().to_owned();
    let job = format!("{base}/scrape/{id}");
    caller.until(&job, |body| body["ads_count"].as_u64() > Some(1000));
    drop(first); // kill -9

    let second = worker(&place, port, &ads);
    caller.until(&job, |body| body["ads_count"].as_u64() > Some(2000));
    kill_process(Pid::from_child(&second.0), Signal::TERM).unwrap();
    let mut second = second;
    assert!(second.0.wait().unwrap().success(), "it drains: {}", place.logs());

    caller.ask(Method::PUT, &format!("{world}/_world/faults"), Some(&json!({})));
    let _third = worker(&place, port, &ads);
    let done = caller.until(&job, |body| body["status"] == "completed");
    let truth = caller.get(&format!("{world}/_world/ads?{DAYS}"));
    assert_eq!(done["ads_count"], truth["ads"].as_array().unwrap().len());
    assert_eq!(caller.get(&format!("{base}/{id}/{id}_results.json")), truth);
    assert_eq!(start()["job_id"], id.as_str(), "the same key is one start");
    let meters = caller.get(&format!("{world}/_world/proxies"));
    assert!(meters[1]["bytes_down"].as_u64() > Some(1_000_000), "{meters}");
    assert_eq!((&meters[0]["connections"], &meters[1]["denied"]), (&json!(0), &json!(0)));
    let logs = place.logs();
    assert!(!logs.contains(KEY) && !logs.contains(PASSWORD), "{logs}");
}

#[test]
fn a_worker_without_a_key_serves_only_this_machine() {
    let place = Place::on_duckdb();
    let output = place.run(&["worker", "--listen", "0.0.0.0:0"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("LAVRA_WORKER_API_KEY"), "{said}");
    let output = place.run(&["worker", "--source", "nothing.toml"]);
    assert_eq!(output.status.code(), Some(2));
}
