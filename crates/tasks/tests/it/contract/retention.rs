//! What may go, what goes with it, and what stays.

use jiff::{SignedDuration, Timestamp};
use lavra_tasks::machine::Happening;
use lavra_tasks::model::{Task, TaskId};
use lavra_tasks::store::{Expiry, NewRow};
use serde_json::json;

use crate::support::shorthand::{CANCEL, fail, key, living};
use crate::support::{World, on_each_engine};

on_each_engine!(
    each_ending_expires_at_its_own_time,
    the_oldest_expire_first_and_no_more_than_asked,
    a_dossier_has_everything_of_its_task,
    a_removed_task_leaves_nothing,
    a_task_that_moved_is_not_removed,
    the_history_of_living_tasks_stays,
    a_sweep_takes_no_more_events_than_asked,
    a_sweep_takes_old_keys_letters_and_processes,
);

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// All of them before the same time.
fn expiry(before: &str) -> Expiry {
    let before = time(before);
    Expiry { completed_before: before, cancelled_before: before, failed_before: before }
}

async fn changed_at(world: &World, id: TaskId, time: &str) {
    let sql = format!("UPDATE kodus_workflow.tasks SET updated_at = '{time}' WHERE id = '{id}'");
    world.execute(&sql).await;
}

async fn completed(world: &World) -> TaskId {
    let running = world.running().await;
    let mut write = world.decide(running.id, &Happening::Complete).await;
    write.result = Some(json!({"of": running.id}));
    world.write_one(write).await;
    running.id
}

fn ids(tasks: &[Task]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id).collect()
}

async fn left(world: &World, table: &str) -> i64 {
    world.count(&format!("SELECT count(*) FROM kodus_workflow.{table}")).await
}

async fn each_ending_expires_at_its_own_time(world: World) {
    let done = completed(&world).await;
    let (cancelled, failed) = (world.running().await.id, world.running().await.id);
    world.happen(cancelled, &CANCEL).await;
    world.happen(failed, &fail(None)).await;
    let running = world.running().await.id;
    let waiting = world.make_one("a").await;
    for id in [done, cancelled, failed, running, waiting] {
        changed_at(&world, id, "2020-01-10T00:00:00Z").await;
    }
    let (past, future) = (time("2020-01-10T00:00:00Z"), time("2020-01-10T00:00:00.000001Z"));
    let none = Expiry { completed_before: past, cancelled_before: past, failed_before: past };
    assert_eq!(world.expired(none, 10).await.unwrap(), []);
    for (expiry, expected) in [
        (Expiry { completed_before: future, ..none }, done),
        (Expiry { cancelled_before: future, ..none }, cancelled),
        (Expiry { failed_before: future, ..none }, failed),
    ] {
        assert_eq!(ids(&world.expired(expiry, 10).await.unwrap()), [expected]);
    }
    let mut all = ids(&world.expired(expiry("2020-02-01T00:00:00Z"), 10).await.unwrap());
    all.sort();
    assert_eq!(all, [done, cancelled, failed]);
}

async fn the_oldest_expire_first_and_no_more_than_asked(world: World) {
    let (one, two, three) =
        (completed(&world).await, completed(&world).await, world.running().await.id);
    world.happen(three, &CANCEL).await;
    changed_at(&world, one, "2020-01-03T00:00:00Z").await;
    changed_at(&world, two, "2020-01-01T00:00:00Z").await;
    changed_at(&world, three, "2020-01-02T00:00:00Z").await;
    let expired = world.expired(expiry("2020-02-01T00:00:00Z"), 2).await.unwrap();
    assert_eq!(ids(&expired), [two, three]);
    assert_eq!(expired[0], world.read(two).await);
}

async fn a_dossier_has_everything_of_its_task(world: World) {
    let (done, bare) = (completed(&world).await, world.make_one("a").await);
    let tasks = vec![world.read(bare).await, world.read(done).await];
    let dossiers = world.dossiers(tasks.clone()).await.unwrap();
    assert_eq!(dossiers.len(), 2);
    for (dossier, task) in dossiers.iter().zip(&tasks) {
        assert_eq!(dossier.task, *task);
        assert_eq!(dossier.input, Some(json!({"n": 1})));
        assert_eq!(dossier.events, world.history(task.id).await);
    }
    assert_eq!(dossiers[0].result, None);
    assert_eq!(dossiers[1].result, Some(json!({"of": done})));
    assert_eq!(dossiers[1].events.len(), 3);
    assert!(world.dossiers(Vec::new()).await.unwrap().is_empty());
}

async fn a_removed_task_leaves_nothing(world: World) {
    let (gone, stays) = (completed(&world).await, completed(&world).await);
    let failed = world.running().await.id;
    world.happen(failed, &fail(None)).await;
    assert_eq!(world.remove(vec![(gone, 2), (failed, 2)]).await.unwrap(), 2);
    assert_eq!(world.task(gone).await.unwrap(), None);
    assert_eq!(world.input(gone).await.unwrap(), None);
    assert_eq!(world.result(gone).await.unwrap(), None);
    assert_eq!(world.history(gone).await, []);
    assert_eq!(world.dead_letters(None, 10).await.unwrap(), []);
    assert_eq!(world.read(stays).await.version, 2);
    for (table, rows) in [("tasks", 1), ("task_inputs", 1), ("task_results", 1), ("task_events", 3)]
    {
        assert_eq!(left(&world, table).await, rows, "{table}");
    }
    assert_eq!(world.remove(vec![(gone, 2)]).await.unwrap(), 0);
    assert_eq!(world.remove(Vec::new()).await.unwrap(), 0);
}

async fn a_task_that_moved_is_not_removed(world: World) {
    let (moved, gone) = (world.running().await.id, completed(&world).await);
    world.happen(moved, &CANCEL).await;
    world.happen(moved, &Happening::Retry).await;
    assert_eq!(world.remove(vec![(moved, 2), (gone, 2)]).await.unwrap(), 1);
    assert_eq!(world.read(moved).await.version, 3);
    assert_eq!(world.history(moved).await.len(), 4);
    assert_eq!(world.input(moved).await.unwrap(), Some(json!({"n": 1})));
    assert_eq!(world.task(gone).await.unwrap(), None);
}

async fn the_history_of_living_tasks_stays(world: World) {
    let (ended, running) = (completed(&world).await, world.running().await.id);
    let waiting = world.make_one("a").await;
    let now = world.clock().now();
    let (before, after) =
        (now - SignedDuration::from_hours(1), now + SignedDuration::from_hours(1));
    assert_eq!(world.sweep_history(before, 100).await.unwrap(), 0);
    assert_eq!(world.history(ended).await.len(), 3);
    assert_eq!(world.sweep_history(after, 100).await.unwrap(), 3);
    assert_eq!(world.history(ended).await, []);
    assert_eq!(world.history(running).await.len(), 2);
    assert_eq!(world.history(waiting).await.len(), 1);
    assert_eq!(world.read(ended).await.version, 2);
    assert!(world.result(ended).await.unwrap().is_some());
}

async fn a_sweep_takes_no_more_events_than_asked(world: World) {
    let ended = completed(&world).await;
    let after = world.clock().now() + SignedDuration::from_hours(1);
    assert_eq!(world.sweep_history(after, 2).await.unwrap(), 2);
    let rest = world.history(ended).await;
    assert_eq!(rest.iter().map(|event| event.version).collect::<Vec<_>>(), [2], "the oldest go");
    assert_eq!(world.sweep_history(after, 2).await.unwrap(), 1);
    assert_eq!(world.sweep_history(after, 2).await.unwrap(), 0);
}

async fn a_sweep_takes_old_keys_letters_and_processes(world: World) {
    world.make(vec![NewRow { key: Some(key("k", 1)), ..world.row("a") }]).await;
    world.beat(living(world.process()), Vec::new()).await.unwrap();
    let claimed = world.take(&["a"], 1).await.remove(0);
    world.happen(claimed.id, &fail(None)).await;
    let unread = lavra_tasks::store::DeadLetter {
        task_id: None,
        ..world.dead_letters(None, 1).await.unwrap().remove(0)
    };
    let id = lavra_tasks::model::DeadLetterId(world.clock().new_id());
    world.bury(lavra_tasks::store::DeadLetter { id, ..unread }).await.unwrap();

    let now = world.clock().now();
    world.sweep_history(now - SignedDuration::from_hours(1), 100).await.unwrap();
    let counts = async || {
        let (keys, letters) =
            (left(&world, "task_keys").await, left(&world, "task_dead_letters").await);
        (keys, letters, left(&world, "processes").await)
    };
    assert_eq!(counts().await, (1, 2, 1));
    world.sweep_history(now + SignedDuration::from_hours(1), 100).await.unwrap();
    assert_eq!(counts().await, (0, 1, 0), "the letter of a task goes with its task");
}
