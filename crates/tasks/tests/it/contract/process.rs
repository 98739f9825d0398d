//! Heartbeats, what a process is told about its tasks, and what a dead one leaves.

use std::time::Duration;

use lavra_tasks::machine::Happening;
use lavra_tasks::model::{Claimed, ProcessId, TaskId};
use lavra_tasks::store::{Claim, Lost, Process};

use crate::support::shorthand::{CANCEL, fail, living};
use crate::support::{World, on_each_engine};

on_each_engine!(
    a_beat_writes_the_row_of_the_process,
    a_beat_names_the_tasks_that_were_lost_and_only_those,
    a_task_taken_over_is_lost_even_if_it_runs,
    a_task_cancelled_after_it_was_taken_over_is_not_ours_to_stop,
    tasks_of_a_silent_process_are_orphans,
    tasks_of_a_process_without_a_row_are_orphans,
    tasks_of_a_living_process_are_no_orphans,
    a_process_that_retires_leaves_no_row,
    orphans_are_no_more_than_asked,
);

const STALE: Duration = Duration::from_secs(10);

async fn claim_as(world: &World, process: ProcessId, limit: usize) -> Vec<Claimed> {
    world.claim(Claim { process, kinds: vec!["a".into()], limit }).await.unwrap()
}

async fn silence(world: &World, process: ProcessId) {
    let sql = format!(
        "UPDATE kodus_workflow.processes SET beat_at = '2020-01-01T00:00:00Z'
         WHERE id = '{process}'"
    );
    world.execute(&sql).await;
}

async fn orphans(world: &World) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> =
        world.orphans(STALE, 100).await.unwrap().iter().map(|task| task.id).collect();
    ids.sort();
    ids
}

async fn a_beat_writes_the_row_of_the_process(world: World) {
    let process = living(world.process());
    assert_eq!(world.beat(process.clone(), Vec::new()).await.unwrap(), []);
    silence(&world, process.id).await;
    let kinds = vec!["a".into(), "it's".into()];
    for kinds in [process.kinds.clone(), kinds.clone(), kinds] {
        world.beat(Process { kinds, ..process.clone() }, Vec::new()).await.unwrap();
    }
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.processes").await, 1);
    let sql = "SELECT count(*) FROM kodus_workflow.processes WHERE name = 'test'
               AND types[2] = 'it''s' AND beat_at > '2021-01-01T00:00:00Z'
               AND started_at > '2021-01-01T00:00:00Z'";
    assert_eq!(world.count(sql).await, 1);
}

async fn a_beat_names_the_tasks_that_were_lost_and_only_those(world: World) {
    let process = living(world.process());
    world.make_many("a", 5).await;
    let held = claim_as(&world, process.id, 5).await;
    let [kept, cancelled, ended, given_back, removed] = held.as_slice() else { panic!("five") };
    let all: Vec<_> = held.iter().map(|one| (one.id, one.token)).collect();
    assert_eq!(world.beat(process.clone(), all.clone()).await.unwrap(), []);

    world.happen(cancelled.id, &CANCEL).await;
    world.happen(ended.id, &Happening::Complete).await;
    world.happen(given_back.id, &fail(Some(60))).await;
    world.remove(vec![(removed.id, 1)]).await.unwrap();
    let mut lost = world.beat(process.clone(), all).await.unwrap();
    lost.sort_by_key(|lost| lost.id);
    let lost_as = |one: &Claimed, cancelled| Lost { id: one.id, token: one.token, cancelled };
    let expected = [
        lost_as(cancelled, true),
        lost_as(ended, false),
        lost_as(given_back, false),
        lost_as(removed, false),
    ];
    assert_eq!(lost, expected);
    assert_eq!(world.beat(process, vec![(kept.id, kept.token)]).await.unwrap(), []);
}

async fn a_task_taken_over_is_lost_even_if_it_runs(world: World) {
    let ours = world.running().await;
    world.happen(ours.id, &fail(Some(0))).await;
    let theirs = world.take(&["a"], 1).await.remove(0);
    assert_eq!(theirs.id, ours.id);
    let process = living(world.process());
    let lost = world.beat(process.clone(), vec![(ours.id, ours.token)]).await.unwrap();
    assert_eq!(lost, [Lost { id: ours.id, token: ours.token, cancelled: false }]);
    assert_eq!(world.beat(process, vec![(theirs.id, theirs.token)]).await.unwrap(), []);
}

async fn a_task_cancelled_after_it_was_taken_over_is_not_ours_to_stop(world: World) {
    let ours = world.running().await;
    world.happen(ours.id, &fail(Some(0))).await;
    world.take(&["a"], 1).await;
    world.happen(ours.id, &CANCEL).await;
    let process = living(world.process());
    let lost = world.beat(process, vec![(ours.id, ours.token)]).await.unwrap();
    assert_eq!(lost, [Lost { id: ours.id, token: ours.token, cancelled: false }]);
}

async fn tasks_of_a_silent_process_are_orphans(world: World) {
    let process = living(world.process());
    world.beat(process.clone(), Vec::new()).await.unwrap();
    world.make_many("a", 3).await;
    let held = claim_as(&world, process.id, 2).await;
    assert_eq!(orphans(&world).await, []);
    silence(&world, process.id).await;
    assert_eq!(orphans(&world).await, [held[0].id, held[1].id]);
    let read = world.orphans(STALE, 100).await.unwrap();
    assert!(read.contains(&world.read(held[0].id).await));
    world.beat(process, Vec::new()).await.unwrap();
    assert_eq!(orphans(&world).await, [], "it was only slow");
}

async fn tasks_of_a_process_without_a_row_are_orphans(world: World) {
    let running = world.running().await;
    assert_eq!(orphans(&world).await, [running.id]);
    world.execute("UPDATE kodus_workflow.tasks SET process = NULL").await;
    assert_eq!(orphans(&world).await, [running.id], "a task that nobody has is nobody's");
}

async fn tasks_of_a_living_process_are_no_orphans(world: World) {
    let (alive, dead) = (world.process(), world.process());
    for process in [alive, dead] {
        world.beat(living(process), Vec::new()).await.unwrap();
    }
    world.make_many("a", 4).await;
    claim_as(&world, alive, 2).await;
    let left = claim_as(&world, dead, 2).await;
    silence(&world, dead).await;
    assert_eq!(orphans(&world).await, [left[0].id, left[1].id]);
}

async fn a_process_that_retires_leaves_no_row(world: World) {
    let (one, other) = (world.process(), world.process());
    for process in [one, other] {
        world.beat(living(process), Vec::new()).await.unwrap();
    }
    world.retire(one).await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.processes").await, 1);
    world.retire(one).await.unwrap();
    world.beat(living(one), Vec::new()).await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.processes").await, 2);
}

async fn orphans_are_no_more_than_asked(world: World) {
    world.make_many("a", 5).await;
    world.take(&["a"], 5).await;
    assert_eq!(world.orphans(STALE, 3).await.unwrap().len(), 3);
    assert_eq!(world.orphans(STALE, 10).await.unwrap().len(), 5);
}
