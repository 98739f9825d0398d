//! Tokens and the stream go on over a restart.

use crate::support::{World, on_each_engine};

on_each_engine!(a_restart_goes_on_above_everything_given_out);

async fn a_restart_goes_on_above_everything_given_out(world: World) {
    let before = world.running().await;
    world.stream().await;
    let end = world.stream_end().await.unwrap();
    let world = world.reopened().await;
    assert_eq!(world.read(before.id).await.token, before.token);
    let after = world.running().await;
    assert!(after.token > before.token);
    world.stream().await;
    let events = world.stream_since(end, 10).await.unwrap();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.task_id == after.id));
}

/// Whatever the clock of this machine says: a file may come from another one.
#[tokio::test]
async fn a_file_from_the_future_is_gone_on_with() {
    let far = i64::MAX / 2;
    for sql in [
        format!("UPDATE kodus_workflow.tasks SET token = {far}"),
        format!("UPDATE kodus_workflow.task_events SET transaction = {far}"),
    ] {
        let world = World::on_duckdb().await;
        world.running().await;
        world.execute(&sql).await;
        let world = world.reopened().await;
        let end = world.stream_end().await.unwrap();
        let running = world.running().await;
        assert!(running.token > far);
        assert_eq!(world.stream_since(end, 10).await.unwrap().len(), 2);
    }
}
