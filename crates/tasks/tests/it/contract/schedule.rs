//! Each due time of a schedule makes one task, whoever is first.

use std::time::Duration;

use jiff::Timestamp;
use lavra_tasks::model::{Actor, Status};
use lavra_tasks::store::{NewRow, Schedule};
use serde_json::json;

use crate::support::{World, at_once, on_each_engine};

on_each_engine!(
    schedules_are_kept_by_name,
    a_schedule_is_replaced_and_keeps_its_last_task,
    a_schedule_can_be_removed,
    a_schedule_is_enabled_and_disabled,
    a_due_time_fires_once_among_ten,
    a_fired_task_is_the_systems,
    a_schedule_that_fires_the_last_time_is_disabled,
    a_disabled_schedule_does_not_fire,
    a_schedule_that_is_not_there_does_not_fire,
);

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn nightly() -> Schedule {
    Schedule {
        name: "nightly 'cleanup'".into(),
        kind: "cleanup".into(),
        cron: "0 3 * * *".into(),
        payload: json!({"days": 7}),
        enabled: true,
        next_at: time("2026-01-02T03:00:00.000001Z"),
        last_task: None,
    }
}

async fn fire(world: &World, schedule: &Schedule, row: NewRow, announce: bool) -> bool {
    let to = time("2026-01-03T03:00:00Z");
    world.fire(schedule.name.clone(), schedule.next_at, Some(to), row, announce).await.unwrap()
}

async fn schedules_are_kept_by_name(world: World) {
    let other = Schedule { name: "a first".into(), enabled: false, ..nightly() };
    world.put_schedule(nightly()).await.unwrap();
    world.put_schedule(other.clone()).await.unwrap();
    assert_eq!(world.schedules().await.unwrap(), [other, nightly()]);
}

async fn a_schedule_is_replaced_and_keeps_its_last_task(world: World) {
    world.put_schedule(nightly()).await.unwrap();
    let row = world.row("cleanup");
    assert!(fire(&world, &nightly(), row.clone(), false).await);
    let changed = Schedule {
        kind: "other".into(),
        cron: "0 4 * * *".into(),
        payload: json!([]),
        enabled: false,
        next_at: time("2026-01-05T04:00:00Z"),
        ..nightly()
    };
    world.put_schedule(changed.clone()).await.unwrap();
    let expected = Schedule { last_task: Some(row.id), ..changed };
    assert_eq!(world.schedules().await.unwrap(), [expected]);
}

async fn a_schedule_can_be_removed(world: World) {
    world.put_schedule(nightly()).await.unwrap();
    assert!(!world.remove_schedule("another".into()).await.unwrap());
    assert!(world.remove_schedule(nightly().name).await.unwrap());
    assert!(!world.remove_schedule(nightly().name).await.unwrap());
    assert_eq!(world.schedules().await.unwrap(), []);
}

async fn a_schedule_is_enabled_and_disabled(world: World) {
    world.put_schedule(nightly()).await.unwrap();
    let later = time("2026-01-09T03:00:00Z");
    assert!(!world.enable_schedule("another".into(), true, later).await.unwrap());
    assert!(world.enable_schedule(nightly().name, false, later).await.unwrap());
    let off = Schedule { enabled: false, next_at: later, ..nightly() };
    assert_eq!(world.schedules().await.unwrap(), [off]);
    assert!(world.enable_schedule(nightly().name, true, nightly().next_at).await.unwrap());
    assert_eq!(world.schedules().await.unwrap(), [nightly()]);
}

async fn a_due_time_fires_once_among_ten(world: World) {
    world.put_schedule(nightly()).await.unwrap();
    let rows: Vec<NewRow> = (0..10).map(|_| world.row("cleanup")).collect();
    let fired = at_once(10, |place| {
        let (store, row) = (world.store.clone(), rows[place].clone());
        async move {
            let (from, to) = (nightly().next_at, time("2026-01-03T03:00:00Z"));
            store.fire(nightly().name, from, Some(to), row, true).await.unwrap()
        }
    })
    .await;
    let winner = fired.iter().position(|fired| *fired).unwrap();
    assert_eq!(fired.iter().filter(|fired| **fired).count(), 1);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.tasks").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.task_events").await, 1);
    let schedule = world.schedules().await.unwrap().remove(0);
    assert_eq!(schedule.next_at, time("2026-01-03T03:00:00Z"));
    assert_eq!(schedule.last_task, Some(rows[winner].id));
}

async fn a_fired_task_is_the_systems(world: World) {
    world.put_schedule(nightly()).await.unwrap();
    let row = NewRow {
        priority: 3,
        max_retries: 0,
        payload: json!({"days": 7}).to_string(),
        metadata: json!({"schedule": "nightly"}).to_string(),
        ..world.row("cleanup")
    };
    assert!(fire(&world, &nightly(), row.clone(), true).await);
    let task = world.read(row.id).await;
    assert_eq!((task.status, task.state.as_str()), (Status::Pending, "Queued"));
    assert_eq!((task.kind.as_str(), task.priority, task.max_retries), ("cleanup", 3, 0));
    assert_eq!(task.metadata, json!({"schedule": "nightly"}));
    assert_eq!(world.input(row.id).await.unwrap(), Some(json!({"days": 7})));
    let event = world.history(row.id).await.remove(0);
    assert_eq!((event.id, event.actor, event.status), (row.event, Actor::System, Status::Pending));
    assert_eq!((event.version, event.created_at), (0, task.created_at));
    let announced = world.take_announcements(Duration::from_secs(9), 10).await.unwrap();
    assert_eq!(announced.len(), 1, "nobody else publishes it");
    assert_eq!((announced[0].task, announced[0].kind.as_str()), (row.id, "cleanup"));
}

async fn a_schedule_that_fires_the_last_time_is_disabled(world: World) {
    world.put_schedule(nightly()).await.unwrap();
    let (row, from) = (world.row("cleanup"), nightly().next_at);
    assert!(world.fire(nightly().name, from, None, row.clone(), false).await.unwrap());
    let over = Schedule { enabled: false, last_task: Some(row.id), ..nightly() };
    assert_eq!(world.schedules().await.unwrap(), [over]);
    assert!(!world.fire(nightly().name, from, None, world.row("cleanup"), false).await.unwrap());
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.tasks").await, 1);
}

async fn a_disabled_schedule_does_not_fire(world: World) {
    world.put_schedule(Schedule { enabled: false, ..nightly() }).await.unwrap();
    assert!(!fire(&world, &nightly(), world.row("cleanup"), true).await);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.tasks").await, 0);
    assert_eq!(world.outbox_depth().await.unwrap(), 0);
}

async fn a_schedule_that_is_not_there_does_not_fire(world: World) {
    assert!(!fire(&world, &nightly(), world.row("cleanup"), false).await);
    world.put_schedule(nightly()).await.unwrap();
    let passed = Schedule { next_at: time("2026-01-01T03:00:00Z"), ..nightly() };
    assert!(!fire(&world, &passed, world.row("cleanup"), false).await, "another time is due");
    assert_eq!(world.schedules().await.unwrap(), [nightly()]);
}
