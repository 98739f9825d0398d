//! POST /sql.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use lavra_db::{Database, lock_holder};
use lavra_web::access::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::server::{KIND, app, open, settings};
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(a_select_is_answered_and_nothing_else);

async fn a_select_is_answered_and_nothing_else(place: Place) {
    let (database, tasks) = open(&place, settings()).await;
    let router = lavra_web::router(app(tasks.clone(), database));
    let post = async |path: &str, body: Value| {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(Body::from(body.to_string())).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    post("/tasks", json!({"type": KIND})).await;
    let select = "SELECT status, count(*) AS n FROM kodus_workflow.tasks GROUP BY status";
    let expected =
        json!({"columns": ["status", "n"], "rows": [["PENDING", 1]], "truncated": false});
    assert_eq!(post("/sql", json!({ "query": select })).await, (200, expected.clone()));
    let many = json!({"query": "SELECT 1 AS n UNION ALL SELECT 2", "limit": 1});
    assert_eq!(post("/sql", many).await.1["truncated"], true);
    for query in [
        "",
        "DELETE FROM kodus_workflow.tasks",
        "SELECT 1; DELETE FROM kodus_workflow.tasks",
        "UPDATE kodus_workflow.tasks SET state = 'x' RETURNING id",
        "SELECT * FROM nowhere",
        "SELEC 1",
    ] {
        let (status, problem) = post("/sql", json!({ "query": query })).await;
        assert_eq!((status, &problem["code"]), (422, &json!("invalid_request")), "{query}");
    }
    for limit in [0, 100_001] {
        assert_eq!(post("/sql", json!({"query": "SELECT 1", "limit": limit})).await.0, 422);
    }
    assert_eq!(post("/sql", json!({ "query": select })).await, (200, expected));
}

#[tokio::test]
async fn through_a_socket_only_the_one_who_runs_the_server_may_ask() {
    let server = Server::file().await;
    let Database::Duck(duck) = &server.database else { unreachable!() };
    let token = lock_holder(duck.path()).unwrap().unwrap().token.unwrap();
    // A file that the server can read and a stranger should not.
    let query = json!({"query": "SELECT length(content) AS n FROM read_text('/etc/hostname')"});
    let post = || server.request(Method::POST, "/sql").json(&query);
    server.send(post()).await.problem(403, "not_allowed");
    for wrong in [
        "Bearer",
        "Bearer ",
        "Bearer x",
        &format!("bearer{token}"),
        &token,
        &format!("Bearer {token}0"),
    ] {
        let reply = server.send(post().header("Authorization", wrong)).await;
        assert!(!reply.problem(401, "unauthenticated").to_string().contains(&token), "{wrong}");
    }
    server.send(post().bearer_auth(&token)).await.expect(200);
    let (_, admin) = server.make_key(Role::Admin).await;
    server.send(post().bearer_auth(admin)).await.problem(403, "not_allowed");
}

#[tokio::test]
async fn postgres_is_not_asked_through_a_socket() {
    let server = Server::on(Place::server().await).await;
    let post = || server.request(Method::POST, "/sql").json(&json!({"query": "SELECT 1"}));
    server.send(post()).await.problem(403, "not_allowed");
    server.send(post().bearer_auth("x")).await.problem(401, "unauthenticated");
    let (_, admin) = server.make_key(Role::Admin).await;
    server.send(post().bearer_auth(admin)).await.problem(403, "not_allowed");
}
