//! The end of the server.

use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use crate::support::Server;
use crate::support::server::KIND;

#[tokio::test]
async fn streams_and_waiting_claims_end_with_the_server() {
    let server = Server::file().await;
    let id = server.create("count", &json!({})).await;
    let mut one = server.stream(&format!("/tasks/{id}/stream"), None).await;
    one.next().await.unwrap();
    let mut all = server.stream("/events/stream", None).await;
    all.any().await.unwrap();
    server.claim(Uuid::new_v4(), KIND).await;
    let client = server.client.clone();
    let claim = tokio::spawn(async move {
        let wish = json!({"worker": Uuid::new_v4(), "types": [KIND], "wait_seconds": 30});
        client.post("/tasks:claim", &wish).await.expect(200)
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let start = Instant::now();
    let place = server.end().await;
    assert_eq!(claim.await.unwrap(), json!({"tasks": []}));
    one.rest().await;
    all.rest().await;
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    // The file is free again.
    let server = Server::on(place).await;
    assert_eq!(server.task(&id).await["status"], "IN_PROGRESS");
}
