//! The connection is cut after COMMIT was sent: the server has stored it, nobody was told.

use std::time::Duration;

use lavra_db::{Database, Schema, Target};
use lavra_tasks::model::Status;
use lavra_tasks::{NewTask, Policy, RunnerConfig};
use serde_json::json;

use super::proxy::Proxy;
use super::rig::{Rig, actions, assert_gapless};
use crate::support::World;
use lavra_testkit::Server;

pub(super) async fn behind(proxy: &Proxy, world: &World) -> Database {
    let text = format!("postgres://postgres@{}/{}", proxy.address, world.server().name());
    let target = Target::parse(&text).unwrap();
    Database::open(&target, Schema::default(), Duration::from_secs(5)).await.unwrap()
}

/// Every statement of a task's life, one after the other, loses its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_after_commit_ends_nothing_twice_and_loses_nothing() {
    let world = World::on_postgres().await;
    let proxy = Proxy::to(Server::address()).await;
    let database = behind(&proxy, &world).await;
    let mut rig = Rig::on(&database, Policy::default(), None).await;
    rig.spawn(|tasks, stop| {
        let config = lavra_tasks::keeper::Config {
            every: Duration::from_millis(100),
            stale: Duration::from_secs(2),
        };
        tokio::spawn(lavra_tasks::keeper::keep(tasks, config, stop))
    });
    let heartbeat = Duration::from_millis(300);
    rig.run(RunnerConfig { heartbeat, poll: Duration::from_millis(50), ..RunnerConfig::default() });
    let direct = Rig::new(&world).await;
    for round in 0..12_u64 {
        let task = NewTask {
            kind: "act".into(),
            payload: json!({ "do": "sleep", "seconds": 0.15 }),
            ..NewTask::default()
        };
        let id = direct.tasks.create(task).await.unwrap().id;
        // At different moments: before the claim, during the work, at the completion.
        tokio::time::sleep(Duration::from_millis(round * 20)).await;
        proxy.swallow_next_answer();
        let task = direct.until(id, |task| task.status.is_terminal()).await;
        assert_eq!(task.status, Status::Completed, "round {round}: {task:?}");
        let events = direct.history(id).await;
        assert_gapless(&events);
        let ends = actions(&events).iter().filter(|action| *action == "complete").count();
        assert_eq!(ends, 1, "round {round}: {events:#?}");
    }
    let lost = proxy.swallowed();
    assert!(lost >= 8, "only {lost} answers were lost: the test tests too little");
    rig.stop().await;
}

/// A creation whose answer was lost is asked for again with its key: one task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_without_an_answer_is_repeated_by_its_key() {
    let world = World::on_postgres().await;
    let proxy = Proxy::to(Server::address()).await;
    let database = behind(&proxy, &world).await;
    let rig = Rig::on(&database, Policy::default(), None).await;
    let request = |key: usize| NewTask {
        kind: "act".into(),
        payload: json!({ "do": "complete" }),
        key: Some(format!("once-{key}")),
        ..NewTask::default()
    };
    // The answer that is lost may be a notification's, or that of a new connection's greeting:
    // until it is a creation's.
    let mut made = 0;
    for key in 0..50 {
        proxy.swallow_next_answer();
        let first = rig.tasks.create(request(key)).await;
        made += 1;
        let Err(error) = first else { continue };
        assert!(error.is_transient(), "{error:?}");
        let stored = world.count("SELECT count(*) FROM kodus_workflow.tasks").await == made;
        let again = rig.tasks.create(request(key)).await.unwrap();
        assert_eq!(again.new, !stored, "round {key}");
        assert_eq!(world.count("SELECT count(*) FROM kodus_workflow.tasks").await, made);
        if stored {
            return;
        }
    }
    panic!("no creation ever lost its answer");
}
