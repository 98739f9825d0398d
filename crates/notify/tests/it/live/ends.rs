//! From what happens to what a receiver has.

use std::time::Duration;

use lavra_notify::Changes;
use lavra_notify::model::Topic;
use lavra_tasks::model::Status;
use serde_json::json;

use crate::support::{Receiver, Running, World, on_each_engine};

on_each_engine!(
    a_receiver_gets_a_signed_request_that_says_what_happened,
    a_webhook_that_is_gone_ends_what_waits_for_it,
    a_ping_is_sent_at_once_and_says_what_came_of_it,
);

async fn a_receiver_gets_a_signed_request_that_says_what_happened(world: World) {
    let receiver = Receiver::start(&[]).await;
    let webhook = world.webhook("ops", &receiver.url, &[]).await;
    let running = Running::start(&world);
    let mission = world.mission_fails().await;
    let delivery = world.delivered(1).await.remove(0);
    running.stop().await;

    let requests = receiver.requests();
    assert_eq!(requests.len(), 1);
    let request = &requests[0];
    assert!(request.is_signed, "{request:?}");
    assert_eq!(request.path, "/hooks/path-s3cret?token=query-s3cret");
    assert_eq!(request.header("content-type"), "application/json");
    assert_eq!(request.header("lavra-event"), "mission.failed");
    assert_eq!(request.header("lavra-delivery"), delivery.id.to_string());
    let sent: i64 = request.header("lavra-timestamp").parse().unwrap();
    assert!((world.tasks.now().as_second() - sent).abs() < 60);
    assert_eq!(request.body["type"], "mission.failed");
    assert_eq!(request.body["data"]["mission_id"], json!(mission));
    assert_eq!(request.body["data"]["error_code"], "ERROR203");
    let text = request.body["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("Mission {mission} failed: ERROR203")), "{text}");
    let keys: Vec<&String> = request.body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["created_at", "data", "id", "text", "type"]);

    let result = world.tasks.result(delivery.id).await.unwrap().payload;
    assert_eq!((&result["sent"], &result["status"]), (&json!(true), &json!(204)));
    let webhook = world.store().webhook(webhook.id).await.unwrap().unwrap();
    assert!(webhook.last_ok_at.is_some() && webhook.last_error.is_none());
}

async fn a_webhook_that_is_gone_ends_what_waits_for_it(world: World) {
    let receiver = Receiver::start(&[]).await;
    let removed = world.webhook("removed", &receiver.url, &[Topic::MissionFailed]).await;
    let inactive = world.webhook("inactive", &receiver.url, &[Topic::MissionFailed]).await;
    world.mission_fails().await;
    let store = world.store();
    let config = lavra_notify::watch::Config::default();
    let mut watcher = lavra_notify::watch::Watcher::new(&*store, &world.tasks, config);
    assert_eq!(watcher.round().await.unwrap(), 2);
    world.webhooks.remove(&removed).await.unwrap();
    let off = Changes { active: Some(false), ..Changes::default() };
    world.webhooks.change(&inactive, off).await.unwrap();

    let running = Running::start(&world);
    let deliveries = world.delivered(2).await;
    running.stop().await;
    assert_eq!(receiver.requests().len(), 0);
    for delivery in deliveries {
        let result = world.tasks.result(delivery.id).await.unwrap().payload;
        assert_eq!(result, json!({ "sent": false, "why": "webhook gone" }));
        let events = world.tasks.events(delivery.id, 100).await.unwrap();
        let says = |event: &lavra_tasks::model::Event| {
            event.state.as_deref() == Some("Not sent: webhook gone")
        };
        assert!(events.iter().any(says), "{events:#?}");
    }
}

async fn a_ping_is_sent_at_once_and_says_what_came_of_it(world: World) {
    let receiver = Receiver::start(&[200, 503]).await;
    let webhook = world.webhook("ops", &receiver.url, &[]).await;
    let sent = world.webhooks.test(&webhook).await.unwrap();
    assert_eq!((sent.ok, sent.said.as_str()), (true, "HTTP 200 OK"));
    let request = receiver.requests().remove(0);
    assert!(request.is_signed);
    assert_eq!(request.header("lavra-event"), "ping");
    assert_eq!(request.body["data"]["name"], "ops");

    let sent = world.webhooks.test(&webhook).await.unwrap();
    assert_eq!((sent.ok, sent.said.as_str()), (false, "HTTP 503 Service Unavailable"));
    let noted = world.store().webhook(webhook.id).await.unwrap().unwrap();
    assert_eq!(noted.last_error.as_deref(), Some("HTTP 503 Service Unavailable"));
    receiver.takes_its_time(Duration::from_secs(5));
    let sent = world.webhooks.test(&webhook).await.unwrap();
    assert_eq!((sent.ok, sent.said.as_str()), (false, "no answer in time"));
    assert!(world.deliveries().await.iter().all(|task| task.status == Status::Completed));
}
