//! Progress and metadata: what a worker tells on its way.

use lavra_tasks::machine::Happening;
use lavra_tasks::store::NewRow;
use serde_json::json;

use crate::support::shorthand::{fail, step};
use crate::support::{World, on_each_engine};

on_each_engine!(
    progress_is_told_with_its_state,
    progress_never_goes_back_within_an_attempt,
    progress_starts_over_with_the_next_attempt,
    metadata_is_merged_key_by_key,
    metadata_of_one_leaves_that_of_others_alone,
);

async fn progress_is_told_with_its_state(world: World) {
    let running = world.running().await;
    let task = world.happen(running.id, &step(25, "Fetching pages 100/400")).await;
    assert_eq!((task.progress, task.state.as_str()), (25, "Fetching pages 100/400"));
    let event = world.history(running.id).await.pop().unwrap();
    assert_eq!(event.state.as_deref(), Some("Fetching pages 100/400"));
}

async fn progress_never_goes_back_within_an_attempt(world: World) {
    let running = world.running().await;
    // Decided before another write got further: the machine cannot know.
    let mut late = world.decide(running.id, &step(30, "late")).await;
    late.guard.version = None;
    world.happen(running.id, &step(60, "far")).await;
    world.write_one(late).await;
    let task = world.read(running.id).await;
    assert_eq!((task.progress, task.state.as_str()), (60, "late"));
}

async fn progress_starts_over_with_the_next_attempt(world: World) {
    let running = world.running().await;
    world.happen(running.id, &step(60, "far")).await;
    assert_eq!(world.happen(running.id, &fail(Some(0))).await.progress, 0);
    world.take(&["a"], 1).await;
    assert_eq!(world.happen(running.id, &step(5, "again")).await.progress, 5);
    assert_eq!(world.happen(running.id, &Happening::Complete).await.progress, 100);
}

async fn metadata_is_merged_key_by_key(world: World) {
    let metadata = json!({"kept": [1, 2], "nested": {"a": 1, "b": 2}, "old": "x"}).to_string();
    world.make(vec![NewRow { metadata, ..world.row("a") }]).await;
    let running = world.take(&["a"], 1).await.remove(0);
    let mut write = world.decide(running.id, &step(1, "on")).await;
    write.metadata = Some(json!({"nested": {"c": 3}, "old": null, "new": true}));
    world.write_one(write).await;
    let expected = json!({"kept": [1, 2], "nested": {"c": 3}, "old": null, "new": true});
    assert_eq!(world.read(running.id).await.metadata, expected);
    world.happen(running.id, &step(2, "on")).await;
    assert_eq!(world.read(running.id).await.metadata, expected);
}

async fn metadata_of_one_leaves_that_of_others_alone(world: World) {
    let (one, other) = (world.running().await, world.running().await);
    let mut writes = vec![
        world.decide(one.id, &step(1, "on")).await,
        world.decide(other.id, &step(1, "on")).await,
    ];
    writes[1].metadata = Some(json!({"mine": 1}));
    world.write(writes).await.unwrap();
    assert_eq!(world.read(one.id).await.metadata, json!({}));
    assert_eq!(world.read(other.id).await.metadata, json!({"mine": 1}));
}
