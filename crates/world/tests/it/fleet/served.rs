//! The same behind a socket.

use std::time::{Duration, Instant};

use lavra_world::fleet::{Filters, Format};
use lavra_world::{FleetConfig, FleetWorld};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{DAY, process, scrape};

struct Served {
    fleet: FleetWorld,
    base: String,
    http: Client,
    _stop: DropGuard,
}

impl Served {
    async fn new() -> Self {
        let config = FleetConfig { empty: 0.0, ..FleetConfig::fast() };
        let fleet = FleetWorld::new(config, 7);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let (served, until) = (fleet.clone(), stop.clone());
        tokio::spawn(async move { served.serve(listener, until).await });
        let _once = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().no_proxy().build().unwrap();
        Self { fleet, base, http, _stop: stop.drop_guard() }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> reqwest::Result<Response> {
        let key = if path.starts_with("/worker") { "worker-3-key" } else { "writer-0-key" };
        let request = self.http.request(method, format!("{}{path}", self.base));
        let request = request.header("x-api-key", key).header("idempotency-key", "mis_1:1");
        let request = request.timeout(Duration::from_secs(3));
        match body {
            Some(body) => request.json(&body).send().await,
            None => request.send().await,
        }
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None).await.unwrap().json().await.unwrap()
    }

    async fn until(&self, path: &str, status: &str) -> Value {
        let start = Instant::now();
        loop {
            let body = self.get(path).await;
            if body["status"] == status {
                return body;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{path}: {body}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn put_faults(&self, faults: Value) -> u16 {
        let answer = self.send(Method::PUT, "/_fleet/faults", Some(faults)).await;
        answer.unwrap().status().as_u16()
    }
}

#[tokio::test]
async fn a_mission_goes_from_session_to_storage() {
    let served = Served::new().await;
    let proxy = json!({ "force_refresh": true, "proxy": { "server": "p:1" } });
    let opened = served.send(Method::POST, "/worker/3/session", Some(proxy)).await.unwrap();
    assert_eq!(opened.status(), 200);
    served.until("/worker/3/session/status", "ready").await;
    let filters = Filters::day(DAY, Format::All, "pt");
    let started =
        served.send(Method::POST, "/worker/3/scrape", Some(scrape(&filters))).await.unwrap();
    let started: Value = started.json().await.unwrap();
    let id = started["job_id"].as_str().unwrap();
    served.until(&format!("/worker/3/scrape/{id}"), "completed").await;
    let path = format!("/worker/3/{id}/{id}_results.json");
    let results = served.get(&path).await;
    assert_eq!(results["ads"], json!(served.fleet.truth(&filters)));
    let url = format!("{}{path}", served.base);
    let sent =
        served.send(Method::POST, "/writer/0/process", Some(process(Some("w 1"), &url))).await;
    assert_eq!(sent.unwrap().status(), 200);
    let write = served.until("/writer/0/status/w%201", "completed").await;
    assert_eq!(write["progress"]["total"], results["ads"].as_array().unwrap().len());
    let stats = served.get("/_fleet/stats").await;
    assert_eq!(stats["writes"][&url]["written"], 1);
    assert_eq!(stats["missions"]["mis_1"]["starts"], 1);
    assert_eq!(served.get("/_fleet/violations").await, json!([]));
    let closed = served.send(Method::DELETE, "/worker/3/session", None).await.unwrap();
    assert_eq!(closed.status(), 200);
    assert_eq!(served.get("/_fleet/stats").await["sessions_open"], 0);
}

#[tokio::test]
async fn fates_and_delays_are_real() {
    let served = Served::new().await;
    let ask = || served.send(Method::GET, "/writer/0/health", None);
    for switch in ["refused", "reset"] {
        assert_eq!(served.put_faults(json!({ "writer_requests": { switch: 1.0 } })).await, 200);
        let error = ask().await.unwrap_err();
        assert!(!error.is_timeout(), "{switch}: {error:?}");
    }
    served.put_faults(json!({ "writer_requests": { "lost": 1.0 } })).await;
    assert!(ask().await.unwrap_err().is_timeout());
    let slow = json!({ "writer_requests": { "slow": 1.0, "slow_most_ms": 400 } });
    served.put_faults(slow).await;
    let start = Instant::now();
    for _ in 0..5 {
        assert_eq!(ask().await.unwrap().status(), 200);
    }
    assert!(start.elapsed() > Duration::from_millis(200));
    let busy = json!({ "writer_requests": { "retry_after": 1.0, "retry_after_seconds": 7 } });
    served.put_faults(busy).await;
    let answer = ask().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()),
        (429, "7")
    );
    assert_eq!(served.put_faults(json!({ "nothing": 1 })).await, 400);
    assert_eq!(served.put_faults(json!({ "bad_proxies": 7 })).await, 400);
    assert_eq!(served.put_faults(json!({})).await, 200);
    assert_eq!(ask().await.unwrap().json::<Value>().await.unwrap()["status"], "healthy");
}

#[tokio::test]
async fn time_goes_on_when_a_fleet_is_served_again() {
    let served = Served::new().await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    served.get("/worker/3/session/status").await;
    let before = served.fleet.latest();
    assert!(before >= Duration::from_millis(30));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (fleet, stop) = (served.fleet.clone(), CancellationToken::new());
    let until = stop.clone();
    tokio::spawn(async move { fleet.serve(listener, until).await });
    let health = served.http.get(format!("{base}/writer/0/health")).send().await.unwrap();
    assert_eq!(health.status(), 200);
    assert!(served.fleet.latest() >= before);
    drop(stop.drop_guard());
}
