//! POST /tasks:batch.

use std::collections::HashSet;

use lavra_tasks::{Policy, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::server::{KIND, settings};
use crate::support::{Place, Reply, Server, on_each_engine};

on_each_engine!(
    a_refusal_names_the_request_it_is_about,
    the_first_request_with_a_used_key_is_named
);

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
    for key in ["", " ", "a\tb", &"k".repeat(250)] {
        let problem = keyed(&server, key, &batch(3)).await.problem(422, "invalid_request");
        assert!(problem["detail"].as_str().unwrap().contains("1 to 249"), "{problem}");
        assert!(problem.get("index").is_none(), "{problem}");
    }
    assert_eq!(server.written().await, before);
}

/// A batch with `wrong` at the third place.
fn with(wrong: &Value) -> Value {
    json!({"tasks": [{"type": KIND}, {"type": KIND}, wrong, {"type": KIND}]})
}

async fn a_refusal_names_the_request_it_is_about(place: Place) {
    let never_twice = Policy { may_be_idempotent: false, ..Policy::default() };
    let policies = [("sweep".to_owned(), never_twice)].into();
    let server = Server::with(place, Settings { policies, ..settings() }).await;
    let before = server.written().await;
    let unknown = server.post("/tasks:batch", &with(&json!({"type": "nobody-knows"}))).await;
    let unknown = unknown.problem(422, "unknown_task_type");
    let mut problems = vec![unknown];
    for wrong in [
        json!({"type": "a b"}),
        json!({"type": 5}),
        json!({}),
        json!(null),
        json!([KIND]),
        json!({"type": KIND, "colour": "red"}),
        json!({"type": KIND, "priority": 40_000}),
        json!({"type": KIND, "payload": ["\u{0}"]}),
        json!({"type": KIND, "metadata": []}),
        json!({"type": KIND, "metadata": {"x": "x".repeat(9_000)}}),
        json!({"type": KIND, "metadata": {"x": "\u{0}"}}),
        json!({"type": KIND, "input_hash": "abc"}),
        json!({"type": KIND, "max_retries": -1}),
        json!({"type": KIND, "delay_seconds": 99_999_999}),
        json!({"type": KIND, "idempotent": "yes"}),
        json!({"type": "sweep", "idempotent": true}),
    ] {
        let reply = server.post("/tasks:batch", &with(&wrong)).await;
        problems.push(reply.problem(422, "invalid_request"));
    }
    for problem in problems {
        assert_eq!(problem["index"], 2, "{problem}");
        assert!(problem["detail"].as_str().unwrap().starts_with("tasks[2]"), "{problem}");
    }
    // Where no single request is wrong, none is named; nor is the only one that there is.
    for body in [json!({"tasks": []}), batch(10_001), json!({"tasks": 1})] {
        let problem = server.post("/tasks:batch", &body).await.problem(422, "invalid_request");
        assert!(problem.get("index").is_none(), "{problem}");
    }
    for alone in [json!({"type": KIND, "input_hash": "abc"}), json!({"type": 5})] {
        let problem = server.post("/tasks", &alone).await.problem(422, "invalid_request");
        assert!(problem.get("index").is_none(), "{problem}");
    }
    assert_eq!(server.written().await, before);
}

async fn the_first_request_with_a_used_key_is_named(place: Place) {
    let server = Server::on(place).await;
    keyed(&server, "import 7", &batch(50)).await.expect(201);
    let before = server.written().await;
    let mut changed = batch(50);
    for place in [11, 23, 42] {
        changed["tasks"][place]["payload"] = json!("another");
    }
    let problem = keyed(&server, "import 7", &changed).await.problem(422, "idempotency_key_reused");
    assert_eq!(problem["index"], 11, "{problem}");
    assert!(problem["detail"].as_str().unwrap().starts_with("tasks[11]: "), "{problem}");
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
