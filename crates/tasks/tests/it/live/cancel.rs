//! Cancellation of what runs.

use std::time::{Duration, Instant};

use lavra_tasks::model::Status;
use lavra_tasks::{Error, RunnerConfig};
use serde_json::json;

use super::rig::{Rig, actions, assert_gapless};
use crate::support::{World, on_each_engine};

on_each_engine!(
    a_running_task_sees_its_cancel_within_a_heartbeat,
    a_task_that_does_not_look_is_cancelled_all_the_same,
    a_waiting_task_is_cancelled_without_ceremony,
    an_ended_task_cannot_be_cancelled,
    a_running_task_cannot_be_retried,
    a_wrong_version_changes_nothing,
    a_cancelled_task_can_be_retried,
);

/// Another process cancels: its own service, whose bell this process may not hear. Behind
/// PgBouncer no notification ever arrives.
async fn a_running_task_sees_its_cancel_within_a_heartbeat(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let other = Rig::new(&world).await;
    let id = rig.order(json!({ "do": "sleep", "seconds": 60.0 })).await;
    rig.until_status(id, Status::InProgress).await;
    let begun = Instant::now();
    let task = other.tasks.cancel(id, None).await.unwrap();
    assert_eq!((task.status, task.state.as_str()), (Status::Cancelled, "Cancelled by user"));
    rig.until(id, |task| task.stop_by.is_none()).await;
    assert!(begun.elapsed() < Duration::from_millis(4500), "{:?}", begun.elapsed());
    let events = rig.history(id).await;
    assert_gapless(&events);
    assert_eq!(actions(&events), ["create", "start", "cancel", "stop-confirmed"]);
    rig.stop().await;
}

async fn a_task_that_does_not_look_is_cancelled_all_the_same(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "sleep_deaf", "seconds": 1.0 })).await;
    rig.until_status(id, Status::InProgress).await;
    rig.tasks.cancel(id, None).await.unwrap();
    // Its completion comes late, is fenced out, and confirms the stop instead.
    let task = rig.until(id, |task| task.stop_by.is_none()).await;
    assert_eq!(task.status, Status::Cancelled);
    assert!(rig.tasks.result(id).await.is_err());
    rig.stop().await;
}

async fn a_waiting_task_is_cancelled_without_ceremony(world: World) {
    let rig = Rig::new(&world).await;
    let id = rig.order(json!({ "do": "complete" })).await;
    let task = rig.tasks.cancel(id, Some(0)).await.unwrap();
    assert_eq!((task.status, task.version, task.stop_by), (Status::Cancelled, 1, None));
}

async fn an_ended_task_cannot_be_cancelled(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "complete" })).await;
    let before = rig.until_status(id, Status::Completed).await;
    assert!(matches!(rig.tasks.cancel(id, None).await, Err(Error::Illegal(_))));
    assert_eq!(rig.tasks.task(id).await.unwrap(), before);
    rig.stop().await;
}

async fn a_running_task_cannot_be_retried(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "sleep", "seconds": 60.0 })).await;
    rig.until_status(id, Status::InProgress).await;
    assert!(matches!(rig.tasks.retry(id, None).await, Err(Error::Illegal(_))));
    rig.stop().await;
}

async fn a_wrong_version_changes_nothing(world: World) {
    let rig = Rig::new(&world).await;
    let id = rig.order(json!({ "do": "complete" })).await;
    let error = rig.tasks.cancel(id, Some(7)).await.unwrap_err();
    assert!(matches!(error, Error::VersionMismatch { expected: 7, actual: 0 }), "{error:?}");
    assert_eq!(rig.history(id).await.len(), 1);
}

async fn a_cancelled_task_can_be_retried(world: World) {
    let mut rig = Rig::new(&world).await;
    let id = rig.order(json!({ "do": "complete" })).await;
    rig.tasks.cancel(id, None).await.unwrap();
    rig.tasks.retry(id, None).await.unwrap();
    rig.run(RunnerConfig::default());
    rig.until_status(id, Status::Completed).await;
    let events = rig.history(id).await;
    assert_gapless(&events);
    assert_eq!(actions(&events), ["create", "cancel", "retry", "start", "complete"]);
    rig.stop().await;
}
