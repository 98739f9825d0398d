//! Everything that a caller can get wrong: each has its code, and nothing is written.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(a_wrong_request_is_refused_with_its_reason, wrong_reports_are_refused);

async fn a_wrong_request_is_refused_with_its_reason(place: Place) {
    let server = Server::on(place).await;
    let before = server.written().await;
    let long = "x".repeat(9_000);
    for (body, says) in [
        (json!({"type": ""}), "is not a task type"),
        (json!({"type": "a b"}), "is not a task type"),
        (json!({"type": "a/../b"}), "is not a task type"),
        (json!({"type": "a\u{0}b"}), "is not a task type"),
        (json!({"type": 5}), "type: invalid type"),
        (json!({"type": null}), "type: invalid type"),
        (json!({"payload": {}}), "missing field `type`"),
        (json!({"type": KIND, "colour": "red"}), "unknown field `colour`"),
        (json!({"type": KIND, "priority": "high"}), "priority: invalid type"),
        (json!({"type": KIND, "priority": 40_000}), "priority: invalid value"),
        (json!({"type": KIND, "priority": 1.5}), "priority: invalid type"),
        (json!({"type": KIND, "metadata": []}), "must be a JSON object"),
        (json!({"type": KIND, "metadata": {"x": long}}), "bytes"),
        (json!({"type": KIND, "metadata": {"x": "\u{0}"}}), "U+0000"),
        (json!({"type": KIND, "payload": {"x": ["\u{0}"]}}), "U+0000"),
        (json!({"type": KIND, "payload": {"\u{0}": 1}}), "U+0000"),
        (json!({"type": KIND, "input_hash": "abc"}), "64 lower-case hexadecimal"),
        (json!({"type": KIND, "max_retries": -1}), "max_retries"),
        (json!({"type": KIND, "max_retries": 1001}), "max_retries"),
        (json!({"type": KIND, "delay_seconds": -1}), "delay_seconds"),
        (json!({"type": KIND, "delay_seconds": u64::MAX}), "delay_seconds"),
        (json!({"type": KIND, "idempotent": "yes"}), "idempotent: invalid type"),
        (json!([]), "expected a JSON object"),
        (json!("text"), "invalid type"),
        (json!(null), "invalid type"),
    ] {
        let problem = server.post("/tasks", &body).await.problem(422, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{body}: {detail}");
    }
    let problem =
        server.post("/tasks", &json!({"type": "x"})).await.problem(422, "unknown_task_type");
    assert!(problem["detail"].as_str().unwrap().contains("known: count"), "{problem}");
    assert_eq!(server.written().await, before);
}

fn raw(server: &Server, body: impl Into<reqwest::Body>) -> RequestBuilder {
    let request = server.request(Method::POST, "/tasks");
    request.header("content-type", "application/json").body(body)
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused_with_line_and_column() {
    let server = Server::file().await;
    let before = server.written().await;
    for (body, line, column) in [
        ("", 1, 0),
        ("{", 1, 1),
        ("{\n  \"type\": count\n}", 2, 11),
        ("{\"type\": \"count\"} {}", 1, 19),
        ("{\"type\": \"count\",}", 1, 18),
        ("not json", 1, 2),
        ("{\"type\": \"count\", \"payload\": 1e999}", 1, 34),
        ("{\"type\": \"\\ud800\"}", 1, 17),
    ] {
        let reply = server.send(raw(&server, body)).await;
        let problem = reply.problem(400, "malformed_json");
        assert_eq!(
            (&problem["line"], &problem["column"]),
            (&json!(line), &json!(column)),
            "{body}: {problem}"
        );
    }
    let deep = format!("{{\"type\": \"count\", \"payload\": {}", "[".repeat(200_000)).into_bytes();
    for body in [b"\xff\xfe".to_vec(), b"{\"type\": \"\xff\"}".to_vec(), vec![0; 100], deep] {
        server.send(raw(&server, body)).await.problem(400, "malformed_json");
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn another_content_type_is_refused() {
    let server = Server::file().await;
    let before = server.written().await;
    let body = json!({"type": KIND}).to_string();
    let post = || server.request(Method::POST, "/tasks").body(body.clone());
    server.send(post()).await.problem(415, "unsupported_media_type");
    for kind in ["text/plain", "application/x-www-form-urlencoded", "", "json", "application/jsonx"]
    {
        let request = post().header("content-type", kind);
        server.send(request).await.problem(415, "unsupported_media_type");
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn a_list_of_the_values_is_no_object_wherever_it_stands() {
    let server = Server::file().await;
    let before = server.written().await;
    let list = json!([KIND, {}, null, null, false, null, null, null]);
    let body = json!({"tasks": [{"type": KIND}, list.clone()]});
    for (path, body) in [("/tasks", list), ("/tasks:batch", body)] {
        let problem = server.post(path, &body).await.problem(422, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("expected a JSON object"), "{path}: {detail}");
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_and_its_sender_hears_why() {
    let server = Server::file().await;
    let fits = json!({"type": KIND, "payload": "x".repeat((4 << 20) - 100)});
    server.post("/tasks", &fits).await.expect(201);
    let before = server.written().await;
    for size in [(4 << 20) + 1, 5 << 20, 20 << 20] {
        let problem = server.send(raw(&server, vec![b' '; size])).await;
        assert_eq!(problem.problem(413, "body_too_large")["limit_bytes"], 4 << 20);
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn a_wrong_path_id_query_or_method_is_refused() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    let none = Uuid::new_v4();
    let before = server.written().await;
    let get = Method::GET;
    let post = Method::POST;
    for (method, path, status, code) in [
        (&get, "/nothing".to_owned(), 404, "no_such_route"),
        (&get, "/tasks/".to_owned(), 404, "no_such_route"),
        (&get, format!("/tasks/{id}/nothing"), 404, "no_such_route"),
        (&post, format!("/tasks/{id}:explode"), 404, "no_such_route"),
        (&post, format!("/tasks/{id}/~cancel"), 404, "no_such_route"),
        (&post, "/tasks:explode".to_owned(), 404, "no_such_route"),
        (&post, format!("/workers/{none}:explode"), 404, "no_such_route"),
        (&Method::PUT, "/tasks".to_owned(), 405, "method_not_allowed"),
        (&Method::DELETE, format!("/tasks/{id}"), 405, "method_not_allowed"),
        (&post, format!("/tasks/{id}"), 405, "method_not_allowed"),
        (&get, format!("/tasks/{id}:cancel"), 405, "method_not_allowed"),
        (&get, "/tasks:claim".to_owned(), 405, "method_not_allowed"),
        (&Method::OPTIONS, "/tasks".to_owned(), 405, "method_not_allowed"),
        (&Method::PATCH, "/schedules/a".to_owned(), 405, "method_not_allowed"),
        (&get, "/tasks/17".to_owned(), 400, "bad_id"),
        (&get, "/tasks/%ff".to_owned(), 400, "bad_id"),
        (&get, "/tasks/..%2f..%2fetc".to_owned(), 400, "bad_id"),
        (&get, "/tasks/x/events".to_owned(), 400, "bad_id"),
        (&get, "/tasks/x/stream".to_owned(), 400, "bad_id"),
        (&post, "/tasks/x:cancel".to_owned(), 400, "bad_id"),
        (&post, "/tasks/x:y:cancel".to_owned(), 400, "bad_id"),
        (&post, "/workers/x:retire".to_owned(), 400, "bad_id"),
        (&post, "/dead-letters/x:redrive".to_owned(), 400, "bad_id"),
        (&Method::DELETE, "/dead-letters/x".to_owned(), 400, "bad_id"),
        (&get, format!("/tasks/{none}"), 404, "task_not_found"),
        (&get, format!("/tasks/{none}/input"), 404, "task_not_found"),
        (&get, format!("/tasks/{none}/events"), 404, "task_not_found"),
        (&get, format!("/tasks/{none}/result"), 404, "task_not_found"),
        (&get, format!("/tasks/{none}/stream"), 404, "task_not_found"),
        (&get, format!("/tasks/{id}/result"), 404, "result_not_found"),
        (&post, format!("/tasks/{none}:retry"), 404, "task_not_found"),
        (&post, format!("/tasks/{none}:cancel"), 404, "task_not_found"),
        (&post, format!("/dead-letters/{none}:redrive"), 404, "dead_letter_not_found"),
        (&Method::DELETE, format!("/dead-letters/{none}"), 404, "dead_letter_not_found"),
        (&Method::DELETE, "/schedules/none".to_owned(), 404, "schedule_not_found"),
    ] {
        let reply = server.send(server.request(method.clone(), &path)).await;
        assert_eq!(reply.status.as_u16(), status, "{method} {path}: {reply:?}");
        reply.problem(status, code);
        if status == 405 {
            assert!(
                reply.header("allow").is_some_and(|allow| !allow.is_empty()),
                "{method} {path}"
            );
        }
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn a_wrong_query_is_refused() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    for query in [
        "/tasks?limit=0".to_owned(),
        "/tasks?limit=501".to_owned(),
        "/tasks?limit=-1".to_owned(),
        "/tasks?limit=many".to_owned(),
        "/tasks?limit=99999999999999999999999".to_owned(),
        "/tasks?status=RUNNING".to_owned(),
        "/tasks?cursor=abc".to_owned(),
        "/tasks?created_after=yesterday".to_owned(),
        "/tasks?created_before=2026-13-01T00:00:00Z".to_owned(),
        "/tasks?colour=red".to_owned(),
        "/tasks?limit=1&limit=2".to_owned(),
        "/dead-letters?limit=501".to_owned(),
        "/dead-letters?cursor=x".to_owned(),
        format!("/tasks/{id}/events?limit=101"),
        format!("/tasks/{id}/stream?after=x"),
    ] {
        let reply = server.get(&query).await;
        assert_eq!(reply.status, 400, "{query}: {reply:?}");
        reply.problem(400, "bad_query");
    }
    for (path, name, value) in [
        (format!("/tasks/{id}/stream"), "Last-Event-ID", "x"),
        ("/events/stream".to_owned(), "Last-Event-ID", "17"),
    ] {
        let request = server.request(Method::GET, &path).header(name, value);
        server.send(request).await.problem(400, "bad_header");
    }
}

async fn wrong_reports_are_refused(place: Place) {
    let server = Server::on(place).await;
    server.create(KIND, &json!({})).await;
    let task = server.claim(Uuid::new_v4(), KIND).await;
    let worker = Uuid::new_v4();
    let before = server.written().await;
    for (verb, more) in [
        ("progress", json!({"progress": 101, "state": "x"})),
        ("progress", json!({"progress": -1, "state": "x"})),
        ("progress", json!({"progress": 1_000_000, "state": "x"})),
        ("progress", json!({"progress": 1.5, "state": "x"})),
        ("progress", json!({"progress": 1})),
        ("progress", json!({"progress": 1, "state": "x".repeat(501)})),
        ("progress", json!({"progress": 1, "state": "a\u{0}b"})),
        ("progress", json!({"progress": 1, "state": "a\nb"})),
        ("progress", json!({"progress": 1, "state": "x", "detail": {"a": ["\u{0}"]}})),
        ("progress", json!({"progress": 1, "state": "x", "detail": []})),
        ("progress", json!({"progress": 1, "state": "x", "detail": {"a": "x".repeat(70_000)}})),
        ("progress", json!({"progress": 1, "state": "x", "metadata": {"a": "x".repeat(9_000)}})),
        ("progress", json!({"progress": 1, "state": "x", "metadata": {"a": "\u{0}"}})),
        ("complete", json!({"result": "\u{0}"})),
        ("complete", json!({"outcome": 1})),
        ("fail", json!({})),
        ("fail", json!({"error": 5})),
        ("fail", json!({"error": "x", "retry_after_seconds": u64::MAX})),
        ("fail", json!({"error": "x", "retry_after_seconds": -1})),
        ("release", json!({"why": "x"})),
    ] {
        let reply = server.report(&task, verb, more.clone()).await;
        assert_eq!(reply.status, 422, "{verb} {more}: {reply:?}");
        reply.problem(422, "invalid_request");
    }
    for token in [json!(null), json!("1"), json!(1.5), json!([])] {
        let path = format!("/tasks/{}:release", task["id"].as_str().unwrap());
        server.post(&path, &json!({"token": token})).await.problem(422, "invalid_request");
    }
    for wish in [
        json!({"worker": "x", "types": [KIND]}),
        json!({"worker": worker}),
        json!({"worker": worker, "types": []}),
        json!({"worker": worker, "types": ["a b"]}),
        json!({"worker": worker, "types": [KIND], "limit": 0}),
        json!({"worker": worker, "types": [KIND], "limit": 101}),
        json!({"worker": worker, "types": [KIND], "wait_seconds": 31}),
        json!({"worker": worker, "types": [KIND], "name": "x".repeat(201)}),
        json!({"worker": worker, "types": [KIND], "name": "a\u{0}"}),
        json!({"worker": worker, "types": vec![KIND; 101]}),
    ] {
        let reply = server.post("/tasks:claim", &wish).await;
        assert_eq!(reply.status, 422, "{wish}: {reply:?}");
        reply.problem(422, "invalid_request");
    }
    for beat in [
        json!({}),
        json!({"held": [{"id": worker}]}),
        json!({"held": [[worker, 1]]}),
        json!({"held": [], "types": [""]}),
        json!({"held": [], "types": vec![KIND; 101]}),
    ] {
        let path = format!("/workers/{worker}:heartbeat");
        server.post(&path, &beat).await.problem(422, "invalid_request");
    }
    for which in [
        json!({}),
        json!({"ids": []}),
        json!({"ids": [worker], "type": KIND}),
        json!({"type": KIND, "limit": 0}),
        json!({"type": KIND, "limit": 1001}),
        json!({"limit": 5}),
        json!({"ids": vec![worker; 1001]}),
    ] {
        server.post("/dead-letters:redrive", &which).await.problem(422, "invalid_request");
    }
    for (name, schedule, code) in [
        ("a", json!({"type": "nobody-knows", "cron": "* * * * *"}), "unknown_task_type"),
        ("a", json!({"type": KIND, "cron": "61 * * * *"}), "invalid_request"),
        ("a", json!({"type": KIND, "cron": "0 0 30 2 *"}), "invalid_request"),
        ("a", json!({"type": KIND, "cron": ""}), "invalid_request"),
        ("a", json!({"type": KIND}), "invalid_request"),
        ("a", json!({"type": KIND, "cron": "* * * * *", "payload": "\u{0}"}), "invalid_request"),
        ("a%20b", json!({"type": KIND, "cron": "* * * * *"}), "invalid_request"),
        ("a:b", json!({"type": KIND, "cron": "* * * * *"}), "invalid_request"),
    ] {
        let request = server.request(Method::PUT, &format!("/schedules/{name}")).json(&schedule);
        let reply = server.send(request).await;
        assert_eq!(reply.status, 422, "{name} {schedule}: {reply:?}");
        reply.problem(422, code);
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn wrong_keys_and_versions_are_refused() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    let before = server.written().await;
    for key in ["", "x".repeat(256).as_str(), "caf\u{e9}"] {
        let request =
            server.request(Method::POST, "/tasks").header("Idempotency-Key", key.as_bytes());
        let reply = server.send(request.json(&json!({"type": KIND}))).await;
        assert!([400, 422].contains(&reply.status.as_u16()), "{key}: {reply:?}");
    }
    for tag in ["x", "\"1", "W/\"0\"", "\"0\", \"1\"", ""] {
        let request = server.request(Method::POST, &format!("/tasks/{id}:cancel"));
        server.send(request.header("If-Match", tag)).await.problem(400, "bad_header");
    }
    assert_eq!(server.written().await, before);
}

#[tokio::test]
async fn random_bytes_on_any_path_never_break_the_server() {
    let server = Server::file().await;
    let paths = [
        "/tasks",
        "/tasks:batch",
        "/tasks:claim",
        "/dead-letters:redrive",
        "/schedules/a",
        "/tasks/0193a1b2-0000-7000-8000-000000000001:progress",
        "/workers/0193a1b2-0000-7000-8000-000000000001:heartbeat",
    ];
    for path in paths {
        for _ in 0..40 {
            let noise = Uuid::new_v4().as_bytes().repeat(3);
            let method = if path.starts_with("/schedules") { Method::PUT } else { Method::POST };
            let request = server.request(method, path).header("content-type", "application/json");
            let reply = server.send(request.body(noise)).await;
            assert!([400, 422].contains(&reply.status.as_u16()), "{path}: {reply:?}");
        }
    }
    let alive: Value = server.get("/healthz").await.expect(200);
    assert_eq!(alive["status"], "alive");
}
