//! Creations with an `Idempotency-Key`: carried out once, answered the same way ever after.

use lavra_web::access::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::server::KIND;
use crate::support::{Place, Reply, Server, on_each_engine};

on_each_engine!(
    a_creation_that_is_repeated_with_its_key_is_answered_as_the_first_time,
    a_key_belongs_to_one_request,
    a_refusal_leaves_the_key_free,
    the_same_key_of_another_caller_is_another_request,
);

async fn keyed(server: &Server, path: &str, key: &str, body: &Value) -> Reply {
    let request = server.request(Method::POST, path).header("Idempotency-Key", key);
    server.send(request.json(body)).await
}

async fn count(server: &Server, path: &str) -> usize {
    server.get(path).await.expect(200)["items"].as_array().unwrap().len()
}

async fn a_creation_that_is_repeated_with_its_key_is_answered_as_the_first_time(place: Place) {
    let server = Server::on(place).await;
    let range = json!({
        "from": "2025-01-01", "to": "2025-01-03", "media_types": ["all"], "languages": [["pt"]],
    });
    let made = keyed(&server, "/missions", "range", &range).await.expect(201);
    assert_eq!(keyed(&server, "/missions", "range", &range).await.expect(200), made);
    let id = made["added"][0].as_str().unwrap();
    let copy = format!("/missions/{id}:copy");
    let first = keyed(&server, &copy, "copy", &json!({ "queue": true })).await;
    let again = keyed(&server, &copy, "copy", &json!({ "queue": true })).await;
    assert_eq!(again.expect(200), first.expect(201));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.header("content-type"), Some("application/json"));
    assert_eq!(count(&server, "/missions").await, 4);
    keyed(&server, &copy, "another copy", &json!({ "queue": true })).await.expect(201);
    assert_eq!(count(&server, "/missions").await, 5);

    let worker = json!({ "name": "w", "url": "http://127.0.0.1:1", "api_key": "MARKER-KEY" });
    let first = keyed(&server, "/fleet/workers", "worker", &worker).await.expect(201);
    assert_eq!(keyed(&server, "/fleet/workers", "worker", &worker).await.expect(200), first);
    keyed(&server, "/fleet/workers", "again", &worker).await.problem(409, "fleet_conflict");
    assert_eq!(count(&server, "/fleet/workers").await, 1);
    let kept = "SELECT concat(key, fingerprint, answer) AS kept FROM lavra.idempotency_keys";
    let kept = server.database.ask(kept, 100).await.unwrap();
    assert!(!json!(kept.rows).to_string().contains("MARKER"), "no secret is kept with a key");
}

async fn a_key_belongs_to_one_request(place: Place) {
    let server = Server::on(place).await;
    let proxy = |name: &str| json!({ "name": name, "host": "10.0.0.1" });
    keyed(&server, "/fleet/proxies", "one", &proxy("a")).await.expect(201);
    let other = keyed(&server, "/fleet/proxies", "one", &proxy("b")).await;
    other.problem(422, "idempotency_key_reused");
    let elsewhere = keyed(&server, "/missions", "one", &proxy("a")).await;
    elsewhere.problem(422, "idempotency_key_reused");
    assert_eq!(count(&server, "/fleet/proxies").await, 1);
    for wrong in ["", "é", &"x".repeat(256)] {
        let refused = keyed(&server, "/fleet/proxies", wrong, &proxy("c")).await;
        assert!(refused.status.is_client_error(), "{wrong:?}: {refused:?}");
    }
    assert_eq!(count(&server, "/fleet/proxies").await, 1);
}

async fn a_refusal_leaves_the_key_free(place: Place) {
    let server = Server::on(place).await;
    let wrong = json!({ "name": "a", "host": "10.0.0.1", "port": 70_000 });
    keyed(&server, "/fleet/proxies", "one", &wrong).await.problem(422, "invalid_request");
    let right = json!({ "name": "a", "host": "10.0.0.1", "port": 7000 });
    keyed(&server, "/fleet/proxies", "one", &right).await.expect(201);
}

async fn the_same_key_of_another_caller_is_another_request(place: Place) {
    let server = Server::on(place).await;
    let (_, ana) = server.make_key(Role::Admin).await;
    let (_, rui) = server.make_key(Role::Admin).await;
    let call = async |who: &str, path: &str, body: Value| {
        let request = server.request(Method::POST, path).header("Idempotency-Key", "one");
        let request = if who.is_empty() { request } else { request.bearer_auth(who) };
        server.send(request.json(&body)).await
    };
    let proxy = |name: &str| json!({ "name": name, "host": "10.0.0.1" });
    let task = |of: &str| json!({ "type": KIND, "payload": { "of": of } });
    for (who, name) in [(ana.as_str(), "ana"), (rui.as_str(), "rui"), ("", "nobody")] {
        let made = call(who, "/fleet/proxies", proxy(name)).await.expect(201);
        assert_eq!(made["name"], name, "not what another one made");
        assert_eq!(call(who, "/fleet/proxies", proxy(name)).await.expect(200), made);
        let other = call(who, "/fleet/proxies", proxy("other")).await;
        let refused = other.problem(422, "idempotency_key_reused");
        assert!(refused["detail"].as_str().unwrap().contains("\"one\" was used"), "{refused}");

        let made = call(who, "/tasks", task(name)).await.expect(201);
        assert_eq!(call(who, "/tasks", task(name)).await.expect(200)["id"], made["id"]);
        let other = call(who, "/tasks", task("other")).await;
        let refused = other.problem(422, "idempotency_key_reused");
        assert!(refused["detail"].as_str().unwrap().contains("\"one\" was used"), "{refused}");

        let batch = json!({ "tasks": [task(name), task("all")] });
        let made = call(who, "/tasks:batch", batch.clone()).await.expect(201);
        let again = call(who, "/tasks:batch", batch).await.expect(200);
        assert_eq!(again[1]["id"], made[1]["id"]);
    }
    assert_eq!(count(&server, "/fleet/proxies").await, 3);
    assert_eq!(count(&server, "/tasks").await, 9);
}
