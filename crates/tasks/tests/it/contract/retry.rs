//! Failing, waiting, failing for good, and another go by a person.

use std::time::Duration;

use lavra_tasks::machine::Happening;
use lavra_tasks::model::{Actor, Status};
use lavra_tasks::store::NewRow;
use serde_json::json;

use crate::support::shorthand::{fail, step};
use crate::support::{World, on_each_engine};

on_each_engine!(
    a_failed_attempt_waits_for_its_retry,
    the_last_failure_makes_a_dead_letter,
    a_persons_retry_takes_the_dead_letter_back,
    an_interrupted_task_is_given_back_and_announced,
    a_task_that_waits_for_its_retry_is_not_announced,
    a_lost_task_counts_an_attempt,
    a_buried_task_has_its_dead_letter,
);

async fn a_failed_attempt_waits_for_its_retry(world: World) {
    let running = world.running().await;
    world.happen(running.id, &step(40, "half-way")).await;
    let task = world.happen(running.id, &fail(Some(60))).await;
    assert_eq!((task.status, task.retry_count, task.progress), (Status::Pending, 1, 0));
    assert_eq!((task.error.as_deref(), task.process), (Some("boom"), None));
    assert!(task.state.starts_with("Retry 1/3 at "), "{}", task.state);
    let wait = task.run_at.unwrap().duration_since(task.updated_at);
    assert!((59..=60).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(world.take(&["a"], 1).await.len(), 0);
    assert_eq!(world.dead_letters(None, 10).await.unwrap(), []);
}

async fn the_last_failure_makes_a_dead_letter(world: World) {
    world.make(vec![NewRow { max_retries: 1, ..world.row("a") }]).await;
    let first = world.take(&["a"], 1).await.remove(0);
    world.happen(first.id, &fail(Some(0))).await;
    let second = world.take(&["a"], 1).await.remove(0);
    assert_eq!((second.id, second.attempts, second.retry_count), (first.id, 2, 1));
    let task = world.happen(first.id, &fail(Some(0))).await;
    assert_eq!((task.status, task.retry_count), (Status::Failed, 1));
    assert_eq!((task.state.as_str(), task.error.as_deref()), ("Failed", Some("boom")));

    let letters = world.dead_letters(None, 10).await.unwrap();
    let [letter] = letters.as_slice() else { panic!("not one letter: {letters:?}") };
    assert_eq!((letter.task_id, letter.kind.as_deref()), (Some(first.id), Some("a")));
    assert_eq!((letter.reason.as_str(), letter.body.as_deref()), ("boom", None));
    let event = world.history(first.id).await.pop().unwrap();
    assert_eq!(event.detail, Some(json!({"action": "fail", "error": "boom"})));
}

async fn a_persons_retry_takes_the_dead_letter_back(world: World) {
    let (running, other) = (world.running().await, world.running().await);
    world.happen(running.id, &step(70, "far")).await;
    world.happen(running.id, &fail(None)).await;
    world.happen(other.id, &fail(None)).await;
    assert_eq!(world.dead_letters(None, 10).await.unwrap().len(), 2);

    let mut write = world.decide(running.id, &Happening::Retry).await;
    write.announce = true;
    world.write_one(write).await;
    let task = world.read(running.id).await;
    assert_eq!((task.status, task.state.as_str()), (Status::Pending, "Queued"));
    assert_eq!((task.error, task.progress, task.retry_count), (None, 0, 0));
    assert_eq!((task.attempts, task.run_at, task.process), (1, None, None));
    let letters = world.dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].task_id, Some(other.id));
    let event = world.history(running.id).await.pop().unwrap();
    assert_eq!((event.status, event.actor), (Status::Pending, Actor::Api));

    let announced = world.take_announcements(Duration::from_secs(9), 10).await.unwrap();
    assert_eq!(announced.len(), 1);
    assert_eq!((announced[0].task, announced[0].kind.as_str()), (running.id, "a"));
    let again = world.take(&["a"], 1).await.remove(0);
    assert_eq!((again.id, again.attempts), (running.id, 2));
}

async fn an_interrupted_task_is_given_back_and_announced(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &Happening::Interrupt).await;
    write.announce = true;
    world.write_one(write).await;
    let task = world.read(running.id).await;
    assert_eq!((task.status, task.retry_count, task.attempts), (Status::Pending, 0, 1));
    assert_eq!((task.process, task.run_at), (None, None));
    assert_eq!(world.outbox_depth().await.unwrap(), 1);
    assert_eq!(world.take(&["a"], 1).await[0].id, running.id);
}

async fn a_task_that_waits_for_its_retry_is_not_announced(world: World) {
    let (waiting, ended) = (world.running().await, world.running().await);
    let mut writes = vec![
        world.decide(waiting.id, &fail(Some(60))).await,
        world.decide(ended.id, &Happening::Complete).await,
    ];
    for write in &mut writes {
        write.announce = true;
    }
    world.write(writes).await.unwrap();
    assert_eq!(world.outbox_depth().await.unwrap(), 0);
}

async fn a_lost_task_counts_an_attempt(world: World) {
    let running = world.running().await;
    let lose = Happening::Lose { reason: "it died".into(), retry_in: Duration::ZERO };
    let task = world.happen(running.id, &lose).await;
    assert_eq!((task.status, task.retry_count), (Status::Pending, 1));
    assert_eq!(task.error.as_deref(), Some("it died"));
    let again = world.take(&["a"], 1).await.remove(0);
    assert_eq!((again.id, again.attempts), (running.id, 2));
    assert!(again.token > running.token);
}

async fn a_buried_task_has_its_dead_letter(world: World) {
    let id = world.make_one("a").await;
    let task = world.happen(id, &Happening::Bury { reason: "undeliverable".into() }).await;
    assert_eq!((task.status, task.error.as_deref()), (Status::Failed, Some("undeliverable")));
    let letters = world.dead_letters(None, 10).await.unwrap();
    assert_eq!((letters.len(), letters[0].reason.as_str()), (1, "undeliverable"));
}
