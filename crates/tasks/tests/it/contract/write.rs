//! A guarded change applies whole, or leaves no trace.

use lavra_tasks::machine::Happening;
use lavra_tasks::model::{Actor, Event, Status, TaskId};
use lavra_tasks::store::{Guard, Step, Write, Written};
use serde_json::json;

use crate::support::shorthand::{MANY, fail, step};
use crate::support::{World, at_once, on_each_engine};

on_each_engine!(
    a_completed_task_has_its_result,
    only_a_completion_has_a_result,
    a_wrong_token_is_refused_and_leaves_no_trace,
    a_wrong_version_is_refused_and_leaves_no_trace,
    a_wrong_status_is_refused_and_leaves_no_trace,
    a_task_that_is_not_there_is_refused,
    a_mixed_batch_applies_exactly_the_good_ones,
    a_guard_without_token_and_version_asks_only_for_the_status,
    steps_and_the_end_are_one_write_with_gapless_versions,
    events_of_a_task_never_share_a_time,
    of_twenty_writers_at_one_version_one_wins,
    writers_of_overlapping_sets_do_not_block_each_other,
    a_large_batch_is_whole,
    nothing_to_write_is_no_error,
);

/// Everything that a refused write could have left.
async fn traces(world: &World, id: TaskId) -> (lavra_tasks::model::Task, Vec<Event>, [i64; 3]) {
    let mut counts = [0; 3];
    for (count, table) in
        counts.iter_mut().zip(["task_results", "task_dead_letters", "task_outbox"])
    {
        *count = world.count(&format!("SELECT count(*) FROM kodus_workflow.{table}")).await;
    }
    (world.read(id).await, world.history(id).await, counts)
}

async fn is_refused(world: &World, write: Write) {
    let before = traces(world, write.id).await;
    let id = write.id;
    assert_eq!(world.write_one(write).await, Written::Refused);
    assert_eq!(traces(world, id).await, before);
}

async fn a_completed_task_has_its_result(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &Happening::Complete).await;
    write.result = Some(json!({"path": "s3://bucket/x", "bytes": 12}));
    assert_eq!(world.write_one(write).await, Written::Applied { version: 2 });

    let task = world.read(running.id).await;
    assert_eq!((task.status, task.state.as_str()), (Status::Completed, "Completed"));
    assert_eq!((task.progress, task.version, task.error), (100, 2, None));
    let result = world.result(running.id).await.unwrap().unwrap();
    assert_eq!(result.task_id, running.id);
    assert_eq!(result.payload, json!({"path": "s3://bucket/x", "bytes": 12}));
    assert!(result.created_at >= task.created_at);
    let last = world.history(running.id).await.pop().unwrap();
    assert_eq!((last.status, last.actor, last.version), (Status::Completed, Actor::Worker, 2));
    assert_eq!(
        (last.detail, last.created_at),
        (Some(json!({"action": "complete"})), task.updated_at)
    );
}

async fn only_a_completion_has_a_result(world: World) {
    let running = world.running().await;
    let mut first = world.decide(running.id, &fail(None)).await;
    first.result = Some(json!({"half": true}));
    world.write_one(first).await;
    assert!(world.result(running.id).await.unwrap().is_none());
    world.happen(running.id, &Happening::Retry).await;
    world.take(&["a"], 1).await;
    let mut second = world.decide(running.id, &Happening::Complete).await;
    second.result = Some(json!(null));
    world.write_one(second).await;
    assert_eq!(world.result(running.id).await.unwrap().unwrap().payload, json!(null));
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.task_results").await, 1);
}

async fn a_wrong_token_is_refused_and_leaves_no_trace(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &Happening::Complete).await;
    write.guard = Guard { token: Some(running.token - 1), version: None, ..write.guard };
    write.result = Some(json!({}));
    write.metadata = Some(json!({"x": 1}));
    is_refused(&world, write).await;
}

async fn a_wrong_version_is_refused_and_leaves_no_trace(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &fail(None)).await;
    write.guard.version = Some(0);
    is_refused(&world, write).await;
}

async fn a_wrong_status_is_refused_and_leaves_no_trace(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &Happening::Interrupt).await;
    write.announce = true;
    write.guard.status = Status::Pending;
    is_refused(&world, write).await;
}

async fn a_task_that_is_not_there_is_refused(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &Happening::Complete).await;
    write.id = TaskId(world.clock().new_id());
    assert_eq!(world.write_one(write).await, Written::Refused);
}

async fn a_mixed_batch_applies_exactly_the_good_ones(world: World) {
    world.make_many("a", 6).await;
    let running = world.take(&["a"], 6).await;
    let mut writes = Vec::new();
    for (place, one) in running.iter().enumerate() {
        let mut write = world.decide(one.id, &Happening::Complete).await;
        write.result = Some(json!({"place": place}));
        match place {
            1 => write.guard.token = Some(one.token + 1),
            3 => write.guard.version = Some(17),
            4 => write.guard.status = Status::Cancelled,
            _ => {}
        }
        writes.push(write);
    }
    let good = Written::Applied { version: 2 };
    let expected = [good, Written::Refused, good, Written::Refused, Written::Refused, good];
    assert_eq!(world.write(writes).await.unwrap(), expected);
    for (one, written) in running.iter().zip(expected) {
        let is_good = written == good;
        let status = if is_good { Status::Completed } else { Status::InProgress };
        assert_eq!(world.read(one.id).await.status, status);
        assert_eq!(world.history(one.id).await.len(), if is_good { 3 } else { 2 });
        assert_eq!(world.result(one.id).await.unwrap().is_some(), is_good);
    }
}

async fn a_guard_without_token_and_version_asks_only_for_the_status(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &Happening::Complete).await;
    write.guard = Guard { status: Status::InProgress, token: None, version: None };
    assert_eq!(world.write_one(write).await, Written::Applied { version: 2 });
}

async fn steps_and_the_end_are_one_write_with_gapless_versions(world: World) {
    let running = world.running().await;
    let mut write = world.decide(running.id, &Happening::Complete).await;
    write.steps = (1..=4)
        .map(|n| Step {
            status: Status::InProgress,
            state: format!("step {n}"),
            actor: Actor::Worker,
            detail: json!({"n": n}),
        })
        .collect();
    assert_eq!(world.write_one(write).await, Written::Applied { version: 6 });

    let events = world.history(running.id).await;
    let states: Vec<&str> = events.iter().filter_map(|event| event.state.as_deref()).collect();
    let expected = ["Queued", "Started", "step 1", "step 2", "step 3", "step 4", "Completed"];
    assert_eq!(states, expected);
    assert_eq!(events[3].detail, Some(json!({"n": 2})));
    assert!(events.iter().zip(0..).all(|(event, version)| event.version == version));
    assert!(events.is_sorted_by(|a, b| a.created_at < b.created_at), "{events:#?}");
    assert!(events.is_sorted_by(|a, b| a.id < b.id), "{events:#?}");
    let task = world.read(running.id).await;
    assert_eq!((task.version, task.updated_at), (6, events[6].created_at));
}

async fn events_of_a_task_never_share_a_time(world: World) {
    let running = world.running().await;
    // A clock that stands still, far ahead: only the rule makes times grow.
    world.execute("UPDATE kodus_workflow.tasks SET updated_at = '2199-01-01T00:00:00Z'").await;
    for n in 1..=5 {
        let mut write = world.decide(running.id, &step(n, "on")).await;
        write.steps = vec![Step {
            status: Status::InProgress,
            state: "in between".into(),
            actor: Actor::Worker,
            detail: json!({}),
        }];
        world.write_one(write).await;
    }
    let events = world.history(running.id).await;
    assert_eq!(events.len(), 12);
    assert!(events.is_sorted_by(|a, b| a.created_at < b.created_at), "{events:#?}");
    assert_eq!(world.read(running.id).await.updated_at.to_string(), "2199-01-01T00:00:00.00001Z");
}

async fn of_twenty_writers_at_one_version_one_wins(world: World) {
    let running = world.running().await;
    let write = world.decide(running.id, &step(10, "on")).await;
    let written = at_once(20, |_| {
        let (store, write) = (world.store.clone(), write.clone());
        async move { store.write(vec![write]).await.unwrap().remove(0) }
    })
    .await;
    let won = written.iter().filter(|written| **written == Written::Applied { version: 2 }).count();
    assert_eq!((won, written.len()), (1, 20));
    assert_eq!(world.history(running.id).await.len(), 3);
}

async fn writers_of_overlapping_sets_do_not_block_each_other(world: World) {
    // Enough others that a server finds each by its key, in the order in which it is told.
    world.make_many("b", 3000).await;
    world.execute("ANALYZE kodus_workflow.tasks").await;
    world.make_many("a", 12).await;
    let running = world.take(&["a"], 12).await;
    for round in 0..20 {
        let mut writes = Vec::new();
        for one in &running {
            let mut write = world.decide(one.id, &step(round, "on")).await;
            write.guard.version = None;
            writes.push(write);
        }
        at_once(4, |place| {
            let (store, mut writes) = (world.store.clone(), writes.clone());
            if place % 2 == 1 {
                writes.reverse();
            }
            async move { store.write(writes).await.unwrap() }
        })
        .await;
    }
    let task = world.read(running[7].id).await;
    assert_eq!(task.version, 81, "every write of every writer counts");
}

async fn a_large_batch_is_whole(world: World) {
    world.make_many("a", MANY).await;
    let running = world.take(&["a"], MANY).await;
    let template = world.decide(running[0].id, &Happening::Complete).await;
    let writes = running.iter().map(|one| Write {
        id: one.id,
        result: Some(json!({"of": one.id})),
        metadata: Some(json!({"of": one.id})),
        ..template.clone()
    });
    let written = world.write(writes.collect()).await.unwrap();
    assert_eq!(written, vec![Written::Applied { version: 2 }; MANY]);
    for one in [&running[0], &running[150], &running[MANY - 1]] {
        assert_eq!(world.result(one.id).await.unwrap().unwrap().payload, json!({"of": one.id}));
        assert_eq!(world.read(one.id).await.metadata, json!({"of": one.id}));
    }
}

async fn nothing_to_write_is_no_error(world: World) {
    assert_eq!(world.write(Vec::new()).await.unwrap(), []);
}
