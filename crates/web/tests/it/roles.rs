//! The table of routes and roles, walked: each line by each kind of caller.

use jiff::SignedDuration;
use lavra_web::access::Role;
use lavra_web::access::roles::{Need, ROUTES};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Client, Place, Server, on_each_engine};

on_each_engine!(every_route_opens_to_whom_the_table_says_and_to_nobody_else);

/// A name that is the server's and not the loopback's.
const OUTSIDE: &str = "lavra.example";

fn ask(client: &Client, method: &str, path: &str) -> RequestBuilder {
    let path = path
        .replace("{id}", "0193a1b2-0000-7000-8000-000000000001")
        .replace("{name}", "nightly")
        .replace("{source}", "pncp")
        .replace("{task_id}", "contratos_publicacao_2024-01-01")
        .replace("{kind}", "workers");
    let request = client.request(method.parse::<Method>().unwrap(), &path).header("Host", OUTSIDE);
    if method == "GET" || method == "DELETE" { request } else { request.json(&json!({})) }
}

/// The status, and the code of a problem; a stream is not waited for.
async fn answer(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type");
    if kind.is_none_or(|kind| kind != "application/problem+json") {
        return (status, String::new());
    }
    let problem: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (status, problem["code"].as_str().unwrap().to_owned())
}

async fn every_route_opens_to_whom_the_table_says_and_to_nobody_else(place: Place) {
    let server = Server::shaped(place, |mut app| {
        app.hosts.push(OUTSIDE.into());
        app
    })
    .await;
    let mut keys = Vec::new();
    for role in Role::ALL {
        keys.push((role, server.make_key(role).await.1));
    }
    let (id, revoked) = server.make_key(Role::Admin).await;
    server.delete(&format!("/keys/{id}")).await.expect(200);
    let hour = SignedDuration::from_hours(1);
    let expired = server.key_of_the_past("expired1", Role::Admin, hour).await;
    let wrong = keys[0].1.chars().rev().collect::<String>();

    let unauthenticated = (401, "unauthenticated".to_owned());
    for (place, (method, path, need)) in ROUTES.iter().enumerate() {
        let line = format!("{method} {path}");
        let nobody = answer(ask(&server, method, path)).await;
        if *need == Need::Open {
            assert!(nobody.0 < 300, "{line} is open: {nobody:?}");
        } else {
            assert_eq!(nobody, unauthenticated, "{line} by nobody");
        }
        // Each from an address of its own and for another key, or there would be too many.
        let elsewhere = server.at_address([127, 0, 1, place as u8]);
        let unknown = format!("lavra_absen{place:0>3}_{}", "z".repeat(52));
        for key in [&wrong, &unknown, &revoked, &expired] {
            let found = answer(ask(&elsewhere, method, path).bearer_auth(key)).await;
            if *need == Need::Open {
                assert!(found.0 < 300, "{line} is open: {found:?}");
            } else {
                assert_eq!(found, unauthenticated, "{line} with {key}");
            }
        }
        for (role, key) in &keys {
            let found = answer(ask(&server, method, path).bearer_auth(key)).await;
            let may = match need {
                Need::Open | Need::Known => true,
                Need::Least(least) => role.includes(*least),
            };
            if may {
                assert!(found.0 < 500, "{line} by {role}: {found:?}");
                let is_through = !["unauthenticated", "role_needed", "no_such_route"]
                    .contains(&found.1.as_str())
                    && found.0 != 405;
                assert!(is_through, "{line} by {role}: {found:?}");
            } else {
                assert_eq!(found, (403, "role_needed".to_owned()), "{line} by {role}");
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_names_the_role_that_is_needed() {
    let server = Server::file().await;
    let (_, viewer) = server.make_key(Role::Viewer).await;
    let request = server.request(Method::POST, "/tasks").bearer_auth(&viewer);
    let problem = server.send(request.json(&json!({}))).await.problem(403, "role_needed");
    assert_eq!((&problem["needed"], &problem["role"]), (&json!("operator"), &json!("viewer")));
    assert!(problem["detail"].as_str().unwrap().contains("operator"), "{problem}");
}

#[tokio::test]
async fn what_is_not_there_is_told_only_to_those_who_are_known() {
    let server = Server::shaped(Place::file(), |mut app| {
        app.require_key = true;
        app
    })
    .await;
    for path in ["/nothing", "/ui/nothing", "/tasks/1/~cancel", "/"] {
        server.get(path).await.problem(401, "unauthenticated");
    }
    server.send(server.request(Method::PATCH, "/tasks")).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_method_that_a_path_has_not_is_said_with_those_it_has() {
    let server = Server::file().await;
    for (path, allow) in [("/tasks", "GET,HEAD,POST"), ("/keys/x", "DELETE")] {
        let reply = server.send(server.request(Method::PATCH, path)).await;
        reply.problem(405, "method_not_allowed");
        assert_eq!(reply.header("allow"), Some(allow));
    }
    let head = server.send(server.request(Method::HEAD, "/tasks")).await;
    assert_eq!(head.status, 200);
}
