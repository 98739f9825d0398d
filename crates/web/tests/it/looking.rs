//! One task, from all sides.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(events_come_newest_first_and_a_hundred_at_most);

async fn events_come_newest_first_and_a_hundred_at_most(place: Place) {
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!({})).await;
    let task = server.claim(Uuid::new_v4(), KIND).await;
    for step in 0..110 {
        let state = format!("Step {step}");
        let more = json!({"progress": step.min(100), "state": state, "detail": {"step": step}});
        server.report(&task, "progress", more).await.expect(200);
    }
    let events = server.get(&format!("/tasks/{id}/events")).await.expect(200);
    let events = events["items"].as_array().unwrap().clone();
    let versions: Vec<i64> =
        events.iter().map(|event| event["version"].as_i64().unwrap()).collect();
    assert_eq!(versions, (12..=111).rev().collect::<Vec<i64>>());
    assert_eq!(events[0]["state"], "Step 109");
    assert_eq!(events[0]["detail"], json!({"action": "update", "step": 109}));
    assert_eq!((&events[0]["actor"], &events[0]["task_id"]), (&json!("WORKER"), &json!(id)));
    let few = server.get(&format!("/tasks/{id}/events?limit=3")).await.expect(200);
    assert_eq!(few["items"].as_array().unwrap()[..], events[..3]);
}

#[tokio::test]
async fn a_task_shows_its_version_and_its_result() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    let task = server.claim(Uuid::new_v4(), KIND).await;
    let result = json!({"words": 3, "list": [1, null, "ü"]});
    server.report(&task, "complete", json!({ "result": result })).await.expect(200);
    let reply = server.get(&format!("/tasks/{id}")).await;
    assert_eq!(reply.header("etag"), Some("\"2\""));
    let shown = reply.expect(200);
    assert_eq!((&shown["status"], &shown["progress"]), (&json!("COMPLETED"), &json!(100)));
    let shown = server.get(&format!("/tasks/{id}/result")).await.expect(200);
    assert_eq!((&shown["task_id"], &shown["payload"]), (&json!(id), &result));
    assert!(shown["created_at"].is_string());
}

#[tokio::test]
async fn types_are_listed_with_what_waits() {
    let server = Server::file().await;
    server.create(KIND, &json!({})).await;
    server.tasks.declare(vec!["another".into()]).await.unwrap();
    let types = server.get("/types").await.expect(200);
    let types = types["items"].as_array().unwrap();
    let brief: Vec<(&str, i64)> = types
        .iter()
        .map(|kind| (kind["type"].as_str().unwrap(), kind["waiting"].as_i64().unwrap()))
        .collect();
    assert_eq!(brief, [("another", 0), (KIND, 1)]);
    assert_eq!(types[0]["oldest_waiting"], Value::Null);
    assert!(types[1]["oldest_waiting"].is_string());
}
