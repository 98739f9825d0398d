//! Webhooks over HTTP, on both engines.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::form_urlencoded::byte_serialize;

use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    a_webhook_is_added_shown_changed_tested_and_removed,
    a_wrong_webhook_is_refused_and_its_secrets_are_not_repeated,
);

/// A receiver that takes everything, and the events it took.
async fn receiver() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/MARKER-PATH?key=MARKER-QUERY", listener.local_addr().unwrap());
    let taken = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&taken);
    let take = move |headers: axum::http::HeaderMap| {
        let event = headers["lavra-event"].to_str().unwrap().to_owned();
        events.lock().unwrap().push(event);
        async { StatusCode::ACCEPTED }
    };
    let router = Router::new().fallback(take);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, taken)
}

async fn a_webhook_is_added_shown_changed_tested_and_removed(place: Place) {
    let server = Server::on(place).await;
    let (url, taken) = receiver().await;
    let order = json!({ "name": "ops team", "url": url, "secret": "MARKER-SECRET-1234" });
    let added = server.post("/webhooks", &order).await.expect(201);
    assert_eq!(added["events"].as_array().unwrap().len(), 5);
    assert_eq!((&added["active"], &added["last_ok_at"]), (&json!(true), &json!(null)));
    server.post("/webhooks", &order).await.problem(409, "webhook_conflict");

    let name: String = byte_serialize(b"ops team").collect::<String>().replace('+', "%20");
    let id = added["id"].as_str().unwrap();
    let paths = [format!("/webhooks/{id}"), format!("/webhooks/{name}")];
    for path in &paths {
        assert_eq!(server.get(path).await.expect(200), added);
    }
    for path in &paths {
        let tested = server.ask(&format!("{path}:test")).await.expect(200);
        assert_eq!(tested, json!({ "ok": true, "said": "HTTP 202 Accepted" }));
    }
    assert_eq!(*taken.lock().unwrap(), ["ping", "ping"]);

    let changes = json!({ "events": ["extraction.short"], "active": false });
    let inactive = server.put(&format!("/webhooks/{id}"), &changes).await.expect(200);
    assert_eq!(
        (&inactive["events"], &inactive["active"]),
        (&json!(["extraction.short"]), &json!(false))
    );
    assert!(inactive["last_ok_at"].is_string());
    let list = server.get("/webhooks").await.expect(200);
    assert_eq!(list["items"], json!([inactive]));
    assert!(!list.to_string().contains("MARKER"), "{list}");

    server.delete(&format!("/webhooks/{name}")).await.expect(204);
    server.delete(&format!("/webhooks/{id}")).await.problem(404, "webhook_not_found");
    server.ask(&format!("/webhooks/{id}:test")).await.problem(404, "webhook_not_found");
    server.put(&format!("/webhooks/{id}"), &changes).await.problem(404, "webhook_not_found");
    assert_eq!(server.get("/webhooks").await.expect(200)["items"], json!([]));
}

async fn a_wrong_webhook_is_refused_and_its_secrets_are_not_repeated(place: Place) {
    let server = Server::on(place).await;
    let order = |changes: Value| {
        let mut order = json!({
            "name": "ops", "url": "https://example.com/MARKER", "secret": "MARKER-SECRET-1234",
        });
        order.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        order
    };
    for (changes, says) in [
        (json!({ "name": "a/b" }), "without / and :"),
        (json!({ "name": 5 }), "name: invalid type"),
        (json!({ "url": "example.com/MARKER" }), "no scheme"),
        (json!({ "url": "gopher://example.com/MARKER" }), "not http"),
        (json!({ "url": ["MARKER"] }), "url: invalid type"),
        (json!({ "secret": "MARKER" }), "16 to 200"),
        (json!({ "events": [] }), "at least one event"),
        (json!({ "events": ["mission.exploded"] }), "unknown variant `mission.exploded`"),
        (json!({ "colour": "red" }), "unknown field `colour`"),
    ] {
        let problem =
            server.post("/webhooks", &order(changes)).await.problem(422, "invalid_request");
        let text = problem.to_string();
        assert!(text.contains(says) && !text.contains("MARKER"), "{text}");
    }
    assert_eq!(server.get("/webhooks").await.expect(200)["items"], json!([]));
}
