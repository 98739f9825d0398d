//! GET /tasks/{id}/stream.

use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use crate::support::server::KIND;
use crate::support::sse::Message;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    a_stream_shows_a_life_from_the_beginning_to_the_end,
    a_reader_that_was_cut_off_goes_on_where_it_was,
    a_cancelled_task_is_followed_until_its_worker_confirmed,
);

fn versions(messages: &[Message]) -> Vec<i32> {
    messages.iter().map(|message| message.id().parse().unwrap()).collect()
}

async fn a_stream_shows_a_life_from_the_beginning_to_the_end(place: Place) {
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!({})).await;
    let path = format!("/tasks/{id}/stream");
    let mut stream = server.stream(&path, None).await;
    assert_eq!(stream.next().await.unwrap().status(), "PENDING");
    let task = server.claim(Uuid::new_v4(), KIND).await;
    assert_eq!(stream.next().await.unwrap().status(), "IN_PROGRESS");
    let start = Instant::now();
    let step = json!({"progress": 50, "state": "Half"});
    server.report(&task, "progress", step).await.expect(200);
    let half = stream.next().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(half.data.as_ref().unwrap()["state"], "Half");
    server.report(&task, "complete", json!({})).await.expect(200);
    let rest = stream.rest().await;
    assert_eq!((rest.len(), rest[0].status()), (1, "COMPLETED"));

    let again = server.stream(&path, None).await.rest().await;
    assert_eq!(versions(&again), [0, 1, 2, 3]);
    let after = server.stream(&format!("{path}?after=1"), None).await.rest().await;
    assert_eq!(versions(&after), [2, 3]);
    // The header wins; and at the end there is nothing to reconnect for.
    let done = server.request(reqwest::Method::GET, &format!("{path}?after=1"));
    let done = server.send(done.header("Last-Event-ID", "3")).await;
    assert_eq!((done.status.as_u16(), done.text.as_str()), (204, ""));
}

async fn a_reader_that_was_cut_off_goes_on_where_it_was(place: Place) {
    const STEPS: i32 = 600;
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!({})).await;
    let task = server.claim(Uuid::new_v4(), KIND).await;
    let client = server.client.clone();
    let working = tokio::spawn(async move {
        for step in 0..STEPS {
            let state = format!("Step {step}");
            client
                .report(&task, "progress", json!({"progress": 1, "state": state}))
                .await
                .expect(200);
        }
        client.report(&task, "complete", json!({})).await.expect(200);
    });
    let path = format!("/tasks/{id}/stream");
    let (mut seen, mut last) = (Vec::new(), None::<String>);
    // Cut off again and again, at odd places.
    for cut in [1, 7, 50, 3, 120] {
        let mut stream = server.stream(&path, last.as_deref()).await;
        seen.extend(versions(&stream.take(cut).await));
        last = seen.last().map(ToString::to_string);
    }
    seen.extend(versions(&server.stream(&path, last.as_deref()).await.rest().await));
    working.await.unwrap();
    assert_eq!(seen, (0..STEPS + 3).collect::<Vec<i32>>());
}

async fn a_cancelled_task_is_followed_until_its_worker_confirmed(place: Place) {
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!({})).await;
    let task = server.claim(Uuid::new_v4(), KIND).await;
    let mut stream = server.stream(&format!("/tasks/{id}/stream"), Some("1")).await;
    server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    assert_eq!(stream.next().await.unwrap().status(), "CANCELLED");
    let more = tokio::time::timeout(Duration::from_millis(700), stream.next()).await;
    assert!(more.is_err(), "it went on too early: {more:?}");
    server.report(&task, "release", json!({})).await.problem(409, "task_lost");
    let rest = stream.rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].data.as_ref().unwrap()["detail"]["action"], "stop-confirmed");
}

#[tokio::test]
async fn a_retried_task_is_followed_on() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    let path = format!("/tasks/{id}/stream");
    server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    assert_eq!(server.stream(&path, None).await.rest().await.len(), 2);
    server.ask(&format!("/tasks/{id}:retry")).await.expect(200);
    let mut stream = server.stream(&path, Some("1")).await;
    assert_eq!(stream.next().await.unwrap().id(), "2");
    server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    assert_eq!(stream.rest().await.len(), 1);
}

#[tokio::test]
async fn an_id_from_another_life_starts_over() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    let mut stream = server.stream(&format!("/tasks/{id}/stream"), Some("4711")).await;
    assert_eq!(stream.next().await.unwrap().id(), "0");
}

#[tokio::test]
async fn a_silent_stream_sends_comments() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    let start = Instant::now();
    let mut stream = server.stream(&format!("/tasks/{id}/stream"), Some("0")).await;
    let message = stream.any().await.unwrap();
    assert!(message.is_comment && message.data.is_none(), "{message:?}");
    assert!((14..30).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}
