//! A task comes into being whole, or not at all.

use std::time::Duration;

use lavra_tasks::model::{Actor, Status};
use lavra_tasks::store::{Made, NewRow};
use serde_json::json;

use crate::support::shorthand::{ANNOUNCED, MANY, QUIET, hash, key};
use crate::support::{World, at_once, on_each_engine};

on_each_engine!(
    a_new_task_has_its_row_input_and_event,
    an_announced_task_has_an_outbox_row_that_is_its_creators_for_a_while,
    a_delayed_task_is_not_announced,
    nothing_of_a_call_is_made_when_one_row_is_wrong,
    a_wrong_neighbour_costs_the_others_nothing,
    tasks_without_a_hash_are_never_the_same,
    nothing_to_make_is_no_error,
    many_tasks_are_made_in_one_call,
    of_many_tasks_none_is_made_when_one_cannot_be,
);

async fn a_new_task_has_its_row_input_and_event(world: World) {
    let row = NewRow {
        priority: 7,
        metadata: json!({"tenant": "t1"}).to_string(),
        payload: json!({"repo": "lavra"}).to_string(),
        input_hash: Some(hash(1)),
        max_retries: 5,
        detail: json!({"action": "create", "request": {"type": "a"}}).to_string(),
        ..world.row("a")
    };
    let before = world.clock().now();
    assert_eq!(world.create(vec![row.clone()], QUIET).await.unwrap(), [Made::New]);

    let task = world.read(row.id).await;
    assert_eq!((task.id, task.kind.as_str()), (row.id, "a"));
    assert_eq!((task.status, task.state.as_str()), (Status::Pending, "Queued"));
    assert_eq!((task.progress, task.priority, task.version), (0, 7, 0));
    assert_eq!((task.retry_count, task.max_retries, task.attempts), (0, 5, 0));
    assert_eq!(task.metadata, json!({"tenant": "t1"}));
    assert_eq!(task.input_hash, Some(hash(1)));
    assert_eq!((task.error, task.run_at, task.process, task.stop_by), (None, None, None, None));
    assert_eq!(task.created_at, task.updated_at);
    assert!(task.created_at.duration_since(before).abs().as_secs() < 5, "made at another time");
    assert_eq!(world.input(row.id).await.unwrap(), Some(json!({"repo": "lavra"})));
    assert_eq!(world.result(row.id).await.unwrap(), None);

    let events = world.history(row.id).await;
    let [event] = events.as_slice() else { panic!("not one event: {events:?}") };
    assert_eq!((event.id, event.task_id, event.version), (row.event, row.id, 0));
    assert_eq!((event.status, event.actor), (Status::Pending, Actor::Api));
    assert_eq!(event.state.as_deref(), Some("Queued"));
    assert_eq!(event.detail, Some(json!({"action": "create", "request": {"type": "a"}})));
    assert_eq!(event.created_at, task.created_at);
    assert_eq!(world.outbox_depth().await.unwrap(), 0);
}

async fn an_announced_task_has_an_outbox_row_that_is_its_creators_for_a_while(world: World) {
    let row = world.row("a");
    world.create(vec![row.clone()], ANNOUNCED).await.unwrap();
    assert_eq!(world.outbox_depth().await.unwrap(), 1);
    let lease = Duration::from_secs(60);
    assert_eq!(world.take_announcements(lease, 10).await.unwrap(), [], "the creator publishes it");

    world.execute("UPDATE kodus_workflow.task_outbox SET next_at = '2020-01-01T00:00:00Z'").await;
    let taken = world.take_announcements(lease, 10).await.unwrap();
    let [message] = taken.as_slice() else { panic!("not one message: {taken:?}") };
    assert_eq!((message.id.0, message.task, message.kind.as_str()), (row.event.0, row.id, "a"));
}

async fn a_delayed_task_is_not_announced(world: World) {
    let row = NewRow { delay: Some(Duration::from_secs(90)), ..world.row("a") };
    world.create(vec![row.clone()], ANNOUNCED).await.unwrap();
    assert_eq!(world.outbox_depth().await.unwrap(), 0);
    let task = world.read(row.id).await;
    let wait = task.run_at.unwrap().duration_since(task.created_at);
    assert_eq!(wait.as_secs(), 90);
}

async fn nothing_of_a_call_is_made_when_one_row_is_wrong(world: World) {
    let good = NewRow { key: Some(key("k", 1)), input_hash: Some(hash(1)), ..world.row("a") };
    let bad = NewRow { metadata: "{".into(), ..world.row("a") };
    world.create(vec![good.clone(), bad], ANNOUNCED).await.unwrap_err();

    for table in ["tasks", "task_inputs", "task_events", "task_keys", "task_outbox"] {
        let left = world.count(&format!("SELECT count(*) FROM kodus_workflow.{table}")).await;
        assert_eq!(left, 0, "something is left in {table}");
    }
    assert_eq!(world.create(vec![good], ANNOUNCED).await.unwrap(), [Made::New]);
}

async fn a_wrong_neighbour_costs_the_others_nothing(world: World) {
    let rows: Vec<NewRow> = (0..20)
        .map(|n| NewRow {
            metadata: if n % 4 == 3 { "{".into() } else { "{}".into() },
            key: Some(key(&format!("k{n}"), n)),
            ..world.row("a")
        })
        .collect();
    let made = at_once(20, |place| {
        let (store, row) = (world.store.clone(), rows[place].clone());
        async move { store.create(vec![row], ANNOUNCED).await }
    })
    .await;
    for (n, (made, row)) in made.iter().zip(&rows).enumerate() {
        assert_eq!(made.is_ok(), n % 4 != 3, "creator {n}: {made:?}");
        assert_eq!(world.history(row.id).await.len(), usize::from(made.is_ok()));
    }
    for table in ["tasks", "task_inputs", "task_events", "task_keys", "task_outbox"] {
        let rows = world.count(&format!("SELECT count(*) FROM kodus_workflow.{table}")).await;
        assert_eq!(rows, 15, "{table}");
    }
}

async fn tasks_without_a_hash_are_never_the_same(world: World) {
    let rows: Vec<NewRow> = (0..5).map(|_| world.row("a")).collect();
    assert_eq!(world.create(rows, QUIET).await.unwrap(), vec![Made::New; 5]);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.tasks").await, 5);
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.task_inputs").await, 5);
}

async fn nothing_to_make_is_no_error(world: World) {
    assert_eq!(world.create(Vec::new(), ANNOUNCED).await.unwrap(), []);
}

async fn many_tasks_are_made_in_one_call(world: World) {
    let row = |n: usize| NewRow {
        priority: (n % 10) as i16,
        metadata: json!({"tenant": format!("t{n}")}).to_string(),
        payload: json!({"page": n, "name": "São João \\ \t \"x\""}).to_string(),
        max_retries: 5,
        detail: json!({"action": "create", "n": n}).to_string(),
        ..world.row("a")
    };
    let rows: Vec<NewRow> = (0..MANY).map(row).collect();
    let made = world.create(rows.clone(), ANNOUNCED).await.unwrap();
    assert_eq!(made, vec![Made::New; MANY]);
    let many = MANY as i64;
    for table in ["tasks", "task_inputs", "task_events", "task_outbox"] {
        let rows = world.count(&format!("SELECT count(*) FROM kodus_workflow.{table}")).await;
        assert_eq!(rows, many, "{table}");
    }
    assert_eq!(world.take_announcements(Duration::from_secs(60), 10).await.unwrap(), []);
    for (n, row) in rows.iter().enumerate().step_by(MANY / 7) {
        let task = world.read(row.id).await;
        assert_eq!((task.kind.as_str(), task.status), ("a", Status::Pending));
        assert_eq!((task.state.as_str(), task.version), ("Queued", 0));
        assert_eq!((task.priority, task.max_retries), ((n % 10) as i16, 5));
        assert_eq!(task.metadata, json!({"tenant": format!("t{n}")}));
        let input = json!({"page": n, "name": "São João \\ \t \"x\""});
        assert_eq!(world.input(row.id).await.unwrap(), Some(input));
        let events = world.history(row.id).await;
        let [event] = events.as_slice() else { panic!("not one event: {events:?}") };
        assert_eq!((event.id, event.version, event.actor), (row.event, 0, Actor::Api));
        assert_eq!(event.detail, Some(json!({"action": "create", "n": n})));
        assert_eq!(event.created_at, task.created_at);
    }
    assert_eq!(world.take(&["a"], 1).await[0].id, rows[9].id, "the first of the highest priority");
}

async fn of_many_tasks_none_is_made_when_one_cannot_be(world: World) {
    let mut rows: Vec<NewRow> = (0..MANY).map(|_| world.row("a")).collect();
    rows[MANY - 1].metadata = "{".into();
    assert!(world.create(rows, ANNOUNCED).await.is_err());
    for table in ["tasks", "task_inputs", "task_events", "task_outbox"] {
        let rows = world.count(&format!("SELECT count(*) FROM kodus_workflow.{table}")).await;
        assert_eq!(rows, 0, "{table}");
    }
    assert_eq!(world.make_many("a", MANY).await.len(), MANY, "the store goes on");
}
