//! The claim is the delivery.

use std::collections::HashSet;
use std::time::Duration;

use lavra_tasks::model::{Actor, Status, TaskId};
use lavra_tasks::store::{Claim, NewRow};
use serde_json::json;

use crate::support::shorthand::{MANY, QUIET, fail};
use crate::support::{World, at_once, on_each_engine};

on_each_engine!(
    a_task_is_claimed_once,
    a_claim_marks_the_task_and_says_so,
    the_input_comes_with_the_claim,
    the_highest_priority_comes_first_then_the_oldest,
    the_order_holds_among_tasks_that_became_due,
    due_and_ready_tasks_are_one_order,
    only_the_asked_types_are_claimed,
    several_types_are_one_order,
    a_claim_takes_no_more_than_its_limit,
    a_task_of_the_future_waits_until_it_is_due,
    one_task_is_claimed_before_its_time_by_who_asks_for_it,
    claimers_never_share_a_task,
    a_claim_of_nothing_writes_nothing,
    tokens_grow_with_each_claim,
    a_claim_is_later_than_what_came_before,
    a_large_claim_is_whole,
);

fn ids(claimed: &[lavra_tasks::model::Claimed]) -> Vec<TaskId> {
    claimed.iter().map(|one| one.id).collect()
}

async fn due_since(world: &World, id: TaskId, time: &str) {
    let sql = format!("UPDATE kodus_workflow.tasks SET run_at = '{time}' WHERE id = '{id}'");
    world.execute(&sql).await;
}

async fn a_task_is_claimed_once(world: World) {
    let id = world.make_one("a").await;
    assert_eq!(ids(&world.take(&["a"], 10).await), [id]);
    assert_eq!(ids(&world.take(&["a"], 10).await), []);
}

async fn a_claim_marks_the_task_and_says_so(world: World) {
    let row = NewRow {
        metadata: json!({"m": 1}).to_string(),
        priority: 4,
        max_retries: 9,
        ..world.row("a")
    };
    world.make(vec![row.clone()]).await;
    let process = world.process();
    let claim = Claim { process, kinds: vec!["a".into()], limit: 1 };
    let claimed = world.claim(claim).await.unwrap().remove(0);
    assert_eq!((claimed.id, claimed.kind.as_str(), claimed.priority), (row.id, "a", 4));
    assert_eq!((claimed.attempts, claimed.retry_count, claimed.max_retries), (1, 0, 9));
    assert_eq!((claimed.version, &claimed.metadata), (1, &json!({"m": 1})));

    let task = world.read(row.id).await;
    assert_eq!((task.status, task.state.as_str()), (Status::InProgress, "Started"));
    assert_eq!((task.progress, task.attempts, task.version), (0, 1, 1));
    assert_eq!((task.token, task.process), (claimed.token, Some(process)));
    assert_eq!((task.created_at, task.run_at), (claimed.created_at, None));
    assert!(task.updated_at > task.created_at);

    let event = world.history(row.id).await.remove(1);
    assert_eq!((event.status, event.actor, event.version), (Status::InProgress, Actor::Worker, 1));
    assert_eq!(event.state.as_deref(), Some("Started"));
    let detail = json!({"action": "start", "attempt": 1, "process": process});
    assert_eq!((event.detail, event.created_at), (Some(detail), task.updated_at));
}

async fn the_input_comes_with_the_claim(world: World) {
    let row = NewRow { payload: json!({"deep": [1, {"x": null}]}).to_string(), ..world.row("a") };
    world.make(vec![row]).await;
    let claimed = world.take(&["a"], 1).await.remove(0);
    let payload: serde_json::Value = serde_json::from_str(claimed.payload.get()).unwrap();
    assert_eq!(payload, json!({"deep": [1, {"x": null}]}));
}

async fn the_highest_priority_comes_first_then_the_oldest(world: World) {
    let rows: Vec<NewRow> = [1, 5, 5, -3, 9, 1]
        .iter()
        .map(|priority| NewRow { priority: *priority, ..world.row("a") })
        .collect();
    let made: Vec<TaskId> = rows.iter().map(|row| row.id).collect();
    world.create(rows, QUIET).await.unwrap();
    let expected = [4, 1, 2, 0, 5, 3].map(|place| made[place]);
    assert_eq!(ids(&world.take(&["a"], 2).await), expected[..2]);
    assert_eq!(ids(&world.take(&["a"], 10).await), expected[2..]);
}

async fn the_order_holds_among_tasks_that_became_due(world: World) {
    let urgent = NewRow { priority: 9, ..world.row("a") };
    let (low, urgent) = (world.make_one("a").await, world.make(vec![urgent]).await[0]);
    due_since(&world, low, "2020-01-01T00:00:00Z").await;
    due_since(&world, urgent, "2021-01-01T00:00:00Z").await;
    assert_eq!(ids(&world.take(&["a"], 1).await), [urgent], "the other one is due for longer");
    assert_eq!(ids(&world.take(&["a"], 1).await), [low]);
}

async fn due_and_ready_tasks_are_one_order(world: World) {
    let made = world.make_many("a", 4).await;
    due_since(&world, made[0], "2020-01-01T00:00:00Z").await;
    due_since(&world, made[2], "2021-01-01T00:00:00Z").await;
    assert_eq!(ids(&world.take(&["a"], 3).await), made[..3]);
    assert_eq!(ids(&world.take(&["a"], 3).await), made[3..]);
}

async fn only_the_asked_types_are_claimed(world: World) {
    let a = world.make_one("a").await;
    world.make_one("b").await;
    let c = world.make_one("c").await;
    assert_eq!(ids(&world.take(&["a", "c", "nobody's"], 10).await), [a, c]);
    assert_eq!(ids(&world.take(&[], 10).await), []);
}

async fn several_types_are_one_order(world: World) {
    let rows: Vec<NewRow> = [("a", 1), ("b", 2), ("a", 2), ("b", 3), ("c", 3)]
        .iter()
        .map(|(kind, priority)| NewRow { priority: *priority, ..world.row(kind) })
        .collect();
    let made: Vec<TaskId> = rows.iter().map(|row| row.id).collect();
    world.create(rows, QUIET).await.unwrap();
    let expected = [3, 4, 1, 2].map(|place| made[place]);
    assert_eq!(ids(&world.take(&["c", "b", "a"], 4).await), expected);
}

async fn a_claim_takes_no_more_than_its_limit(world: World) {
    world.make_many("a", 5).await;
    assert_eq!(world.take(&["a"], 0).await.len(), 0);
    assert_eq!(world.take(&["a"], 2).await.len(), 2);
    assert_eq!(world.take(&["a"], 10).await.len(), 3);
}

async fn a_task_of_the_future_waits_until_it_is_due(world: World) {
    let delayed = NewRow { delay: Some(Duration::from_secs(60)), ..world.row("a") };
    world.make(vec![delayed.clone()]).await;
    assert_eq!(ids(&world.take(&["a"], 10).await), []);
    due_since(&world, delayed.id, "2020-01-01T00:00:00Z").await;
    assert_eq!(ids(&world.take(&["a"], 10).await), [delayed.id]);
    assert_eq!(world.read(delayed.id).await.run_at, None);
}

async fn one_task_is_claimed_before_its_time_by_who_asks_for_it(world: World) {
    let other = world.make_one("a").await;
    let delayed = NewRow { delay: Some(Duration::from_secs(60)), ..world.row("a") };
    world.make(vec![delayed.clone()]).await;
    let process = world.process();
    let claimed = world.claim_this(delayed.id, process).await.unwrap().unwrap();
    assert_eq!((claimed.id, claimed.attempts, claimed.version), (delayed.id, 1, 1));
    let task = world.read(delayed.id).await;
    assert_eq!((task.status, task.run_at), (Status::InProgress, None));
    assert_eq!((task.token, task.process), (claimed.token, Some(process)));
    assert_eq!(world.history(delayed.id).await.len(), 2);
    assert!(world.claim_this(delayed.id, process).await.unwrap().is_none(), "claimed twice");
    assert_eq!(ids(&world.take(&["a"], 10).await), [other]);
}

async fn claimers_never_share_a_task(world: World) {
    let made: HashSet<TaskId> = world.make_many("a", 200).await.into_iter().collect();
    let process = world.process();
    let claimed = at_once(8, |_| {
        let store = world.store.clone();
        async move {
            let mut all = Vec::new();
            loop {
                let claim = Claim { process, kinds: vec!["a".into()], limit: 7 };
                let claimed = store.claim(claim).await.unwrap();
                if claimed.is_empty() {
                    return all;
                }
                all.extend(claimed.into_iter().map(|one| one.id));
            }
        }
    })
    .await;
    let claimed: Vec<TaskId> = claimed.into_iter().flatten().collect();
    assert_eq!(claimed.len(), 200, "a task was claimed twice, or not at all");
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), made);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.task_events").await, 400);
}

async fn a_claim_of_nothing_writes_nothing(world: World) {
    let running = world.running().await;
    world.make_one("b").await;
    let before = world.stream().await;
    let task = world.read(running.id).await;
    let begun = std::time::Instant::now();
    for _ in 0..10 {
        assert_eq!(world.take(&["a", "c"], 100).await.len(), 0);
    }
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "ten empty claims took {:?}",
        begun.elapsed()
    );
    assert_eq!(world.read(running.id).await, task);
    assert_eq!(world.stream().await, before);
    let next = world.take(&["b"], 1).await.remove(0);
    assert!(next.token > running.token);
}

async fn tokens_grow_with_each_claim(world: World) {
    let first = world.running().await;
    world.happen(first.id, &fail(Some(0))).await;
    let second = world.take(&["a"], 1).await.remove(0);
    assert_eq!((second.id, second.attempts, second.retry_count), (first.id, 2, 1));
    assert!(second.token > first.token);
    let third = world.running().await;
    assert!(third.token > second.token);
}

async fn a_claim_is_later_than_what_came_before(world: World) {
    let id = world.make_one("a").await;
    let future = "UPDATE kodus_workflow.tasks SET updated_at = '2199-01-01T00:00:00Z'";
    world.execute(future).await;
    world.take(&["a"], 1).await;
    let task = world.read(id).await;
    assert_eq!(task.updated_at.to_string(), "2199-01-01T00:00:00.000001Z");
    assert_eq!(world.history(id).await[1].created_at, task.updated_at);
}

async fn a_large_claim_is_whole(world: World) {
    let made = world.make_many("a", MANY).await;
    let claimed = world.take(&["a"], 2 * MANY).await;
    assert_eq!(ids(&claimed), made);
    assert!(claimed.iter().all(|one| one.token == claimed[0].token && one.version == 1));
    let sql = "SELECT count(*) FROM kodus_workflow.tasks
               WHERE status = 'IN_PROGRESS' AND version = 1 AND attempts = 1";
    assert_eq!(world.count(sql).await, MANY as i64);
}
