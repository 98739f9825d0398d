//! What a receiver answers, and what comes of it.

use std::time::Duration;

use lavra_notify::model::Topic;
use lavra_tasks::model::Status;
use serde_json::json;

use crate::support::{Answer, Receiver, Running, World, on_each_engine};

on_each_engine!(
    a_receiver_that_fails_twice_gets_the_same_delivery_again,
    a_receiver_that_is_gone_is_asked_no_more,
    a_refusal_is_final_and_told_to_nobody,
    a_receiver_that_never_answers_has_eight_attempts,
    a_pause_that_is_asked_for_is_kept,
    a_redirect_is_not_followed,
    an_address_of_the_inside_is_refused_where_it_must_be,
);

async fn a_receiver_that_fails_twice_gets_the_same_delivery_again(world: World) {
    let receiver = Receiver::start(&[500, 503]).await;
    world.webhook("ops", &receiver.url, &[]).await;
    let running = Running::start(&world);
    world.mission_fails().await;
    let delivery = world.delivered(1).await.remove(0);
    running.stop().await;

    let requests = receiver.requests();
    assert_eq!(requests.iter().map(|r| r.answered).collect::<Vec<_>>(), [500, 503, 204]);
    assert!(requests.iter().all(|request| request.is_signed));
    for request in &requests {
        assert_eq!(request.header("lavra-delivery"), delivery.id.to_string());
        assert_eq!(request.body, requests[0].body);
    }
    assert_eq!(receiver.taken().len(), 1);
    assert_eq!(world.deliveries().await.len(), 1);
}

async fn a_receiver_that_is_gone_is_asked_no_more(world: World) {
    let receiver = Receiver::start(&[410]).await;
    let webhook = world.webhook("ops", &receiver.url, &[]).await;
    let running = Running::start(&world);
    world.mission_fails().await;
    let delivery = world.delivered(1).await.remove(0);
    let result = world.tasks.result(delivery.id).await.unwrap().payload;
    assert_eq!(result, json!({ "sent": false, "why": "the receiver answered 410" }));
    let gone = world.store().webhook(webhook.id).await.unwrap().unwrap();
    assert!(!gone.active);
    assert_eq!(gone.last_error.as_deref(), Some("HTTP 410 Gone: deactivated"));

    world.mission_fails().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    running.stop().await;
    assert_eq!(receiver.requests().len(), 1);
    assert_eq!(world.deliveries().await.len(), 1);
}

async fn a_refusal_is_final_and_told_to_nobody(world: World) {
    let receiver = Receiver::start(&[404]).await;
    let webhook = world.webhook("ops", &receiver.url, &[]).await;
    let running = Running::start(&world);
    world.mission_fails().await;
    let begun = std::time::Instant::now();
    while world.tasks.store().dead_letters(None, 10).await.unwrap().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it has not failed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let letters = world.tasks.store().dead_letters(None, 10).await.unwrap();
    assert_eq!(letters[0].kind.as_deref(), Some("webhook"));
    assert_eq!(letters[0].reason, "HTTP 404 Not Found");
    // The watcher goes on, and this one is behind it.
    world.task_fails("act", "it broke").await;
    world.delivered(1).await;
    running.stop().await;
    let events: Vec<String> =
        receiver.requests().iter().map(|r| r.header("lavra-event").to_owned()).collect();
    assert_eq!(events, ["mission.failed", "task.dead_lettered"]);
    assert_eq!(receiver.requests()[1].body["data"]["type"], "act");
    assert!(world.store().webhook(webhook.id).await.unwrap().unwrap().active);
}

async fn a_receiver_that_never_answers_has_eight_attempts(world: World) {
    // A port that nobody listens on.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x?token=s3cret", listener.local_addr().unwrap());
    drop(listener);
    world.webhook("ops", &url, &[]).await;
    let running = Running::start(&world);
    world.mission_fails().await;
    let begun = std::time::Instant::now();
    let failed = loop {
        let found = world.settled().await;
        if let Some(task) = found.into_iter().next() {
            break task;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it was not made");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    running.stop().await;
    assert_eq!((failed.status, failed.attempts), (Status::Failed, 8));
    let error = failed.error.unwrap();
    assert!(error.contains("refused") && !error.contains("s3cret"), "{error}");
}

async fn a_pause_that_is_asked_for_is_kept(world: World) {
    let receiver = Receiver::start(&[]).await;
    receiver.then(Answer(429, Some(1)));
    world.webhook("ops", &receiver.url, &[]).await;
    let running = Running::start(&world);
    world.mission_fails().await;
    world.delivered(1).await;
    running.stop().await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    let pause = requests[1].at.duration_since(requests[0].at);
    assert!(pause >= Duration::from_millis(950), "{pause:?}");
}

async fn a_redirect_is_not_followed(world: World) {
    let receiver = Receiver::start(&[307]).await;
    let webhook = world.webhook("ops", &receiver.url, &[]).await;
    let sent = world.webhooks.test(&webhook).await.unwrap();
    assert!(!sent.ok && sent.said.contains("redirects are not followed"), "{sent:?}");
    assert_eq!(receiver.requests().len(), 1);
}

async fn an_address_of_the_inside_is_refused_where_it_must_be(world: World) {
    let world = world.without_private().await;
    let receiver = Receiver::start(&[]).await;
    let by_address = world.webhook("address", &receiver.url, &[Topic::MissionFailed]).await;
    let url = receiver.url.replace("127.0.0.1", "localhost");
    let by_name = world.webhook("name", &url, &[Topic::MissionFailed]).await;
    for webhook in [by_address, by_name] {
        let sent = world.webhooks.test(&webhook).await.unwrap();
        assert!(!sent.ok && sent.said.contains("internal address"), "{sent:?}");
    }
    let running = Running::start(&world);
    world.mission_fails().await;
    let begun = std::time::Instant::now();
    while world.tasks.store().dead_letters(None, 10).await.unwrap().len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(20), "they have not failed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.stop().await;
    let all = world.deliveries().await;
    assert!(all.iter().all(|task| task.attempts == 1), "{all:#?}");
    assert_eq!(receiver.requests().len(), 0);
}
