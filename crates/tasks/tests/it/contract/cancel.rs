//! Cancelled at once, and then confirmed.

use lavra_tasks::machine::Happening;
use lavra_tasks::model::{Actor, Status};
use lavra_tasks::store::Written;
use serde_json::json;

use crate::support::shorthand::{CANCEL, step};
use crate::support::{World, on_each_engine};

on_each_engine!(
    a_waiting_task_is_cancelled_at_once,
    a_running_task_is_cancelled_and_its_worker_has_a_time_to_stop,
    late_writes_of_a_cancelled_attempt_are_refused,
    the_worker_confirms_that_it_stopped,
    a_stop_that_nobody_confirms_is_overdue,
    a_cancelled_task_may_be_tried_again,
);

async fn a_waiting_task_is_cancelled_at_once(world: World) {
    let id = world.make_one("a").await;
    let task = world.happen(id, &CANCEL).await;
    assert_eq!((task.status, task.state.as_str()), (Status::Cancelled, "Cancelled by user"));
    assert_eq!((task.stop_by, task.version), (None, 1));
    assert_eq!(world.take(&["a"], 1).await.len(), 0);
    let event = world.history(id).await.pop().unwrap();
    assert_eq!((event.status, event.actor), (Status::Cancelled, Actor::Api));
}

async fn a_running_task_is_cancelled_and_its_worker_has_a_time_to_stop(world: World) {
    let running = world.running().await;
    let task = world.happen(running.id, &CANCEL).await;
    assert_eq!(task.status, Status::Cancelled);
    assert!(task.process.is_some(), "the worker has yet to confirm");
    let wait = task.stop_by.unwrap().duration_since(task.updated_at);
    assert!((29..=30).contains(&wait.as_secs()), "{wait:?}");
}

async fn late_writes_of_a_cancelled_attempt_are_refused(world: World) {
    let running = world.running().await;
    let mut progress = world.decide(running.id, &step(10, "late")).await;
    let mut complete = world.decide(running.id, &Happening::Complete).await;
    complete.result = Some(json!({}));
    (progress.guard.version, complete.guard.version) = (None, None);
    world.happen(running.id, &CANCEL).await;
    assert_eq!(world.write_one(progress).await, Written::Refused);
    assert_eq!(world.write_one(complete).await, Written::Refused);
    assert_eq!(world.result(running.id).await.unwrap(), None);
    assert_eq!(world.read(running.id).await.version, 2);
}

async fn the_worker_confirms_that_it_stopped(world: World) {
    let running = world.running().await;
    world.happen(running.id, &CANCEL).await;
    let task = world.happen(running.id, &Happening::ConfirmStop).await;
    assert_eq!((task.status, task.stop_by, task.version), (Status::Cancelled, None, 3));
    let event = world.history(running.id).await.pop().unwrap();
    assert_eq!(
        (event.actor, event.detail),
        (Actor::Worker, Some(json!({"action": "stop-confirmed"})))
    );
}

async fn a_stop_that_nobody_confirms_is_overdue(world: World) {
    let (early, late) = (world.running().await, world.running().await);
    world.happen(early.id, &CANCEL).await;
    world.happen(late.id, &CANCEL).await;
    let waiting = world.make_one("a").await;
    world.happen(waiting, &CANCEL).await;
    assert_eq!(world.overdue_stops(10).await.unwrap(), []);

    let sql = format!(
        "UPDATE kodus_workflow.tasks SET stop_by = '2020-01-01T00:00:00Z' WHERE id = '{}'",
        late.id
    );
    world.execute(&sql).await;
    let overdue = world.overdue_stops(10).await.unwrap();
    assert_eq!(overdue, [world.read(late.id).await]);
    assert_eq!(world.overdue_stops(0).await.unwrap(), []);
    let task = world.happen(late.id, &Happening::GiveUpStop).await;
    assert_eq!((task.status, task.stop_by), (Status::Cancelled, None));
    assert_eq!(world.overdue_stops(10).await.unwrap(), []);
}

async fn a_cancelled_task_may_be_tried_again(world: World) {
    let running = world.running().await;
    world.happen(running.id, &CANCEL).await;
    let task = world.happen(running.id, &Happening::Retry).await;
    assert_eq!((task.status, task.stop_by, task.process), (Status::Pending, None, None));
    let again = world.take(&["a"], 1).await.remove(0);
    assert_eq!((again.id, again.attempts), (running.id, 2));
    assert!(again.token > running.token);
}
