//! POST /tasks:batch.

use std::collections::HashSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::server::KIND;
use crate::support::{Reply, Server};

fn batch(count: usize) -> Value {
    let tasks: Vec<Value> = (0..count)
        .map(|n| json!({"type": KIND, "payload": {"n": n}, "idempotent": true}))
        .collect();
    json!({ "tasks": tasks })
}

#[tokio::test]
async fn a_batch_is_made_in_its_order_and_answered_by_the_same_tasks_again() {
    let server = Server::file().await;
    let made = server.post("/tasks:batch", &batch(10_000)).await.expect(201);
    let made = made.as_array().unwrap();
    let ids: HashSet<&str> = made.iter().map(|made| made["id"].as_str().unwrap()).collect();
    assert_eq!((made.len(), ids.len()), (10_000, 10_000));
    assert!(made.iter().all(|made| made["new"] == true));
    for place in [0, 4_321, 9_999] {
        let id = made[place]["id"].as_str().unwrap();
        let input = server.get(&format!("/tasks/{id}/input")).await.expect(200);
        assert_eq!(input["payload"], json!({"n": place}));
    }
    let again = server.post("/tasks:batch", &batch(10_000)).await.expect(200);
    assert!(again.as_array().unwrap().iter().all(|made| made["new"] == false));
    assert_eq!(again[17]["id"], made[17]["id"]);
    // One more than before: one is new.
    server
        .post(
            "/tasks:batch",
            &json!({"tasks": [
                {"type": KIND, "payload": {"n": 0}, "idempotent": true},
                {"type": KIND, "payload": {"n": "new"}, "idempotent": true},
            ]}),
        )
        .await
        .expect(201);
}

async fn keyed(server: &Server, key: &str, body: &Value) -> Reply {
    let request = server.request(Method::POST, "/tasks:batch");
    server.send(request.header("Idempotency-Key", key).json(body)).await
}

#[tokio::test]
async fn a_batch_with_a_key_may_be_repeated() {
    let server = Server::file().await;
    let body = json!({"tasks": [{"type": KIND, "payload": 1}, {"type": KIND, "payload": 1}]});
    let send = async |body: &Value| keyed(&server, "import 7", body).await;
    let first = send(&body).await.expect(201);
    assert_ne!(first[0]["id"], first[1]["id"]);
    let again = send(&body).await.expect(200);
    assert_eq!((&again[0]["id"], &again[1]["id"]), (&first[0]["id"], &first[1]["id"]));
    let before = server.written().await;
    let changed = json!({"tasks": [{"type": KIND, "payload": 1}, {"type": KIND, "payload": 2}]});
    send(&changed).await.problem(422, "idempotency_key_reused");
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn the_key_of_a_batch_leaves_room_for_the_places() {
    let server = Server::file().await;
    keyed(&server, &"k".repeat(249), &batch(3)).await.expect(201);
    let before = server.written().await;
    for key in ["", " ", &"k".repeat(250)] {
        let problem = keyed(&server, key, &batch(3)).await.problem(422, "invalid_request");
        assert!(problem["detail"].as_str().unwrap().contains("1 to 249"), "{problem}");
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn one_wrong_request_makes_none() {
    let server = Server::file().await;
    let before = server.written().await;
    for (wrong, code) in [
        (json!({"type": "nobody-knows"}), "unknown_task_type"),
        (json!({"type": KIND, "max_retries": -1}), "invalid_request"),
        (json!({"type": KIND, "colour": "red"}), "invalid_request"),
    ] {
        let body = json!({"tasks": [{"type": KIND}, wrong, {"type": KIND}]});
        server.post("/tasks:batch", &body).await.problem(422, code);
    }
    server.post("/tasks:batch", &json!({"tasks": []})).await.problem(422, "invalid_request");
    server.post("/tasks:batch", &batch(10_001)).await.problem(422, "invalid_request");
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn a_batch_may_be_larger_than_one_task_may() {
    let server = Server::file().await;
    let text = "x".repeat(1 << 20);
    let tasks: Vec<Value> = (0..6).map(|_| json!({"type": KIND, "payload": text})).collect();
    server.post("/tasks:batch", &json!({ "tasks": tasks })).await.expect(201);
    let before = server.written().await;
    let body = vec![b' '; (64 << 20) + 1];
    let request = server.request(Method::POST, "/tasks:batch");
    let request = request.header("content-type", "application/json").body(body);
    server.send(request).await.problem(413, "body_too_large");
    assert_eq!(server.written().await, before);
}
