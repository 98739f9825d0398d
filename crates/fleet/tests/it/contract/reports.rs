//! The reports of the seed's section 10.3.

use jiff::{SignedDuration, Timestamp};
use lavra_fleet::code::ErrorCode;
use lavra_fleet::machine::{Entry, Step};
use lavra_fleet::model::{EventKind, MissionId, MissionStatus};
use lavra_fleet::store::Report;
use serde_json::{Value, json};

use crate::support::{World, on_each_store};

on_each_store!(
    failures_come_newest_first_with_their_mission,
    performance_goes_to_the_worker_that_did_it,
    proxies_come_with_what_went_wrong_behind_them,
);

fn entry(mission: Option<&MissionId>, event: EventKind, details: Value, at: Timestamp) -> Entry {
    let Value::Object(details) = details else { panic!("details are an object") };
    Entry { mission_id: mission.cloned(), session_id: None, event, details, at }
}

async fn say(world: &World, logs: Vec<Entry>) {
    assert!(world.applied(Step { logs, ..Step::default() }).await);
}

fn hours(count: i64) -> SignedDuration {
    SignedDuration::from_hours(count)
}

async fn failures_come_newest_first_with_their_mission(world: World) {
    let now = world.now();
    let failed = world
        .put(|mission| {
            mission.status = MissionStatus::Failed;
            mission.error_code = Some(ErrorCode::Error203);
            mission.error_message = Some("again".into());
            mission.retry_count = 2;
        })
        .await
        .id;
    let event = EventKind::MissionFailed;
    say(
        &world,
        vec![
            entry(Some(&failed), event, json!({"n": 1}), now - hours(2)),
            entry(Some(&failed), event, json!({"n": 2}), now - hours(1)),
            entry(Some(&failed), event, json!({"n": 0}), now - hours(25)),
            entry(Some(&failed), EventKind::ScrapeFailed, json!({}), now),
            entry(None, event, json!({"n": 9}), now),
        ],
    )
    .await;
    let rows = world.store.report(Report::Failures, now - hours(24)).await.unwrap();
    let row = |n: i32, at: Timestamp| {
        json!({
            "id": failed, "status": "failed", "error_code": "ERROR203", "error_message": "again",
            "retry_count": 2, "failed_at": at, "details": {"n": n},
        })
    };
    assert_eq!(rows, [row(2, now - hours(1)), row(1, now - hours(2))]);
}

async fn performance_goes_to_the_worker_that_did_it(world: World) {
    let now = world.now();
    let (a, b) = (world.add_worker("a").await, world.add_worker("b").await);
    world.add_worker("idle").await;
    let mission = world.put(|mission| mission.worker_id = Some(b.clone())).await.id;
    let (done, failed) = (EventKind::ScrapeCompleted, EventKind::ScrapeFailed);
    let mission = Some(&mission);
    say(
        &world,
        vec![
            entry(mission, done, json!({"worker_id": a, "duration_ms": 100}), now),
            entry(mission, done, json!({"worker_id": a, "duration_ms": 201}), now),
            entry(mission, done, json!({"worker_id": a, "duration_ms": "soon"}), now),
            entry(mission, done, json!({"worker_id": a}), now),
            entry(mission, done, json!({"worker_id": a, "duration_ms": 9}), now - hours(200)),
            entry(mission, failed, json!({"worker_id": a}), now),
            entry(mission, failed, json!({"worker_id": b}), now),
            entry(mission, done, json!({"duration_ms": 5}), now),
        ],
    )
    .await;
    let rows = world.store.report(Report::Workers, now - hours(24 * 7)).await.unwrap();
    let row = |name: &str, done: i64, failed: i64, average: Option<f64>| {
        json!({
            "worker_name": name, "completed_count": done, "failed_count": failed,
            "avg_duration_ms": average,
        })
    };
    assert_eq!(rows, [row("a", 4, 1, Some(150.5)), row("b", 0, 1, None)]);
}

async fn proxies_come_with_what_went_wrong_behind_them(world: World) {
    let now = world.now();
    world.add_proxy("calm").await;
    let bad = world.add_proxy("bad").await;
    assert!(world.applied(Step { blamed: Some((bad, 1)), ..Step::default() }).await);
    let (failed, rotated) = (EventKind::SessionFailed, EventKind::ProxyRotated);
    let details = json!({"proxy_name": "bad"});
    say(
        &world,
        vec![
            entry(None, failed, details.clone(), now),
            entry(None, failed, details.clone(), now),
            entry(None, failed, details.clone(), now - hours(200)),
            entry(None, rotated, details.clone(), now),
            entry(None, EventKind::SessionReady, details, now),
            entry(None, failed, json!({}), now),
        ],
    )
    .await;
    let rows = world.store.report(Report::Proxies, now - hours(24 * 7)).await.unwrap();
    let row = |name: &str, fails: i32, active: bool, failures: i64, rotations: i64| {
        json!({
            "name": name, "host": "10.0.0.1", "fail_count": fails, "active": active,
            "session_failures": failures, "rotations": rotations,
        })
    };
    assert_eq!(rows, [row("bad", 1, false, 2, 1), row("calm", 0, true, 0, 0)]);
}
