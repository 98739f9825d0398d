//! Who may speak to the server, and what browsers are told.

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::Server;
use crate::support::server::KIND;

#[tokio::test]
async fn only_its_own_names_reach_the_server() {
    let server = Server::file().await;
    let before = server.written().await;
    for host in ["evil.example", "localhost.evil.example:80", "127.0.0.1.nip.io", "a@localhost"] {
        for (method, path) in
            [(Method::GET, "/tasks"), (Method::POST, "/tasks"), (Method::GET, "/metrics")]
        {
            let request = server.request(method, path).header("Host", host);
            let reply = server.send(request.json(&json!({"type": KIND}))).await;
            reply.problem(421, "wrong_host");
        }
    }
    assert_eq!(server.written().await, before);
    for host in ["localhost", "LOCALHOST:9", "127.0.0.1:1", "[::1]", "[::1]:8080"] {
        server.send(server.request(Method::GET, "/healthz").header("Host", host)).await.expect(200);
    }
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let server = Server::file().await;
    let before = server.written().await;
    for origin in ["https://evil.example", "null", "http://localhost.evil.example", "file://"] {
        let request = server.request(Method::POST, "/tasks").header("Origin", origin);
        let reply = server.send(request.json(&json!({"type": KIND}))).await;
        reply.problem(403, "foreign_origin");
        let reading = server.request(Method::GET, "/tasks").header("Origin", origin);
        let reply = server.send(reading).await;
        reply.expect(200);
        assert!(reply.header("access-control-allow-origin").is_none(), "it could read that");
    }
    assert_eq!(server.written().await, before);
    for origin in ["http://localhost:3000", "http://127.0.0.1:8080", "https://[::1]"] {
        let request = server.request(Method::POST, "/tasks").header("Origin", origin);
        server.send(request.json(&json!({"type": KIND}))).await.expect(201);
    }
}

#[tokio::test]
async fn what_the_browser_says_of_the_asking_page_counts() {
    let server = Server::file().await;
    let asked_by = |site: &str| {
        let request = server.request(Method::POST, "/tasks").header("Sec-Fetch-Site", site);
        request.header("Origin", "http://127.0.0.1:3000").json(&json!({"type": KIND}))
    };
    let before = server.written().await;
    for site in ["cross-site", "same-site", "", "same-origin, cross-site"] {
        server.send(asked_by(site)).await.problem(403, "foreign_origin");
    }
    assert_eq!(server.written().await, before);
    for site in ["same-origin", "none"] {
        server.send(asked_by(site)).await.expect(201);
    }
}

/// What a client that writes its own lines gets back.
async fn by_hand(server: &Server, text: &str) -> String {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_request_without_a_name_or_with_two_is_refused() {
    let server = Server::file().await;
    for text in [
        "GET /tasks HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET /tasks HTTP/1.0\r\n\r\n",
        "GET /tasks HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        "GET http://evil.example/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ] {
        let answer = by_hand(&server, text).await;
        assert!(answer.contains(" 421 ") && answer.contains("wrong_host"), "{text}: {answer}");
    }
}

#[tokio::test]
async fn every_answer_carries_the_headers_of_safety() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    for path in [
        "/tasks".to_owned(),
        "/nothing".to_owned(),
        "/tasks/x".to_owned(),
        "/metrics".to_owned(),
        "/openapi.json".to_owned(),
        "/docs/errors".to_owned(),
        format!("/tasks/{id}/stream"),
        "/healthz".to_owned(),
    ] {
        let reply = server.get(&path).await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("referrer-policy", "same-origin"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{path}");
            assert_eq!(reply.headers.get_all(name).iter().count(), 1, "{path} {name}");
        }
    }
    let refused = server.request(Method::GET, "/tasks").header("Host", "evil.example");
    let refused = server.send(refused).await;
    assert_eq!(refused.header("x-content-type-options"), Some("nosniff"));
}
