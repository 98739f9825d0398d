//! GET /metrics.

use serde_json::json;

use crate::extractions::planned;
use crate::support::Server;
use crate::support::server::KIND;

/// A sample of the text format: name, labels, value.
fn sample(line: &str) -> (String, String, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("labels end")),
        None => (series, ""),
    };
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
    (name.to_owned(), labels.to_owned(), value)
}

#[tokio::test]
async fn metrics_can_be_read_and_count_by_documented_route() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    server.create(KIND, &json!({})).await;
    server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    server.get("/nothing/here").await.problem(404, "no_such_route");
    server
        .send(server.request("BREW".parse().unwrap(), "/tasks"))
        .await
        .problem(405, "method_not_allowed");

    let reply = server.get("/metrics").await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for name in reply.text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, _) = name.split_once(' ').unwrap();
        assert!(reply.text.contains(&format!("# HELP {name} ")), "nobody says what {name} is");
    }
    let lines = reply.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let samples: Vec<(String, String, f64)> = lines.map(sample).collect();
    let find = |name: &str, labels: &[&str]| {
        let fits = |found: &&(String, String, f64)| {
            found.0 == name && labels.iter().all(|label| found.1.contains(label))
        };
        let found = samples.iter().find(fits);
        found.unwrap_or_else(|| panic!("no {name} {labels:?} in {}", reply.text)).2
    };
    assert!((find("lavra_tasks_waiting", &["type=\"count\""]) - 1.0).abs() < f64::EPSILON);
    assert!(find("lavra_outbox_rows", &[]).abs() < f64::EPSILON);
    let requests = "lavra_http_requests_total";
    assert!(find(requests, &["route=\"/tasks\"", "method=\"POST\"", "status=\"201\""]) >= 2.0);
    assert!(find(requests, &["route=\"/tasks/{id}:cancel\"", "status=\"200\""]) >= 1.0);
    assert!(find(requests, &["route=\"none\"", "status=\"404\""]) >= 1.0);
    assert!(find(requests, &["method=\"other\"", "status=\"405\""]) >= 1.0);
    // What has no labels is there before it counts, so that its first time is an increase.
    for name in [
        "lavra_wrong_keys_total",
        "lavra_task_takeovers_total",
        "lavra_task_fenced_total",
        "lavra_outbox_published_total",
    ] {
        assert!(find(name, &[]).abs() < f64::EPSILON, "{name}");
    }
    let buckets = "lavra_http_request_seconds_bucket";
    assert!(find(buckets, &["route=\"/tasks\"", "le=\"+Inf\""]) >= 1.0);
    assert!(!reply.text.contains(&id), "ids are no labels");

    // A type with nothing left to do says 0, not what it said last.
    let rest = server.get("/tasks?status=PENDING").await.expect(200);
    let id = rest["items"][0]["id"].as_str().unwrap();
    server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    let text = server.get("/metrics").await.text;
    assert!(text.contains("lavra_tasks_waiting{type=\"count\"} 0"), "{text}");
}

#[tokio::test]
async fn metrics_tell_of_the_fleet_and_of_extractions() {
    let server = Server::file().await;
    let order = json!({"from": "2025-01-01", "to": "2025-01-03", "media_types": ["video"], "languages": [["pt"]]});
    server.post("/missions", &order).await.expect(201);
    let proxy = json!({"name": "p", "host": "127.0.0.1", "port": 9000});
    server.post("/fleet/proxies", &proxy).await.expect(201);
    planned(&server).await;
    let text = server.get("/metrics").await.text;
    for line in [
        "lavra_missions{status=\"bank\"} 3",
        "lavra_missions{status=\"failed\"} 0",
        "lavra_workers{status=\"idle\"} 0",
        "lavra_proxies{state=\"free\"} 1",
        "lavra_proxies{state=\"inactive\"} 0",
        "lavra_extraction_lists{source=\"pncp\",status=\"PENDING\"} 6",
        "lavra_extraction_lists{source=\"pncp\",status=\"FAILED\"} 0",
    ] {
        assert!(text.lines().any(|it| it == line), "no {line} in {text}");
    }
}
