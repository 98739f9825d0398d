//! What has not been told, and that it is told once.

use std::time::{Duration, Instant};

use lavra_notify::Changes;
use lavra_notify::model::Topic;
use lavra_notify::store::Reading;
use lavra_notify::watch::{Config, Watcher};
use lavra_tasks::NewTask;
use serde_json::json;

use crate::support::{World, on_each_engine};

on_each_engine!(
    all_five_are_told_once_to_who_wants_them,
    what_happened_before_is_not_told,
    nobody_is_told_of_what_happens_while_all_are_inactive,
    a_pool_that_is_exhausted_is_told_once_per_episode,
    a_run_is_told_with_its_counts,
    a_delivery_that_failed_for_good_is_told_to_nobody,
    a_task_that_fails_again_is_told_again,
    many_are_told_in_parts,
    what_was_told_is_kept_only_above_the_floor,
    one_who_comes_late_with_an_old_position_changes_nothing,
    a_row_that_cannot_be_stored_as_it_is_holds_up_nobody,
);

async fn round(world: &World) -> usize {
    let store = world.store();
    let mut watcher = Watcher::new(&*store, &world.tasks, Config::default());
    let made = watcher.round().await.unwrap();
    watcher.leave().await;
    made
}

/// Looks until so many deliveries were made: the transactions of other tests on the same server may
/// be in the way of an end for a moment.
async fn rounds(world: &World, expected: usize) {
    let begun = Instant::now();
    let mut made = 0;
    while made < expected {
        made += round(world).await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{made} of {expected}");
    }
    assert_eq!(made, expected);
    assert_eq!(round(world).await, 0);
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all: Vec<_> =
        expected.iter().map(|(event, name)| ((*event).to_owned(), (*name).to_owned())).collect();
    all.sort();
    all
}

async fn read(world: &World, limit: usize) -> Reading {
    world.store().read(limit).await.unwrap().unwrap()
}

async fn all_five_are_told_once_to_who_wants_them(world: World) {
    assert_eq!(world.store().read(10).await.unwrap(), None, "there never was a webhook");
    world.webhook("all", "https://a.example", &[]).await;
    world.webhook("missions", "https://b.example", &[Topic::MissionFailed]).await;
    assert_eq!(round(&world).await, 0);

    world.mission_fails().await;
    world.worker_finds_no_proxy("wrk_1").await;
    world.session_fails().await;
    world.run_ends(0).await;
    world.run_ends(1).await;
    world.task_fails("act", "it broke").await;
    world.task_completes("act").await;
    world.message_dies().await;
    let expected = pairs(&[
        ("mission.failed", "all"),
        ("mission.failed", "missions"),
        ("pool.exhausted", "all"),
        ("extraction.complete", "all"),
        ("extraction.short", "all"),
        ("task.dead_lettered", "all"),
        ("task.dead_lettered", "all"),
        ("task.dead_lettered", "all"),
    ]);
    rounds(&world, expected.len()).await;
    assert_eq!(world.told().await, expected);
    for _ in 0..3 {
        assert_eq!(round(&world).await, 0);
    }
    assert!(read(&world, 10).await.is_empty());
    world.mission_fails().await;
    rounds(&world, 2).await;
}

async fn what_happened_before_is_not_told(world: World) {
    world.mission_fails().await;
    world.task_fails("act", "it broke").await;
    world.webhook("first", "https://a.example", &[]).await;
    assert_eq!(round(&world).await, 0);
    world.mission_fails().await;
    // The second is added before anyone has looked.
    world.webhook("second", "https://b.example", &[]).await;
    rounds(&world, 1).await;
    assert_eq!(world.told().await, pairs(&[("mission.failed", "first")]));
}

async fn nobody_is_told_of_what_happens_while_all_are_inactive(world: World) {
    let webhook = world.webhook("ops", "https://a.example", &[]).await;
    let set = |active| Changes { active: Some(active), ..Changes::default() };
    world.webhooks.change(&webhook, set(false)).await.unwrap();
    world.mission_fails().await;
    world.task_fails("act", "it broke").await;
    assert_eq!(round(&world).await, 0);
    world.webhooks.change(&webhook, set(true)).await.unwrap();
    assert_eq!(round(&world).await, 0);
    world.task_fails("act", "it broke").await;
    rounds(&world, 1).await;
    // With one that is active, there is no passing by.
    world.task_fails("act", "it broke").await;
    world.store().pass_by().await.unwrap();
    rounds(&world, 1).await;
}

async fn a_pool_that_is_exhausted_is_told_once_per_episode(world: World) {
    world.webhook("ops", "https://a.example", &[Topic::PoolExhausted]).await;
    for worker in ["wrk_1", "wrk_2", "wrk_3"] {
        world.worker_finds_no_proxy(worker).await;
    }
    rounds(&world, 1).await;
    world.worker_finds_no_proxy("wrk_4").await;
    assert_eq!(round(&world).await, 0, "the same episode");
    // As if that had been six minutes ago.
    let earlier = match &world.database {
        lavra_db::Database::Duck(_) => {
            "UPDATE public.mission_logs
             SET timestamp = make_timestamp(epoch_us(timestamp) - 360000000)"
        }
        lavra_db::Database::Postgres(_) => {
            "UPDATE public.mission_logs SET timestamp = timestamp - interval '6 minutes'"
        }
    };
    world.execute(earlier).await;
    world.worker_finds_no_proxy("wrk_1").await;
    world.worker_finds_no_proxy("wrk_2").await;
    rounds(&world, 1).await; // another episode
    assert_eq!(round(&world).await, 0);
}

async fn a_run_is_told_with_its_counts(world: World) {
    world.webhook("ops", "https://a.example", &[Topic::ExtractionShort]).await;
    let task = world.run_ends(2).await;
    // Nobody looks before it has been taken up again, and is done.
    world.tasks.retry(task, None).await.unwrap();
    rounds(&world, 1).await;
    let delivery = world.deliveries().await.remove(0);
    let payload = world.tasks.input(delivery.id).await.unwrap();
    let told = &payload["event"];
    assert_eq!(told["type"], "extraction.short");
    assert_eq!(told["data"]["task_id"], json!(task));
    assert_eq!(told["data"]["source"], "pncp");
    let counts = json!({
        "complete": 3, "partial": 2, "failed": 0, "pending": 0, "pages": 40, "records": 2000,
    });
    assert_eq!(told["data"]["counts"], counts);
    assert!(told["text"].as_str().unwrap().starts_with("Extraction of pncp from 2024-01"));
}

async fn a_delivery_that_failed_for_good_is_told_to_nobody(world: World) {
    world.webhook("ops", "https://a.example", &[]).await;
    world.task_fails("act", "it broke").await;
    rounds(&world, 1).await;
    world.task_fails("webhook", "HTTP 404").await;
    assert!(world.tasks.store().dead_letters(None, 10).await.unwrap().len() >= 2);
    assert_eq!(round(&world).await, 0);
}

async fn a_task_that_fails_again_is_told_again(world: World) {
    world.webhook("ops", "https://a.example", &[]).await;
    let task = world.task_fails("act", "it broke").await;
    rounds(&world, 1).await;
    world.tasks.retry(task, None).await.unwrap();
    let process = lavra_tasks::store::Process {
        id: lavra_tasks::model::ProcessId(world.tasks.store().clock().new_id()),
        name: "test".into(),
        kinds: vec!["act".into()],
    };
    let again = world.tasks.claim(process, 1).await.unwrap().remove(0);
    let fails = lavra_tasks::machine::Happening::Fail { error: "it broke".into(), retry_in: None };
    world.tasks.report(again.id, again.token, fails, None, None).await.unwrap();
    rounds(&world, 1).await;
    let deliveries = world.deliveries().await;
    assert_ne!(deliveries[0].input_hash, deliveries[1].input_hash);
}

async fn many_are_told_in_parts(world: World) {
    world.webhook("ops", "https://a.example", &[]).await;
    for _ in 0..5 {
        world.mission_fails().await;
        world.task_fails("act", "it broke").await;
    }
    let begun = Instant::now();
    let mut first = read(&world, 2).await;
    while first.ended.len() < 2 && begun.elapsed() < Duration::from_secs(20) {
        first = read(&world, 2).await;
    }
    assert!(first.has_more);
    assert_eq!((first.logged.len(), first.ended.len()), (2, 2));
    let store = world.store();
    let config = Config { batch: 2, every: Duration::from_secs(1) };
    let mut watcher = Watcher::new(&*store, &world.tasks, config);
    let mut made = 0;
    while made < 10 && begun.elapsed() < Duration::from_secs(20) {
        made += watcher.round().await.unwrap();
    }
    assert_eq!((made, watcher.round().await.unwrap()), (10, 0));
    assert_eq!(world.deliveries().await.len(), 10);
}

async fn what_was_told_is_kept_only_above_the_floor(world: World) {
    world.webhook("ops", "https://a.example", &[]).await;
    world.mission_fails().await;
    world.mission_fails().await;
    rounds(&world, 2).await;
    assert_eq!(world.count("SELECT count(*) FROM lavra.webhook_told").await, 2);
    // Nobody writes anything that is older than now.
    let store = lavra_notify::store_of(&world.database, Duration::ZERO);
    let begun = Instant::now();
    while world.count("SELECT count(*) FROM lavra.webhook_told").await > 0 {
        let reading = store.read(10).await.unwrap().unwrap();
        assert!(reading.is_empty(), "{reading:?}");
        store.told(&reading).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "the floor does not rise");
    }
    assert_eq!(round(&world).await, 0, "what is below the floor is not read again");
}

async fn one_who_comes_late_with_an_old_position_changes_nothing(world: World) {
    world.webhook("ops", "https://a.example", &[]).await;
    world.task_fails("act", "it broke").await;
    let old = read(&world, 10).await;
    world.task_fails("act", "it broke").await;
    world.mission_fails().await;
    rounds(&world, 3).await;
    let new = read(&world, 10).await.position;
    world.store().told(&old).await.unwrap();
    let after = read(&world, 10).await;
    assert!(after.is_empty());
    assert!(after.position.ended >= new.ended && after.position.floor >= new.floor);
}

/// JSON in a DuckDB file can hold what a task cannot.
async fn a_row_that_cannot_be_stored_as_it_is_holds_up_nobody(world: World) {
    world.webhook("ops", "https://a.example", &[]).await;
    world.task_fails("act", &"long ".repeat(3000)).await;
    if matches!(world.database, lavra_db::Database::Duck(_)) {
        let odd = r#"INSERT INTO public.mission_logs (id, mission_id, event, details, timestamp)
                     VALUES ('log_odd', 'mis_odd', 'mission_failed',
                             '{"error_message": "a\u0000b", "error_code": 7}', now()),
                            ('log_bad', NULL, 'mission_failed', '[1]', now()),
                            ('log_none', NULL, 'mission_failed', NULL, now())"#;
        world.execute(odd).await;
        rounds(&world, 4).await;
    } else {
        let odd = "INSERT INTO public.mission_logs (id, event, details)
                   VALUES ('log_bad', 'mission_failed', '[1]'), ('log_none', 'mission_failed', NULL)";
        world.execute(odd).await;
        rounds(&world, 3).await;
    }
    let new = NewTask { kind: "act".into(), ..NewTask::default() };
    world.tasks.create(new).await.unwrap();
    assert_eq!(round(&world).await, 0);
}
