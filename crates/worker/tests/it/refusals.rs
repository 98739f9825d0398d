//! The statuses that the specification has for refusals.

use lavra_worker::{Error, Worker};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{Rig, World, config};

#[tokio::test]
async fn each_mistake_has_its_status_and_says_what_to_do() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let client = &rig.client;
    let day = json!({ "date_range": { "start": "2025-01-01", "end": "2025-01-01" } });
    let scrape = json!({ "filters": day }).to_string();
    let long = format!("{{\"x\": \"{}\"}}", "x".repeat(70_000));
    let rows: [(&str, &str, &str, u16, &str); 14] = [
        ("POST", "/session", "{", 400, "malformed_json"),
        ("POST", "/session", "", 400, "malformed_json"),
        ("POST", "/session", "{}", 422, "invalid_request"),
        ("POST", "/session", "{\"proxy\": {\"server\": \"ftp://x\"}}", 422, "invalid_request"),
        ("POST", "/session", &long, 413, "too_large"),
        ("POST", "/scrape", "[1", 400, "malformed_json"),
        ("POST", "/scrape", "{}", 422, "invalid_request"),
        ("POST", "/scrape", &scrape, 422, "session_not_ready"),
        ("GET", "/session/status", "", 404, "no_session"),
        ("DELETE", "/session", "", 404, "no_session"),
        ("GET", "/scrape/scrape_3c434995", "", 404, "no_such_job"),
        ("POST", "/scrape/..%2F..%2Fetc/cancel", "", 404, "no_such_job"),
        ("GET", "/scrape_1/scrape_1_results.json", "", 404, "no_such_results"),
        ("PUT", "/session", "", 405, "wrong_method"),
    ];
    for (method, path, body, status, code) in rows {
        let answer = client.raw(method, path).body(body.to_owned()).send().await.unwrap();
        assert_eq!(answer.status(), status, "{method} {path}");
        let told: Value = answer.json().await.unwrap();
        assert_eq!(told["error"], code, "{method} {path}");
        assert!(!told["message"].as_str().unwrap().is_empty());
    }
    assert_eq!(client.raw_json("GET", "/nowhere").await.0, 404);
    let key = client.raw("POST", "/scrape").header("idempotency-key", "x".repeat(300));
    assert_eq!(key.body(scrape).send().await.unwrap().status(), 422);
}

#[tokio::test]
async fn every_path_but_health_and_results_needs_the_key() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for (method, path) in [
        ("POST", "/session"),
        ("DELETE", "/session"),
        ("GET", "/session/status"),
        ("POST", "/scrape"),
        ("GET", "/scrape/x"),
        ("POST", "/scrape/x/cancel"),
    ] {
        for key in [None, Some(""), Some("marker-api-key-7b1"), Some("other")] {
            let url = format!("{}{path}", rig.client.base);
            let mut request = http.request(method.parse().unwrap(), url);
            if let Some(key) = key {
                request = request.header("x-api-key", key);
            }
            assert_eq!(request.send().await.unwrap().status(), 401, "{method} {path} {key:?}");
        }
    }
    let open = http.get(format!("{}/health", rig.client.base)).send().await.unwrap();
    assert_eq!(open.status(), 200);
}

#[tokio::test]
async fn beyond_loopback_nothing_is_served_without_a_key() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let mut config = config(&world, place.path());
    config.api_key = None;
    let worker = Worker::open(config).await.unwrap();
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = worker.serve(listener, CancellationToken::new()).await.unwrap_err();
    assert!(refused.to_string().contains("LAVRA_WORKER_API_KEY"), "{refused}");
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_at_the_start() {
    let (world, place) = (World::new().await, tempfile::tempdir().unwrap());
    let rig = Rig::new(&world, place.path()).await;
    let again = Worker::open(config(&world, place.path())).await.unwrap_err();
    assert!(matches!(again, Error::Held(_)), "{again}");
    drop(rig);
    let other = tempfile::tempdir().unwrap();
    let mut wrong = config(&world, other.path());
    wrong.endpoint = Some("nothing".into());
    assert!(matches!(Worker::open(wrong).await, Err(Error::Invalid(_))));
    let mut wrong = config(&world, other.path());
    wrong.storage = Some("/tmp/somewhere".into());
    assert!(matches!(Worker::open(wrong).await, Err(Error::Invalid(_))));
}
