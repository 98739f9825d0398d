//! How attempts end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lavra_tasks::model::{Actor, Status};
use lavra_tasks::{NewTask, Policy, RunnerConfig};
use serde_json::json;

use super::rig::{Rig, actions, assert_gapless};
use crate::support::{World, on_each_engine, on_servers};

on_each_engine!(
    a_task_completes_with_its_result_and_its_events,
    a_failure_is_tried_again_and_then_is_final,
    one_failure_then_success,
    a_permanent_failure_is_not_tried_again,
    a_panic_fails_the_attempt_and_nothing_else,
    a_handler_that_stops_untold_fails,
    a_payload_that_does_not_fit_fails_at_once,
    an_attempt_that_runs_too_long_fails,
    progress_is_told_now_and_then_and_never_goes_back,
    an_attempt_interrupted_by_a_shutdown_does_not_count,
    a_result_that_cannot_be_stored_fails_its_task_alone,
    a_thousand_tasks_are_each_run_once,
);

on_servers!(a_good_outcome_beside_one_that_cannot_be_stored_waits_for_the_database);

async fn a_task_completes_with_its_result_and_its_events(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "complete" })).await;
    let task = rig.until_status(id, Status::Completed).await;
    assert_eq!((task.progress, task.state.as_str(), task.attempts), (100, "Completed", 1));
    let events = rig.history(id).await;
    assert_gapless(&events);
    assert_eq!(actions(&events), ["create", "start", "complete"]);
    let actors: Vec<Actor> = events.iter().map(|event| event.actor).collect();
    assert_eq!(actors, [Actor::Api, Actor::Worker, Actor::Worker]);
    assert_eq!(rig.tasks.result(id).await.unwrap().payload, json!({ "attempt": 1 }));
    rig.stop().await;
}

async fn a_failure_is_tried_again_and_then_is_final(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig { poll: Duration::from_millis(30), ..RunnerConfig::default() });
    let task = NewTask {
        kind: "act".into(),
        payload: json!({ "do": "fail" }),
        max_retries: Some(2),
        ..NewTask::default()
    };
    let id = rig.tasks.create(task).await.unwrap().id;
    let task = rig.until_status(id, Status::Failed).await;
    assert_eq!((task.retry_count, task.attempts), (2, 3));
    assert_eq!(task.error.as_deref(), Some("it failed"));
    let events = rig.history(id).await;
    assert_gapless(&events);
    assert_eq!(actions(&events), ["create", "start", "retry", "start", "retry", "start", "fail"]);
    assert!(events[2].state.as_deref().unwrap().starts_with("Retry 1/2 at "));
    let letters = rig.tasks.store().dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].task_id, Some(id));
    rig.tasks.redrive(&letters[0]).await.unwrap();
    rig.until(id, |task| task.attempts > 3).await;
    rig.stop().await;
}

async fn one_failure_then_success(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig { poll: Duration::from_millis(30), ..RunnerConfig::default() });
    let id = rig.order(json!({ "do": "fail_once" })).await;
    let task = rig.until_status(id, Status::Completed).await;
    assert_eq!((task.retry_count, task.attempts, task.error), (1, 2, None));
    rig.stop().await;
}

async fn a_permanent_failure_is_not_tried_again(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "fail_for_good" })).await;
    let task = rig.until_status(id, Status::Failed).await;
    assert_eq!((task.attempts, task.retry_count), (1, 0));
    rig.stop().await;
}

async fn a_panic_fails_the_attempt_and_nothing_else(world: World) {
    let policy = Policy { max_retries: 0, ..Policy::default() };
    let mut rig = Rig::with(&world, policy, None).await;
    rig.run(RunnerConfig::default());
    let bad = rig.order(json!({ "do": "panic" })).await;
    let good = rig.order(json!({ "do": "complete" })).await;
    let task = rig.until_status(bad, Status::Failed).await;
    assert_eq!(task.error.as_deref(), Some("the handler panicked: it panicked"));
    rig.until_status(good, Status::Completed).await;
    rig.stop().await;
}

async fn a_handler_that_stops_untold_fails(world: World) {
    let policy = Policy { max_retries: 0, ..Policy::default() };
    let mut rig = Rig::with(&world, policy, None).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "stop_untold" })).await;
    let task = rig.until_status(id, Status::Failed).await;
    let error = task.error.unwrap();
    assert_eq!(error, "the handler stopped without having been told to");
    rig.stop().await;
}

async fn a_payload_that_does_not_fit_fails_at_once(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "dance" })).await;
    let task = rig.until_status(id, Status::Failed).await;
    assert!(task.error.as_deref().unwrap().contains("does not fit"), "{task:?}");
    rig.stop().await;
}

async fn an_attempt_that_runs_too_long_fails(world: World) {
    let policy =
        Policy { max_retries: 0, timeout: Some(Duration::from_millis(200)), ..Policy::default() };
    let mut rig = Rig::with(&world, policy, None).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "sleep_deaf", "seconds": 30.0 })).await;
    let task = rig.until_status(id, Status::Failed).await;
    assert!(task.error.as_deref().unwrap().contains("ran longer"), "{task:?}");
    rig.stop().await;
}

async fn progress_is_told_now_and_then_and_never_goes_back(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "report", "steps": [10, 50, 30, 20, 60, 5] })).await;
    let mut seen = Vec::new();
    rig.until(id, |_| true).await;
    loop {
        let task = rig.tasks.task(id).await.unwrap();
        seen.push(task.progress);
        if task.status == Status::Completed {
            assert_eq!(task.metadata, json!({ "seen": true }));
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(seen.is_sorted(), "{seen:?}");
    let events = rig.history(id).await;
    assert_gapless(&events);
    let updates = actions(&events).iter().filter(|action| *action == "update").count();
    assert!((2..=5).contains(&updates), "six tellings made {updates} events: {events:#?}");
    assert!(events.iter().any(|e| e.state.as_deref() == Some("Nearly done")));
    rig.stop().await;
}

async fn an_attempt_interrupted_by_a_shutdown_does_not_count(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.run(RunnerConfig::default());
    let id = rig.order(json!({ "do": "sleep", "seconds": 60.0 })).await;
    rig.until_status(id, Status::InProgress).await;
    let tasks = rig.stop().await;
    let task = tasks.task(id).await.unwrap();
    assert_eq!((task.status, task.retry_count, task.attempts), (Status::Pending, 0, 1));
    assert_eq!(task.error, None);
    let orphans = tasks.store().orphans(Duration::ZERO, 10).await.unwrap();
    assert!(orphans.is_empty(), "{orphans:?}");
}

async fn a_result_that_cannot_be_stored_fails_its_task_alone(world: World) {
    let mut rig = Rig::new(&world).await;
    let bad = rig.order(json!({ "do": "unstorable" })).await;
    let good = rig.order(json!({ "do": "complete" })).await;
    rig.run(RunnerConfig::default());
    rig.until_status(good, Status::Completed).await;
    // DuckDB's JSON is text and takes it; PostgreSQL's JSONB cannot.
    let task = rig.until(bad, |task| task.status.is_terminal()).await;
    if task.status == Status::Failed {
        assert!(task.error.as_deref().unwrap().contains("could not be stored"), "{task:?}");
    }
    rig.stop().await;
}

/// Every other result that comes alone, as those of a rejected batch do, meets a database that is
/// about to stop.
async fn a_good_outcome_beside_one_that_cannot_be_stored_waits_for_the_database(world: World) {
    for sql in [
        "CREATE SEQUENCE kodus_workflow.alone",
        "CREATE FUNCTION kodus_workflow.trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF (SELECT count(*) FROM stored) = 1 AND nextval('kodus_workflow.alone') % 2 = 1 THEN
                 RAISE EXCEPTION 'the server stops' USING ERRCODE = '57P01';
             END IF;
             RETURN NULL;
         END $$",
        "CREATE TRIGGER trouble AFTER INSERT ON kodus_workflow.task_results
         REFERENCING NEW TABLE AS stored FOR EACH STATEMENT
         EXECUTE FUNCTION kodus_workflow.trouble()",
    ] {
        world.execute(sql).await;
    }
    let mut rig = Rig::new(&world).await;
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        bad.push(rig.order(json!({ "do": "unstorable" })).await);
        good.push(rig.order(json!({ "do": "complete" })).await);
    }
    rig.run(RunnerConfig::default());
    for id in good {
        let task = rig.until(id, |task| task.status.is_terminal()).await;
        assert_eq!(task.status, Status::Completed, "{task:?}");
    }
    for id in bad {
        rig.until_status(id, Status::Failed).await;
    }
    rig.stop().await;
}

async fn a_thousand_tasks_are_each_run_once(world: World) {
    let mut rig = Rig::new(&world).await;
    let request =
        NewTask { kind: "act".into(), payload: json!({ "do": "complete" }), ..NewTask::default() };
    let created = rig.tasks.create_all(vec![request; 1000]).await.unwrap();
    rig.run(RunnerConfig::default());
    for made in &created {
        rig.until_status(made.id, Status::Completed).await;
    }
    assert_eq!(rig.runs.load(Ordering::SeqCst), 1000);
    let tasks = rig.stop().await;
    for made in created.iter().step_by(97) {
        assert_gapless(&tasks.store().events_since(made.id, -1, 10).await.unwrap());
    }
}
