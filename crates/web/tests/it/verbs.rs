//! Cancel and retry.

use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::support::server::KIND;
use crate::support::{Place, Reply, Server, on_each_engine};

on_each_engine!(
    a_version_that_is_past_refuses,
    a_cancelled_task_is_confirmed_by_its_worker,
    what_the_state_does_not_allow_is_refused_with_the_state,
);

async fn matched(server: &Server, path: &str, version: &str) -> Reply {
    server.send(server.request(Method::POST, path).header("If-Match", version)).await
}

async fn a_version_that_is_past_refuses(place: Place) {
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!({})).await;
    let (cancel, retry) = (format!("/tasks/{id}:cancel"), format!("/tasks/{id}:retry"));
    let before = server.written().await;
    let problem = matched(&server, &cancel, "\"3\"").await.problem(412, "version_mismatch");
    assert_eq!((&problem["expected"], &problem["actual"]), (&json!(3), &json!(0)));
    matched(&server, &cancel, "7").await.problem(412, "version_mismatch");
    assert_eq!(server.written().await, before);
    let done = matched(&server, &cancel, "\"0\"").await;
    assert_eq!(done.expect(200)["status"], "CANCELLED");
    assert_eq!(done.header("etag"), Some("\"1\""));
    matched(&server, &retry, "0").await.problem(412, "version_mismatch");
    assert_eq!(matched(&server, &retry, "1").await.expect(200)["status"], "PENDING");
    assert_eq!(matched(&server, &cancel, "*").await.expect(200)["version"], 3);
}

async fn a_cancelled_task_is_confirmed_by_its_worker(place: Place) {
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!({})).await;
    let worker = Uuid::new_v4();
    let task = server.claim(worker, KIND).await;
    let cancelled = server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    assert_eq!(cancelled["state"], "Cancelled by user");
    assert!(cancelled["stop_by"].is_string());
    let held = json!({"held": [{"id": id, "token": task["token"]}]});
    let answer = server.post(&format!("/workers/{worker}:heartbeat"), &held).await.expect(200);
    assert_eq!(answer, json!({"lost": [{"id": id, "cancelled": true}], "heartbeat_seconds": 3}));
    server.report(&task, "release", json!({})).await.problem(409, "task_lost");
    let confirmed = server.task(&id).await;
    assert_eq!((&confirmed["status"], &confirmed["stop_by"]), (&json!("CANCELLED"), &json!(null)));
    let events = server.get(&format!("/tasks/{id}/events")).await.expect(200);
    assert_eq!(events["items"][0]["detail"]["action"], "stop-confirmed");
}

async fn what_the_state_does_not_allow_is_refused_with_the_state(place: Place) {
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!({})).await;
    let (cancel, retry) = (format!("/tasks/{id}:cancel"), format!("/tasks/{id}:retry"));
    let problem = server.ask(&retry).await.problem(409, "illegal_transition");
    assert_eq!(problem["task_status"], "PENDING");
    let task = server.claim(Uuid::new_v4(), KIND).await;
    server.report(&task, "complete", json!({})).await.expect(200);
    let before = server.written().await;
    for path in [&cancel, &retry] {
        let problem = server.ask(path).await.problem(409, "illegal_transition");
        assert_eq!(problem["task_status"], "COMPLETED");
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn a_colon_may_come_encoded() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    assert_eq!(
        server.ask(&format!("/tasks/{id}%3Acancel")).await.expect(200)["status"],
        "CANCELLED"
    );
    assert_eq!(
        server.ask(&format!("/tasks/{id}%3aretry?x=y")).await.expect(200)["status"],
        "PENDING"
    );
}
