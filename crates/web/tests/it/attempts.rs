//! Wrong keys, too many of them.

use lavra_web::access::Role;
use reqwest::Method;

use crate::support::{Client, Reply, Server};

async fn with(client: &Client, key: &str) -> Reply {
    client.send(client.request(Method::GET, "/tasks").bearer_auth(key)).await
}

fn guess(number: usize) -> String {
    format!("lavra_abcdefg{}_{}", number % 10, "z".repeat(52))
}

#[tokio::test]
async fn after_ten_wrong_keys_an_address_waits_and_those_who_were_right_go_on() {
    let server = Server::file().await;
    let (_, right) = server.make_key(Role::Viewer).await;
    let (_, other) = server.make_key(Role::Viewer).await;
    with(&server, &right).await.expect(200);
    for number in 0..10 {
        with(&server, &guess(number)).await.problem(401, "unauthenticated");
    }
    let refused = with(&server, &guess(10)).await;
    refused.problem(429, "too_many_attempts");
    let seconds: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=6).contains(&seconds), "{seconds}");
    for _ in 0..20 {
        with(&server, &right).await.expect(200);
    }
    with(&server, &other).await.problem(429, "too_many_attempts");
    with(&server.at_address([127, 0, 0, 2]), &other).await.expect(200);
    with(&server, &other).await.expect(200);
    server.get("/tasks").await.expect(200);
}

#[tokio::test]
async fn guesses_at_one_key_are_counted_wherever_they_come_from() {
    let server = Server::file().await;
    let (_, right) = server.make_key(Role::Viewer).await;
    let (beginning, _) = right.rsplit_once('_').unwrap();
    let wrong = format!("{beginning}_{}", "z".repeat(52));
    for host in 1..=10 {
        let reply = with(&server.at_address([127, 0, 2, host]), &wrong).await;
        reply.problem(401, "unauthenticated");
    }
    let reply = with(&server.at_address([127, 0, 2, 11]), &wrong).await;
    reply.problem(429, "too_many_attempts");
    // Nobody is locked out by the guesses of others.
    with(&server.at_address([127, 0, 2, 12]), &right).await.expect(200);
}

#[tokio::test]
async fn right_keys_and_no_keys_cost_nothing() {
    let server = Server::file().await;
    let (_, right) = server.make_key(Role::Viewer).await;
    for _ in 0..30 {
        with(&server, &right).await.expect(200);
        server.get("/tasks").await.expect(200);
        let stale = server.request(Method::GET, "/tasks");
        let cookie = format!("lavra_session={}", "q".repeat(52));
        server.send(stale.header("Cookie", cookie)).await.problem(401, "unauthenticated");
    }
    with(&server, &guess(0)).await.problem(401, "unauthenticated");
}
