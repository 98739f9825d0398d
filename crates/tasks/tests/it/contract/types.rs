//! Which types there are, and what waits of each.

use std::time::Duration;

use lavra_tasks::store::NewRow;

use crate::support::shorthand::CANCEL;
use crate::support::{World, on_each_engine};

on_each_engine!(types_are_declared_once, what_waits_is_counted_by_type);

async fn types_are_declared_once(world: World) {
    assert!(world.declared().await.unwrap().is_empty());
    world.declare(vec!["b".into(), "a".into(), "b".into(), "Z".into()]).await.unwrap();
    world.declare(vec!["c".into(), "a".into()]).await.unwrap();
    world.declare(Vec::new()).await.unwrap();
    assert_eq!(world.declared().await.unwrap(), ["Z", "a", "b", "c"], "by their bytes");
}

async fn what_waits_is_counted_by_type(world: World) {
    assert!(world.waiting().await.unwrap().is_empty());
    let first = world.make_one("a").await;
    world.make_many("a", 2).await;
    let delayed = NewRow { delay: Some(Duration::from_secs(60)), ..world.row("a") };
    let due = NewRow { delay: Some(Duration::from_secs(60)), ..world.row("b") };
    world.make(vec![delayed, due.clone()]).await;
    let sql = format!(
        "UPDATE kodus_workflow.tasks SET run_at = '2020-01-01T00:00:00Z' WHERE id = '{}'",
        due.id
    );
    world.execute(&sql).await;
    let ended = world.make_one("c").await;
    world.happen(ended, &CANCEL).await;
    let waiting = world.waiting().await.unwrap();
    let counts: Vec<(&str, i64)> =
        waiting.iter().map(|waiting| (waiting.kind.as_str(), waiting.ready)).collect();
    assert_eq!(counts, [("a", 3), ("b", 1)], "what is due waits, what is not does not");
    assert_eq!(waiting[0].oldest, Some(world.read(first).await.created_at));
}
