//! What the keeper does for all.

use std::time::{Duration, Instant};

use lavra_tasks::keeper::{self, Config};
use lavra_tasks::model::{ProcessId, Status};
use lavra_tasks::store::{Claim, Process, Schedule};
use lavra_tasks::{Error, RunnerConfig};
use serde_json::json;

use super::rig::{Rig, actions, until};
use crate::support::{World, on_each_engine};

on_each_engine!(
    a_dead_process_s_task_is_taken_over_within_fifteen_seconds,
    a_task_that_kills_its_processes_fails_in_the_end,
    a_schedule_fires_once_however_many_keep,
    a_schedule_that_cannot_fire_keeps_no_other_from_it,
    a_row_reads_the_same_while_others_are_written,
);

fn keep(rig: &mut Rig, config: Config) {
    rig.spawn(|tasks, stop| tokio::spawn(keeper::keep(tasks, config, stop)));
}

/// At default settings. The dead process is one that has claimed and never beats again.
async fn a_dead_process_s_task_is_taken_over_within_fifteen_seconds(world: World) {
    let mut rig = Rig::new(&world).await;
    let id = rig.order(json!({ "do": "complete" })).await;
    let dead = ProcessId(rig.tasks.store().clock().new_id());
    let process = Process { id: dead, name: "dead".into(), kinds: vec!["act".into()] };
    rig.tasks.store().beat(process, Vec::new()).await.unwrap();
    let claim = Claim { process: dead, kinds: vec!["act".into()], limit: 1 };
    let held = rig.tasks.store().claim(claim).await.unwrap().remove(0);
    let begun = Instant::now();
    keep(&mut rig, Config::default());
    rig.run(RunnerConfig::default());
    let task =
        until(&rig.tasks, id, Duration::from_secs(15), |task| task.status == Status::Completed)
            .await;
    assert!(begun.elapsed() > Duration::from_secs(8), "taken from a process that still had time");
    assert_eq!((task.attempts, task.retry_count), (2, 1));
    let events = rig.history(id).await;
    assert_eq!(actions(&events), ["create", "start", "retry", "start", "complete"]);
    // The dead one wakes and wants to complete: it is fenced out.
    let late = rig.tasks.report(
        id,
        held.token,
        lavra_tasks::machine::Happening::Complete,
        None,
        Some(json!({ "late": true })),
    );
    assert!(matches!(late.await, Err(Error::Lost(_))));
    assert_eq!(rig.tasks.result(id).await.unwrap().payload, json!({ "attempt": 2 }));
    rig.stop().await;
}

async fn a_task_that_kills_its_processes_fails_in_the_end(world: World) {
    let mut rig = Rig::new(&world).await;
    let id = rig.order(json!({ "do": "complete" })).await;
    let config = Config { every: Duration::from_millis(30), stale: Duration::from_millis(50) };
    keep(&mut rig, config);
    for _ in 0..4 {
        let dead = ProcessId(rig.tasks.store().clock().new_id());
        loop {
            let claim = Claim { process: dead, kinds: vec!["act".into()], limit: 1 };
            if !rig.tasks.store().claim(claim).await.unwrap().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let task = rig.until_status(id, Status::Failed).await;
    assert_eq!((task.attempts, task.retry_count), (4, 3));
    assert!(task.error.as_deref().unwrap().contains("stopped answering"), "{task:?}");
    rig.stop().await;
}

async fn a_schedule_fires_once_however_many_keep(world: World) {
    let mut rig = Rig::new(&world).await;
    let payload = json!({ "do": "complete" });
    rig.tasks.schedule("often", "act", "* * * * *", payload).await.unwrap();
    let past = "UPDATE kodus_workflow.task_schedules SET next_at = '2026-01-01T00:00:00Z'";
    world.execute(past).await;
    for _ in 0..4 {
        keep(&mut rig, Config { every: Duration::from_millis(20), ..Config::default() });
    }
    rig.run(RunnerConfig::default());
    let begun = Instant::now();
    let id = loop {
        let schedule = rig.tasks.store().schedules().await.unwrap().remove(0);
        match schedule.last_task {
            Some(id) => break id,
            None => assert!(begun.elapsed() < Duration::from_secs(10), "it has not fired"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    rig.until_status(id, Status::Completed).await;
    // The others have looked, too.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let schedule = rig.tasks.store().schedules().await.unwrap().remove(0);
    let made = world.count("SELECT count(*) FROM kodus_workflow.tasks").await;
    assert!((1..=2).contains(&made), "a minute may have turned; {made} were made");
    assert!(schedule.next_at > rig.tasks.now());
    rig.stop().await;
}

async fn a_schedule_that_cannot_fire_keeps_no_other_from_it(world: World) {
    let mut rig = Rig::new(&world).await;
    let due = |name: &str, cron: &str| Schedule {
        name: name.into(),
        kind: "act".into(),
        cron: cron.into(),
        payload: json!({ "do": "complete" }),
        enabled: true,
        next_at: "2020-01-01T00:00:00Z".parse().unwrap(),
        last_task: None,
    };
    let unreadable = due("a unreadable", "every now and then");
    for schedule in
        [unreadable.clone(), due("b last", "0 0 0 1 1 * 2020"), due("c yearly", "0 0 1 1 *")]
    {
        world.put_schedule(schedule).await.unwrap();
    }
    keep(&mut rig, Config { every: Duration::from_millis(20), ..Config::default() });
    let begun = Instant::now();
    let fired = loop {
        let all = rig.tasks.store().schedules().await.unwrap();
        if all.iter().filter(|schedule| schedule.last_task.is_some()).count() == 2 {
            break all;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "it never came: {all:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(fired[0], unreadable);
    assert!(!fired[1].enabled, "there is no next time: {:?}", fired[1]);
    assert!(fired[2].enabled && fired[2].next_at > rig.tasks.now(), "{:?}", fired[2]);
    for over in ["a unreadable", "b last"] {
        rig.tasks.enable_schedule(over, false).await.unwrap();
        assert!(rig.tasks.enable_schedule(over, true).await.is_err());
    }
    rig.stop().await;
    assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.tasks").await, 2);
}

async fn a_row_reads_the_same_while_others_are_written(world: World) {
    let mut rig = Rig::new(&world).await;
    rig.tasks.schedule("yearly", "act", "0 0 1 1 *", json!({})).await.unwrap();
    let expected = rig.tasks.store().schedules().await.unwrap();
    rig.run(RunnerConfig::default());
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (tasks, expected) = (rig.tasks.clone(), expected.clone());
            tokio::spawn(async move {
                for _ in 0..250 {
                    assert_eq!(tasks.store().schedules().await.unwrap(), expected);
                    let filter = lavra_tasks::store::ListFilter { limit: 5, ..Default::default() };
                    tasks.store().list(filter).await.unwrap();
                }
            })
        })
        .collect();
    let request = lavra_tasks::NewTask {
        kind: "act".into(),
        payload: json!({ "do": "complete" }),
        ..lavra_tasks::NewTask::default()
    };
    while readers.iter().any(|reader| !reader.is_finished()) {
        rig.tasks.create_all(vec![request.clone(); 5]).await.unwrap();
    }
    for reader in readers {
        reader.await.unwrap();
    }
    rig.stop().await;
}
