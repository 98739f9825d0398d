//! GET /events/stream.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::KIND;
use crate::support::sse::Message;
use crate::support::{Client, Place, Server, on_each_engine};

on_each_engine!(
    listeners_miss_nothing_while_many_write,
    a_listener_that_heard_nothing_yet_resumes_from_its_beginning,
);

const PATH: &str = "/events/stream";
const WRITERS: usize = 8;
const TASKS: usize = 12;
/// Created, started, one step, completed.
const EVENTS: usize = 4;

/// Makes a task and takes one through its life.
async fn work(client: Client) {
    let worker = Uuid::new_v4();
    for _ in 0..TASKS {
        client.create(KIND, &json!({})).await;
        let task = client.claim(worker, KIND).await;
        client.report(&task, "progress", json!({"progress": 5, "state": "x"})).await.expect(200);
        client.report(&task, "complete", json!({})).await.expect(200);
    }
}

fn check_all(messages: &[Message]) {
    let ids: HashSet<&str> = messages.iter().map(Message::id).collect();
    assert_eq!(ids.len(), messages.len(), "an event came twice");
    let mut lives: HashMap<String, Vec<i64>> = HashMap::new();
    for message in messages {
        let event = message.data.as_ref().unwrap();
        let id = message.id().split_once(':').unwrap().1;
        assert_eq!(event["id"], id);
        let task = event["task_id"].as_str().unwrap().to_owned();
        lives.entry(task).or_default().push(event["version"].as_i64().unwrap());
    }
    assert_eq!(lives.len(), WRITERS * TASKS);
    for (task, versions) in lives {
        assert_eq!(versions, [0, 1, 2, 3], "{task}");
    }
}

async fn listeners_miss_nothing_while_many_write(place: Place) {
    const ALL: usize = WRITERS * TASKS * EVENTS;
    let server = Server::on(place).await;
    let mut steady = server.stream(PATH, None).await;
    let mut first = server.stream(PATH, None).await;
    let beginning = first.any().await.unwrap();
    assert!(beginning.data.is_none(), "{beginning:?}");
    let writing: Vec<_> = (0..WRITERS).map(|_| tokio::spawn(work(server.client.clone()))).collect();

    // One reads without a break; one is cut off at odd places; one comes back at the end.
    let (mut cut_off, mut last) = (first.take(3).await, String::new());
    for cut in [1, 10, 64, 5] {
        last = cut_off.last().unwrap().id().to_owned();
        cut_off.extend(server.stream(PATH, Some(&last)).await.take(cut).await);
    }
    assert!(!last.is_empty());
    let all = steady.take(ALL).await;
    for writer in writing {
        writer.await.unwrap();
    }
    last = cut_off.last().unwrap().id().to_owned();
    let left = ALL - cut_off.len();
    cut_off.extend(server.stream(PATH, Some(&last)).await.take(left).await);
    let late = server.stream(PATH, beginning.id.as_deref()).await.take(ALL).await;

    check_all(&all);
    assert_eq!(cut_off, all);
    assert_eq!(late, all);
    let more = tokio::time::timeout(Duration::from_millis(600), steady.next()).await;
    assert!(more.is_err(), "there was more: {more:?}");
}

async fn a_listener_that_heard_nothing_yet_resumes_from_its_beginning(place: Place) {
    let server = Server::on(place).await;
    let beginning = server.stream(PATH, None).await.any().await.unwrap();
    let made = [server.create(KIND, &json!({})).await, server.create(KIND, &json!({})).await];
    let mut stream = server.stream(PATH, beginning.id.as_deref()).await;
    let heard = stream.take(2).await;
    let heard: Vec<&Value> =
        heard.iter().map(|message| &message.data.as_ref().unwrap()["task_id"]).collect();
    assert_eq!(heard, [&json!(made[0]), &json!(made[1])]);
}
