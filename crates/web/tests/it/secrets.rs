//! What was written as a secret is never answered.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(no_answer_has_a_secret, a_viewer_sees_no_payload);

const MARKER: &str = "MARKER-SECRET";

/// Every GET of the description, with an id in it that is there.
async fn all_answers(server: &Server, names: &[(&str, &str)]) -> Vec<(String, String)> {
    let document = server.get("/openapi.json").await.expect(200);
    let mut answers = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        if item.get("get").is_none() || path.ends_with("/stream") {
            continue;
        }
        let ids = names.iter().filter(|(beginning, _)| path.starts_with(beginning));
        let mut paths: Vec<String> = ids.map(|(_, id)| path.replace("{id}", id)).collect();
        if paths.is_empty() {
            paths.push(path.clone());
        }
        for path in paths {
            for kind in ["workers", "proxies", "writers"] {
                let path = path.replace("{kind}", kind).replace("{name}", "failures");
                let reply = server.get(&path.replace("{source}", "pncp")).await;
                answers.push((path, format!("{:?} {}", reply.headers, reply.text)));
            }
        }
    }
    answers
}

fn assert_silent(answers: &[(String, String)]) {
    for (path, answer) in answers {
        assert!(!answer.contains(MARKER), "{path}: {answer}");
    }
}

async fn no_answer_has_a_secret(place: Place) {
    let server = Server::on(place).await;
    let mut answers = Vec::new();
    let mut call = async |method: Method, path: &str, body: Value| {
        let reply = server.send(server.request(method, path).json(&body)).await;
        assert!(reply.status.is_success(), "{path}: {reply:?}");
        answers.push((path.to_owned(), format!("{:?} {}", reply.headers, reply.text)));
    };
    let service = |name: &str, port: u16| {
        json!({
            "name": name, "url": format!("http://127.0.0.1:{port}/"), "api_key": MARKER,
        })
    };
    let mut worker = service("w1", 1);
    worker["storage_domain"] = json!("storage.example.com");
    let proxy = json!({
        "name": "p1", "host": "127.0.0.1", "port": 1, "username": "u", "password": MARKER,
    });
    call(Method::POST, "/fleet/workers", worker).await;
    call(Method::POST, "/fleet/proxies", proxy).await;
    call(Method::POST, "/fleet/writers", service("r1", 2)).await;
    let again = json!({ "api_key": format!("{MARKER}-2") });
    call(Method::PUT, "/fleet/workers/w1", again.clone()).await;
    call(Method::PUT, "/fleet/writers/r1", again).await;
    call(Method::PUT, "/fleet/proxies/p1", json!({ "password": format!("{MARKER}-2") })).await;
    for path in ["/fleet/workers/w1:test", "/fleet/proxies/p1:test", "/fleet/writers/r1:test"] {
        call(Method::POST, path, json!({})).await;
    }
    let order = json!({
        "from": "2025-01-01", "to": "2025-01-01", "media_types": ["all"],
        "languages": [["pt"]], "queue": true,
    });
    call(Method::POST, "/missions", order).await;
    assert_silent(&answers);

    // Mistakes are told without what was mistaken.
    for (path, body) in [
        ("/fleet/workers", json!({ "name": "w2", "url": "nowhere", "api_key": MARKER })),
        (
            "/fleet/workers",
            json!({ "name": "w1", "url": "http://127.0.0.1:9/", "api_key": MARKER }),
        ),
        ("/fleet/proxies", json!({ "name": "p2", "port": 70_000, "password": MARKER })),
        (
            "/fleet/writers",
            json!({ "name": "r2", "url": "http://u:MARKER-SECRET@h/", "api_key": "k" }),
        ),
    ] {
        let reply = server.post(path, &body).await;
        assert!(reply.status.is_client_error(), "{path}: {reply:?}");
        assert!(!reply.text.contains(MARKER), "{path}: {reply:?}");
    }

    let (_, key) = server.make_key(lavra_web::access::Role::Admin).await;
    let missions = server.get("/missions").await.expect(200);
    let mission = missions["items"][0]["id"].as_str().unwrap().to_owned();
    let answers = all_answers(&server, &[("/missions", &mission)]).await;
    assert!(answers.len() > 30, "{}", answers.len());
    assert!(answers.iter().any(|(_, answer)| answer.contains("\"w1\"")), "nothing was looked at");
    assert_silent(&answers);
    let (_, secret) = key.rsplit_once('_').unwrap();
    let shows_key = answers.iter().find(|(_, answer)| answer.contains(secret));
    assert!(shows_key.is_none(), "{shows_key:?}");
}

async fn a_viewer_sees_no_payload(place: Place) {
    let server = Server::on(place).await;
    let payload = json!({ "headers": { "Authorization": MARKER } });
    let id = server.create(KIND, &payload).await;
    server
        .put("/schedules/nightly", &json!({"type": KIND, "cron": "0 3 * * *", "payload": payload}))
        .await
        .expect(201);
    let worker = uuid::Uuid::new_v4();
    let task = server.claim(worker, KIND).await;
    server.report(&task, "fail", json!({ "error": "no", "retryable": false })).await.expect(200);
    let (_, viewer) = server.make_key(lavra_web::access::Role::Viewer).await;
    for path in [
        "/tasks".to_owned(),
        format!("/tasks/{id}"),
        format!("/tasks/{id}/events"),
        format!("/tasks/{id}/input"),
        format!("/tasks/{id}/result"),
        "/schedules".to_owned(),
        "/dead-letters".to_owned(),
        "/types".to_owned(),
    ] {
        let request = server.request(Method::GET, &path).bearer_auth(&viewer);
        let reply = server.send(request.timeout(Duration::from_secs(10))).await;
        assert!(!reply.text.contains(MARKER), "{path}: {reply:?}");
    }
    let input = server.get(&format!("/tasks/{id}/input")).await;
    assert!(input.text.contains(MARKER), "the marker was nowhere");
}
