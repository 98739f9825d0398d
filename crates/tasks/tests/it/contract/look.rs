//! What people ask who look at tasks page by page.

use std::time::Duration;

use jiff::Timestamp;
use lavra_tasks::model::{DeadLetterId, Status, TaskId};
use lavra_tasks::store::{DeadLetter, NewRow};
use serde_json::{Value, json};

use crate::support::shorthand::{CANCEL, fail, living, step};
use crate::support::{World, on_each_engine};

on_each_engine!(
    tasks_are_counted_by_type_and_status,
    the_events_of_a_task_come_page_by_page,
    what_is_claimed_before_a_task_is_counted,
    tasks_are_found_by_what_their_input_names,
    processes_that_are_silent_do_not_live,
    dead_letters_are_counted,
);

async fn tasks_are_counted_by_type_and_status(world: World) {
    assert_eq!(world.counts().await.unwrap(), []);
    world.make_many("b", 3).await;
    let ended = world.make_one("b").await;
    world.happen(ended, &CANCEL).await;
    world.running().await;
    let counts = world.counts().await.unwrap();
    let counts: Vec<_> = counts.iter().map(|it| (it.kind.as_str(), it.status, it.count)).collect();
    assert_eq!(
        counts,
        [("a", Status::InProgress, 1), ("b", Status::Cancelled, 1), ("b", Status::Pending, 3),]
    );
}

async fn the_events_of_a_task_come_page_by_page(world: World) {
    let running = world.running().await;
    for n in 0..9 {
        world.happen(running.id, &step(n, "on")).await;
    }
    world.running().await;
    let (mut before, mut read) = (Timestamp::MAX, Vec::new());
    loop {
        let page = world.events_before(running.id, before, 4).await.unwrap();
        let Some(last) = page.last() else { break };
        before = last.created_at;
        read.extend(page);
    }
    let mut all = world.history(running.id).await;
    all.reverse();
    assert_eq!(read, all);
    assert_eq!(world.events_before(running.id, Timestamp::MIN, 4).await.unwrap(), []);
}

async fn what_is_claimed_before_a_task_is_counted(world: World) {
    let first = world.make_one("a").await;
    let urgent = NewRow { priority: 9, ..world.row("a") };
    let late = NewRow { delay: Some(Duration::from_secs(60)), ..world.row("a") };
    let due = NewRow { delay: Some(Duration::from_secs(60)), ..world.row("a") };
    world.make(vec![urgent.clone(), late, due.clone()]).await;
    let sql = format!(
        "UPDATE kodus_workflow.tasks SET run_at = '2020-01-01T00:00:00Z' WHERE id = '{}'",
        due.id
    );
    world.execute(&sql).await;
    let last = world.make_one("a").await;
    world.make_one("b").await;
    let place =
        async |id: TaskId, most: usize| world.ahead_of(&world.read(id).await, most).await.unwrap();
    assert_eq!(place(urgent.id, 10).await, 0);
    assert_eq!(place(first, 10).await, 1, "the urgent one");
    assert_eq!(place(last, 10).await, 3, "the urgent one, the first, and the one that is due");
    assert_eq!(place(last, 2).await, 2, "no more are counted than asked");
    let order: Vec<TaskId> = world.take(&["a"], 10).await.iter().map(|task| task.id).collect();
    assert_eq!(order, [urgent.id, first, due.id, last], "as the claim takes them");
}

async fn tasks_are_found_by_what_their_input_names(world: World) {
    let row =
        |kind: &str, payload: Value| NewRow { payload: payload.to_string(), ..world.row(kind) };
    let rows = vec![
        row("a", json!({"source": "pncp", "n": 1})),
        row("a", json!({"source": "other"})),
        row("a", json!("pncp")),
        row("a", json!(["source"])),
        row("a", Value::Null),
        row("b", json!({"source": "pncp"})),
        row("c", json!({"source": "pncp"})),
    ];
    let ids = world.make(rows).await;
    let found = async |kinds: &[&str], value: &str, limit: usize| -> Vec<TaskId> {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let found = world.about(kinds, "source", value, limit).await.unwrap();
        found.iter().map(|task| task.id).collect()
    };
    assert_eq!(found(&["a", "b"], "pncp", 10).await, [ids[5], ids[0]]);
    assert_eq!(found(&["a", "b"], "pncp", 1).await, [ids[5]]);
    assert_eq!(found(&["a"], "it's", 10).await, []);
    assert_eq!(found(&[], "pncp", 10).await, []);
    let whole = world.about(vec!["b".into()], "source", "pncp", 1).await.unwrap();
    assert_eq!(whole[0], world.read(ids[5]).await);
}

async fn processes_that_are_silent_do_not_live(world: World) {
    let (here, gone) = (living(world.process()), living(world.process()));
    world.beat(here.clone(), Vec::new()).await.unwrap();
    world.beat(gone.clone(), Vec::new()).await.unwrap();
    let sql = format!(
        "UPDATE kodus_workflow.processes SET beat_at = '2020-01-01T00:00:00Z' WHERE id = '{}'",
        gone.id
    );
    world.execute(&sql).await;
    assert_eq!(world.living(Duration::from_secs(60)).await.unwrap(), [here]);
}

async fn dead_letters_are_counted(world: World) {
    assert_eq!(world.count_dead_letters().await.unwrap(), 0);
    let letter = DeadLetter {
        id: DeadLetterId(world.clock().new_id()),
        task_id: None,
        kind: None,
        reason: "nobody can read it".into(),
        body: None,
        created_at: world.clock().now(),
    };
    world.bury(letter).await.unwrap();
    let running = world.running().await;
    world.happen(running.id, &fail(None)).await;
    assert_eq!(world.count_dead_letters().await.unwrap(), 2);
}
