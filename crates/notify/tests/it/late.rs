//! Entries that commit long after others that are younger. Only a server has several at once.

use std::time::{Duration, Instant};

use lavra_notify::store::Store;
use lavra_notify::watch::{Config, Watcher};
use uuid::Uuid;

use crate::support::{World, on_servers};

on_servers!(
    an_entry_of_the_log_that_commits_late_is_told_once,
    the_end_of_a_task_that_commits_late_is_told_once,
);

/// How much older than its transaction an entry may be in these tests: less than it is open, so
/// that only the transaction itself can hold the floor.
const LATE: Duration = Duration::from_secs(1);

/// Looks, and moves on, also where nothing happened.
async fn look(world: &World, store: &dyn Store) -> usize {
    let mut watcher = Watcher::new(store, &world.tasks, Config::default());
    let made = watcher.round().await.unwrap();
    watcher.leave().await;
    made
}

async fn an_entry_of_the_log_that_commits_late_is_told_once(world: World) {
    let store = lavra_notify::store_of(&world.database, LATE);
    world.webhook("ops", "https://a.example", &[]).await;
    assert_eq!(look(&world, &*store).await, 0);
    let mission = world.mission().await;

    let client = world.server().client().await;
    client.batch_execute("BEGIN").await.unwrap();
    let entry = format!(
        "INSERT INTO public.mission_logs (id, mission_id, event, details, timestamp)
         VALUES ('log_late', '{mission}', 'mission_failed', '{{}}', clock_timestamp())"
    );
    client.batch_execute(&entry).await.unwrap();
    // Younger ones come, and the reader passes them, time and again.
    for _ in 0..5 {
        world.mission_fails().await;
        tokio::time::sleep(LATE).await;
        assert_eq!(look(&world, &*store).await, 1);
    }
    assert_eq!(look(&world, &*store).await, 0);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(look(&world, &*store).await, 1, "the late one");
    // With nobody open, the floor rises above all of them.
    let begun = Instant::now();
    while world.count("SELECT count(*) FROM lavra.webhook_told").await > 0 {
        assert_eq!(look(&world, &*store).await, 0);
        assert!(begun.elapsed() < Duration::from_secs(20), "the floor does not rise");
    }
}

async fn the_end_of_a_task_that_commits_late_is_told_once(world: World) {
    let store = lavra_notify::store_of(&world.database, LATE);
    world.webhook("ops", "https://a.example", &[]).await;
    let task = world.task_completes("act").await;
    assert_eq!(look(&world, &*store).await, 0);

    let client = world.server().client().await;
    client.batch_execute("BEGIN").await.unwrap();
    let event = format!(
        "INSERT INTO kodus_workflow.task_events (id, task_id, status, detail, actor, version)
         VALUES ('{}', '{task}', 'FAILED', '{{\"error\": \"late\"}}', 'WORKER', 99)",
        Uuid::now_v7(),
    );
    client.batch_execute(&event).await.unwrap();
    for _ in 0..3 {
        world.task_fails("act", "it broke").await;
    }
    // Ends are told in the order of their transactions: these wait for the one that is open.
    assert_eq!(look(&world, &*store).await, 0);
    client.batch_execute("COMMIT").await.unwrap();
    // Those of other tests on the same server may be in the way for a moment.
    let (mut made, begun) = (0, Instant::now());
    while made < 4 && begun.elapsed() < Duration::from_secs(20) {
        made += look(&world, &*store).await;
    }
    assert_eq!((made, look(&world, &*store).await), (4, 0));
    let texts = "SELECT count(*) FROM kodus_workflow.task_inputs
                 WHERE payload::text LIKE '%(act) failed for good: late%'";
    assert_eq!(world.count(texts).await, 1);
}
