//! The events of one task, in both directions.

use crate::support::shorthand::step;
use crate::support::{World, on_each_engine};

on_each_engine!(
    the_newest_events_come_first_and_no_more_than_asked,
    events_are_followed_from_a_version_on,
    a_task_without_events_has_none,
);

async fn the_newest_events_come_first_and_no_more_than_asked(world: World) {
    let running = world.running().await;
    world.running().await;
    for n in 0..110 {
        world.happen(running.id, &step(n.min(99), &format!("step {n}"))).await;
    }
    let newest = world.newest_events(running.id, 100).await.unwrap();
    let versions: Vec<i32> = newest.iter().map(|event| event.version).collect();
    assert_eq!(versions, (12..=111).rev().collect::<Vec<i32>>());
    assert!(newest.iter().all(|event| event.task_id == running.id));
    assert!(newest.is_sorted_by(|a, b| a.created_at > b.created_at));
    assert_eq!(newest[0].state.as_deref(), Some("step 109"));
    assert_eq!(world.newest_events(running.id, 1).await.unwrap(), newest[..1]);
}

async fn events_are_followed_from_a_version_on(world: World) {
    let running = world.running().await;
    for n in 1..=5 {
        world.happen(running.id, &step(n, "on")).await;
    }
    let all = world.history(running.id).await;
    assert_eq!(all.len(), 7);
    assert_eq!(world.events_since(running.id, 2, 3).await.unwrap(), all[3..6]);
    assert_eq!(world.events_since(running.id, 5, 3).await.unwrap(), all[6..]);
    assert_eq!(world.events_since(running.id, 6, 3).await.unwrap(), []);
}

async fn a_task_without_events_has_none(world: World) {
    let nobody = world.row("a").id;
    assert_eq!(world.newest_events(nobody, 100).await.unwrap(), []);
    assert_eq!(world.events_since(nobody, -1, 100).await.unwrap(), []);
    assert_eq!(world.task(nobody).await.unwrap(), None);
    assert_eq!(world.input(nobody).await.unwrap(), None);
    assert_eq!(world.result(nobody).await.unwrap(), None);
}
