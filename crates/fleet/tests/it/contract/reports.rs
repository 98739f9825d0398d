//! The reports of the specification.

use jiff::{SignedDuration, Timestamp};
use lavra_fleet::code::ErrorCode;
use lavra_fleet::machine::{Entry, Step};
use lavra_fleet::model::{EventKind, MissionId, MissionStatus, ProxyId, WorkerId};
use lavra_fleet::report::{Failure, Performance, ProxyTrouble, Window};
use serde_json::{Map, Value, json};

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
    let window = Window::since(now - hours(24));
    let rows = world.store.failures(window, None, 10).await.unwrap();
    let row = |n: i32, at: Timestamp, row: &Failure| Failure {
        id: failed.clone(),
        status: MissionStatus::Failed,
        error_code: Some("ERROR203".into()),
        error_message: Some("again".into()),
        retry_count: 2,
        failed_at: at,
        details: Map::from_iter([("n".to_owned(), json!(n))]),
        log_id: row.log_id.clone(),
    };
    assert_eq!(rows, [row(2, now - hours(1), &rows[0]), row(1, now - hours(2), &rows[1])]);

    let first = world.store.failures(window, None, 1).await.unwrap();
    assert_eq!(first, rows[..1]);
    let before = Some((rows[0].failed_at, rows[0].log_id.clone()));
    assert_eq!(world.store.failures(window, before, 9).await.unwrap(), rows[1..]);
    let ended = Window { until: now - hours(1), ..window };
    assert_eq!(world.store.failures(ended, None, 9).await.unwrap(), rows[1..], "before its end");
    let all = Window::since(Timestamp::MIN);
    assert_eq!(world.store.failures(all, None, 9).await.unwrap().len(), 3);
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
    let window = Window::since(now - hours(24 * 7));
    let rows = world.store.performance(window).await.unwrap();
    let row = |name: &str, id: &WorkerId, done, failed, average| Performance {
        worker_name: name.into(),
        completed_count: done,
        failed_count: failed,
        avg_duration_ms: average,
        worker_id: id.clone(),
    };
    assert_eq!(rows, [row("a", &a, 4, 1, Some(150.5)), row("b", &b, 0, 1, None)]);
    let early = Window { until: now, since: now - hours(300) };
    let rows = world.store.performance(early).await.unwrap();
    assert_eq!(rows, [row("a", &a, 1, 0, Some(9.0))]);
}

async fn proxies_come_with_what_went_wrong_behind_them(world: World) {
    let now = world.now();
    let calm = world.add_proxy("calm").await;
    let bad = world.add_proxy("bad").await;
    assert!(world.applied(Step { blamed: Some((bad.clone(), 1)), ..Step::default() }).await);
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
    let window = Window::since(now - hours(24 * 7));
    let rows = world.store.troubled_proxies(window).await.unwrap();
    let row = |name: &str, id: &ProxyId, fails, active, failures, rotations| ProxyTrouble {
        name: Some(name.into()),
        host: "10.0.0.1".into(),
        fail_count: fails,
        active,
        session_failures: failures,
        rotations,
        proxy_id: id.clone(),
    };
    assert_eq!(rows, [row("bad", &bad, 1, false, 2, 1), row("calm", &calm, 0, true, 0, 0)]);
    let early = Window { until: now, since: now - hours(300) };
    let rows = world.store.troubled_proxies(early).await.unwrap();
    assert_eq!((rows[0].session_failures, rows[0].rotations), (1, 0));
}
