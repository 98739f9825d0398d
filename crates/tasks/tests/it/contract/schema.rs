//! The whole life of a task in a schema of another name (`DB_SCHEMA`).

use std::time::Duration;

use jiff::SignedDuration;
use lavra_tasks::machine::Happening;
use lavra_tasks::model::Status;
use lavra_tasks::store::{Expiry, ListFilter, Made, NewRow, Schedule};
use serde_json::json;

use crate::support::shorthand::{ANNOUNCED, CANCEL, fail, hash, key, living, step};
use crate::support::{World, on_each_engine};

on_each_engine!(a_task_lives_in_a_schema_of_another_name);

async fn a_task_lives_in_a_schema_of_another_name(world: World) {
    let world = world.with_schema("other_flow").await;
    let sql = "SELECT count(*) FROM information_schema.tables
               WHERE table_schema = 'kodus' || '_workflow'";
    assert_eq!(world.count(sql).await, 0, "nothing may stand in the default schema");
    assert_eq!(world.count("SELECT count(*) FROM other_flow.tasks").await, 0);
    work(&world).await;
    look(&world).await;
    clean(&world).await;
}

async fn work(world: &World) {
    world.declare(vec!["a".into()]).await.unwrap();
    assert_eq!(world.declared().await.unwrap(), ["a"]);
    let row = NewRow { input_hash: Some(hash(1)), key: Some(key("k", 1)), ..world.row("a") };
    let made =
        world.create(vec![row.clone(), world.row("a"), world.row("a")], ANNOUNCED).await.unwrap();
    assert_eq!(made, vec![Made::New; 3]);
    let again = NewRow { key: None, ..NewRow { id: world.row("a").id, ..row.clone() } };
    assert_eq!(world.create(vec![again], ANNOUNCED).await.unwrap(), [Made::Existing(row.id)]);

    let process = living(world.process());
    world.beat(process.clone(), Vec::new()).await.unwrap();
    let claimed = world.take(&["a"], 3).await;
    world.happen(claimed[0].id, &step(10, "on")).await;
    let mut complete = world.decide(claimed[0].id, &Happening::Complete).await;
    (complete.result, complete.metadata) = (Some(json!({})), Some(json!({"m": 1})));
    world.write_one(complete).await;
    world.happen(claimed[1].id, &fail(None)).await;
    world.happen(claimed[1].id, &Happening::Retry).await;
    world.happen(claimed[2].id, &CANCEL).await;
    let held = claimed.iter().map(|one| (one.id, one.token)).collect();
    assert_eq!(world.beat(process.clone(), held).await.unwrap().len(), 3);
    assert_eq!(world.overdue_stops(10).await.unwrap(), []);
    world.take(&["a"], 3).await;
    assert_eq!(world.orphans(Duration::from_secs(10), 10).await.unwrap().len(), 1);
    world.retire(process.id).await.unwrap();

    assert_eq!(world.outbox_depth().await.unwrap(), 3);
    world.execute("UPDATE other_flow.task_outbox SET next_at = '2020-01-01T00:00:00Z'").await;
    let taken = world.take_announcements(Duration::from_secs(9), 10).await.unwrap();
    world.postpone(vec![taken[0].id], Duration::ZERO).await.unwrap();
    world.announced(vec![taken[1].id]).await.unwrap();
    assert_eq!(world.announce_again("a".into(), Duration::ZERO, 10).await.unwrap(), 0);
}

async fn look(world: &World) {
    let all = world.list(ListFilter { limit: 10, ..ListFilter::default() }).await.unwrap();
    let statuses: Vec<Status> = all.iter().map(|task| task.status).collect();
    assert_eq!(statuses, [Status::Cancelled, Status::InProgress, Status::Completed]);
    let done = all[2].id;
    assert!(world.input(done).await.unwrap().is_some());
    assert!(world.result(done).await.unwrap().is_some());
    assert_eq!(world.newest_events(done, 10).await.unwrap().len(), 4);
    assert_eq!(world.stream().await.len(), 12);
    let end = world.stream_end().await.unwrap();
    assert_eq!(world.stream_since(end, 10).await.unwrap(), []);
    assert!(world.waiting().await.unwrap().is_empty());
}

async fn clean(world: &World) {
    let schedule = Schedule {
        name: "nightly".into(),
        kind: "a".into(),
        cron: "0 3 * * *".into(),
        payload: json!({}),
        enabled: true,
        next_at: "2026-01-02T03:00:00Z".parse().unwrap(),
        last_task: None,
    };
    world.put_schedule(schedule.clone()).await.unwrap();
    let to = "2026-01-03T03:00:00Z".parse().unwrap();
    assert!(
        world
            .fire("nightly".into(), schedule.next_at, Some(to), world.row("a"), true)
            .await
            .unwrap()
    );
    assert_eq!(world.schedules().await.unwrap().len(), 1);
    assert!(world.remove_schedule("nightly".into()).await.unwrap());

    let letter = lavra_tasks::store::DeadLetter {
        id: lavra_tasks::model::DeadLetterId(world.clock().new_id()),
        task_id: None,
        kind: None,
        reason: "unreadable".into(),
        body: None,
        created_at: world.clock().now(),
    };
    world.bury(letter.clone()).await.unwrap();
    assert!(world.dead_letter(letter.id).await.unwrap().is_some());
    assert_eq!(world.dead_letters(None, 10).await.unwrap().len(), 1);
    assert!(world.remove_dead_letter(letter.id).await.unwrap());

    let later = world.clock().now() + SignedDuration::from_hours(1);
    let expiry = Expiry { completed_before: later, cancelled_before: later, failed_before: later };
    let expired = world.expired(expiry, 10).await.unwrap();
    assert_eq!(world.dossiers(expired.clone()).await.unwrap().len(), 2);
    let gone = expired.iter().map(|task| (task.id, task.version)).collect();
    assert_eq!(world.remove(gone).await.unwrap(), 2);
    assert_eq!(world.sweep_history(later, 100).await.unwrap(), 0, "the rest is alive");
}
