//! Tasks that are made by the clock.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::server::KIND;
use crate::support::{Place, Reply, Server, on_each_engine};

on_each_engine!(a_schedule_is_stored_replaced_listed_and_removed);

async fn put(server: &Server, name: &str, body: &Value) -> Reply {
    server.send(server.request(Method::PUT, &format!("/schedules/{name}")).json(body)).await
}

async fn a_schedule_is_stored_replaced_listed_and_removed(place: Place) {
    let server = Server::on(place).await;
    let nightly = json!({"type": KIND, "cron": "17 3 * * *", "payload": {"to": 3}});
    let stored = put(&server, "nightly", &nightly).await.expect(201);
    assert_eq!((&stored["name"], &stored["enabled"]), (&json!("nightly"), &json!(true)));
    assert!(stored["next_at"].as_str().unwrap().ends_with("T03:17:00Z"), "{stored}");
    let hourly = json!({"type": KIND, "cron": "5 * * * *"});
    assert_eq!(put(&server, "nightly", &hourly).await.expect(200)["payload"], json!({}));
    put(&server, "another", &nightly).await.expect(201);

    let list = server.get("/schedules").await.expect(200);
    let brief: Vec<(&str, &str)> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["name"].as_str().unwrap(), item["cron"].as_str().unwrap()))
        .collect();
    assert_eq!(brief, [("another", "17 3 * * *"), ("nightly", "5 * * * *")]);
    server.delete("/schedules/nightly").await.expect(204);
    server.delete("/schedules/nightly").await.problem(404, "schedule_not_found");
}

#[tokio::test]
async fn a_type_that_another_process_made_known_can_be_scheduled() {
    let server = Server::file().await;
    server.tasks.store().declare(vec!["elsewhere".into()]).await.unwrap();
    let body = json!({"type": "elsewhere", "cron": "* * * * *"});
    put(&server, "mine", &body).await.expect(201);
}
