//! Keys over HTTP: made, listed, used, revoked.

use jiff::Timestamp;
use lavra_web::access::Role;
use reqwest::Method;
use serde_json::json;

use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    a_key_is_shown_once_and_stored_as_a_hash,
    a_revoked_key_opens_nothing_and_stays_in_the_list,
    an_expired_key_opens_nothing,
    when_a_key_was_used_is_known_to_the_minute,
    what_is_no_order_for_a_key_is_refused,
);

async fn a_key_is_shown_once_and_stored_as_a_hash(place: Place) {
    let server = Server::on(place).await;
    let order = json!({"name": "grafana", "role": "viewer", "expires_in_seconds": 3600});
    let made = server.post("/keys", &order).await.expect(201);
    let key = made["key"].as_str().unwrap();
    let (id, secret) = key.strip_prefix("lavra_").unwrap().split_once('_').unwrap();
    assert_eq!(made["id"], id);
    assert_eq!((&made["role"], &made["standing"]), (&json!("viewer"), &json!("valid")));
    let time = |name: &str| made[name].as_str().unwrap().parse::<Timestamp>().unwrap();
    let life = time("expires_at").duration_since(time("created_at"));
    assert_eq!(life.as_secs(), 3600);

    let list = server.get("/keys").await;
    assert_eq!(list.expect(200)["items"][0]["name"], "grafana");
    assert!(!list.text.contains(secret) && !list.text.contains("hash"), "{list:?}");
    let stored = server.database.ask("SELECT * FROM lavra.api_keys", 10).await.unwrap();
    let stored = json!(stored.rows).to_string();
    assert!(stored.contains(id) && !stored.contains(secret), "{stored}");
}

async fn a_revoked_key_opens_nothing_and_stays_in_the_list(place: Place) {
    let server = Server::on(place).await;
    let (id, key) = server.make_key(Role::Operator).await;
    let ask = || server.send(server.request(Method::GET, "/tasks").bearer_auth(&key));
    ask().await.expect(200);
    let revoked = server.delete(&format!("/keys/{id}")).await.expect(200);
    assert_eq!(revoked["standing"], "revoked");
    let refused = ask().await.problem(401, "unauthenticated");
    assert!(refused["detail"].as_str().unwrap().contains("revoked"), "{refused}");
    assert_eq!(server.delete(&format!("/keys/{id}")).await.expect(200), revoked);
    let list = server.get("/keys").await.expect(200);
    assert_eq!(list["items"][0]["revoked_at"], revoked["revoked_at"]);
    server.delete("/keys/nobody00").await.problem(404, "key_not_found");
}

async fn an_expired_key_opens_nothing(place: Place) {
    let server = Server::on(place).await;
    let second = jiff::SignedDuration::from_secs(1);
    let key = server.key_of_the_past("expired1", Role::Admin, second).await;
    let reply = server.send(server.request(Method::GET, "/tasks").bearer_auth(key)).await;
    let refused = reply.problem(401, "unauthenticated");
    assert!(refused["detail"].as_str().unwrap().contains("expired"), "{refused}");
    assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"lavra\""));
    assert_eq!(server.get("/keys").await.expect(200)["items"][0]["standing"], "expired");
}

async fn when_a_key_was_used_is_known_to_the_minute(place: Place) {
    let server = Server::on(place).await;
    let (_, key) = server.make_key(Role::Viewer).await;
    let used = async || server.get("/keys").await.expect(200)["items"][0]["last_used_at"].clone();
    let ask = || server.send(server.request(Method::GET, "/types").header("x-api-key", &key));
    assert_eq!(used().await, json!(null));
    ask().await.expect(200);
    let first = used().await;
    assert!(first.is_string());
    ask().await.expect(200);
    assert_eq!(used().await, first, "it was written again within the minute");
}

async fn what_is_no_order_for_a_key_is_refused(place: Place) {
    let server = Server::on(place).await;
    for order in [
        json!({}),
        json!({"name": "a"}),
        json!({"name": "a", "role": "root"}),
        json!({"name": "", "role": "viewer"}),
        json!({"name": " a", "role": "viewer"}),
        json!({"name": "a\nb", "role": "viewer"}),
        json!({"name": "a".repeat(101), "role": "viewer"}),
        json!({"name": "a", "role": "viewer", "expires_in_seconds": 0}),
        json!({"name": "a", "role": "viewer", "expires_in_seconds": i64::MAX}),
        json!({"name": "a", "role": "viewer", "key": "lavra_mine"}),
    ] {
        server.post("/keys", &order).await.problem(422, "invalid_request");
    }
    assert_eq!(server.get("/keys").await.expect(200)["items"], json!([]));
}
