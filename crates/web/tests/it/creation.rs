//! POST /tasks.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::server::KIND;
use crate::support::{Place, Reply, Server, on_each_engine};

on_each_engine!(a_new_task_is_answered_with_its_place_and_version, a_key_makes_one_task);

async fn a_new_task_is_answered_with_its_place_and_version(place: Place) {
    let server = Server::on(place).await;
    let request = json!({
        "type": KIND,
        "payload": {"to": 3, "text": "ação — 数 🦆"},
        "priority": 7,
        "metadata": {"tenant": "acme"},
        "max_retries": 5,
        "delay_seconds": 60,
    });
    let reply = server.post("/tasks", &request).await;
    let task = reply.expect(201);
    let id = task["id"].as_str().unwrap();
    assert_eq!(reply.header("location"), Some(format!("/tasks/{id}").as_str()));
    assert_eq!(reply.header("etag"), Some("\"0\""));
    assert_eq!(task["status"], "PENDING");
    assert_eq!(task["state"], "Queued");
    assert_eq!(task["progress"], 0);
    assert_eq!(task["version"], 0);
    for name in ["type", "priority", "metadata", "max_retries"] {
        assert_eq!(task[name], request[name], "{name}");
    }
    assert!(task["run_at"].as_str().is_some());
    assert!(task.get("token").is_none(), "the token is its worker's alone");
    let input = server.get(&format!("/tasks/{id}/input")).await.expect(200);
    assert_eq!(input, json!({"task_id": id, "payload": request["payload"]}));
}

async fn keyed(server: &Server, key: &str, body: &Value) -> Reply {
    let request = server.request(Method::POST, "/tasks").header("Idempotency-Key", key).json(body);
    server.send(request).await
}

async fn a_key_makes_one_task(place: Place) {
    let server = Server::on(place).await;
    let body = json!({"type": KIND, "payload": {"n": 1}});
    let first = keyed(&server, "order 4711", &body).await.expect(201);
    let again = keyed(&server, "order 4711", &body).await;
    assert_eq!(again.expect(200)["id"], first["id"]);
    assert_eq!(
        again.header("location"),
        Some(format!("/tasks/{}", first["id"].as_str().unwrap()).as_str())
    );
    let other = keyed(&server, "order 4712", &body).await.expect(201);
    assert_ne!(other["id"], first["id"]);

    let before = server.written().await;
    let changed = json!({"type": KIND, "payload": {"n": 2}});
    keyed(&server, "order 4711", &changed).await.problem(422, "idempotency_key_reused");
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn the_same_key_at_the_same_time_makes_one_task() {
    let server = Server::file().await;
    let body = json!({"type": KIND, "payload": {"n": 1}});
    let all = (0..20).map(|_| keyed(&server, "once", &body));
    let replies = futures_util::future::join_all(all).await;
    let ids: std::collections::HashSet<String> =
        replies.iter().map(|reply| reply.json()["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
}

#[tokio::test]
async fn an_idempotent_request_is_answered_by_the_first_task_whatever_became_of_it() {
    let server = Server::file().await;
    let body = json!({"type": KIND, "payload": {"a": 1, "b": 2}, "idempotent": true});
    let first = server.post("/tasks", &body).await.expect(201);
    let id = first["id"].as_str().unwrap();
    server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    let turned = json!({"type": KIND, "payload": {"b": 2.0, "a": 1}, "idempotent": true});
    let again = server.post("/tasks", &turned).await;
    let task = again.expect(200);
    assert_eq!((&task["id"], &task["status"]), (&first["id"], &json!("CANCELLED")));
    assert_eq!(again.header("etag"), Some("\"1\""));
}

#[tokio::test]
async fn a_charset_and_a_json_suffix_are_json_too() {
    let server = Server::file().await;
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json"] {
        let request = server.request(Method::POST, "/tasks").header("content-type", kind);
        let request = request.body(json!({"type": KIND}).to_string());
        server.send(request).await.expect(201);
    }
}

#[tokio::test]
async fn the_router_answers_in_process_without_a_socket() {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    let place = Place::file();
    let (database, tasks) =
        crate::support::server::open(&place, crate::support::server::settings()).await;
    let router = lavra_web::router(crate::support::server::app(tasks, database));
    let call = async |method: &str, uri: String, body: String| {
        let request = Request::builder().method(method).uri(uri);
        let request = request.header("content-type", "application/json").body(Body::from(body));
        let answer = router.clone().oneshot(request.unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let (status, task) =
        call("POST", "/tasks".into(), json!({"type": KIND, "payload": {}}).to_string()).await;
    assert_eq!(status, 201);
    let id = task["id"].as_str().unwrap();
    let (status, task) = call("POST", format!("/tasks/{id}:cancel"), String::new()).await;
    assert_eq!((status, &task["status"]), (200, &json!("CANCELLED")));
}
