//! Who a caller is taken for.

use lavra_db::{Database, lock_holder};
use lavra_web::App;
use lavra_web::access::Role;
use reqwest::Method;
use serde_json::json;

use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(a_key_works_in_either_header_and_wins_over_the_place);

fn known_as(name: &'static str) -> impl FnOnce(App) -> App {
    move |mut app| {
        app.hosts.push(name.into());
        app
    }
}

async fn a_key_works_in_either_header_and_wins_over_the_place(place: Place) {
    let server = Server::on(place).await;
    let (_, viewer) = server.make_key(Role::Viewer).await;
    let get = || server.request(Method::GET, "/tasks");
    let post = || server.request(Method::POST, "/tasks").json(&json!({"type": KIND}));
    server.send(get().bearer_auth(&viewer)).await.expect(200);
    server.send(get().header("x-api-key", &viewer)).await.expect(200);
    server.send(get().header("authorization", format!("bearer {viewer}"))).await.expect(200);
    // Without it this machine may do everything; with it, only what it opens.
    server.send(post()).await.expect(201);
    server.send(post().bearer_auth(&viewer)).await.problem(403, "role_needed");
    server.send(post().header("x-api-key", &viewer)).await.problem(403, "role_needed");
    for wrong in [
        get().header("authorization", &viewer),
        get().header("authorization", "Basic YTpi"),
        get().header("x-api-key", ""),
        get().bearer_auth("lavra_"),
    ] {
        server.send(wrong).await.problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn who_speaks_for_others_is_no_visitor_of_this_machine() {
    let server = Server::shaped(Place::file(), known_as("lavra.example")).await;
    server.get("/tasks").await.expect(200);
    let get = || server.request(Method::GET, "/tasks");
    for (name, value) in [
        ("Host", "lavra.example"),
        ("Forwarded", "for=192.0.2.1"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Real-IP", "192.0.2.1"),
        ("Via", "1.1 proxy"),
    ] {
        let reply = server.send(get().header(name, value)).await;
        reply.problem(401, "unauthenticated");
    }
    let reply = server.send(get().header("Host", "other.example")).await;
    reply.problem(421, "wrong_host");
}

#[tokio::test]
async fn where_a_key_is_required_this_machine_needs_one_too() {
    let server = Server::shaped(Place::file(), |app| App { require_key: true, ..app }).await;
    server.get("/tasks").await.problem(401, "unauthenticated");
    let Database::Duck(duck) = &server.database else { unreachable!() };
    let token = lock_holder(duck.path()).unwrap().unwrap().token.unwrap();
    let get = || server.request(Method::GET, "/tasks");
    server.send(get().bearer_auth(&token)).await.expect(200);
    server.send(get().header("x-api-key", &token)).await.problem(401, "unauthenticated");
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn readiness_tells_its_reasons_to_those_who_are_known() {
    let server = Server::shaped(Place::file(), known_as("lavra.example")).await;
    let here = server.get("/readyz").await.expect(200);
    assert_eq!((&here["status"], &here["database"]), (&json!("ready"), &json!("duckdb")));
    let outside = server.request(Method::GET, "/readyz").header("Host", "lavra.example");
    assert_eq!(server.send(outside).await.expect(200), json!({"status": "ready"}));

    let server = Server::shaped(Place::file(), |app| App { require_key: true, ..app }).await;
    assert_eq!(server.get("/readyz").await.expect(200), json!({"status": "ready"}));
    let with = |key: &str| server.request(Method::GET, "/readyz").bearer_auth(key);
    let wrong = server.send(with("lavra_wrong")).await.expect(200);
    assert_eq!(wrong, json!({"status": "ready"}));
    let viewer = server.put_key(Role::Viewer).await;
    assert_eq!(server.send(with(&viewer)).await.expect(200)["database"], "duckdb");
}

#[tokio::test]
async fn the_name_of_the_public_address_is_the_server_s() {
    let server = Server::shaped(Place::file(), |app| App {
        public_url: Some("https://lavra.example".parse().unwrap()),
        ..app
    })
    .await;
    let (_, key) = server.make_key(Role::Operator).await;
    let post = server.request(Method::POST, "/tasks").header("Host", "lavra.example");
    let post = post.header("Origin", "https://lavra.example").bearer_auth(key);
    server.send(post.json(&json!({"type": KIND}))).await.expect(201);
}
