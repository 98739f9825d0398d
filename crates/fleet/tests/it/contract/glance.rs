//! What an overview shows.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{Checkpoint, Mission, MissionStatus, Mode, Waiting, WriterId};
use lavra_fleet::store::{Control, Edit, Filter, Pace, Thing, Wait, Waiter, WaitsFor, WriterLoad};

use crate::support::{World, on_each_store};

on_each_store!(
    what_ended_is_counted_by_pieces_of_time,
    failures_are_counted_by_code,
    what_waits_says_for_what_and_since_when,
    a_writer_s_load_is_what_it_stores_and_what_ended,
    missions_are_counted_by_a_filter,
    a_stamp_changes_with_what_the_log_does_not_tell,
);

const PIECE: Duration = Duration::from_secs(600);

async fn ended(world: &World, status: MissionStatus, at: Timestamp, code: Option<ErrorCode>) {
    world
        .put(|mission| {
            mission.status = status;
            mission.finished_at = Some(at);
            mission.error_code = code;
            mission.ads_count = Some(7);
        })
        .await;
}

async fn what_ended_is_counted_by_pieces_of_time(world: World) {
    let start: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
    let at = |minutes: i64| start + SignedDuration::from_mins(minutes);
    let (completed, failed) = (MissionStatus::Completed, MissionStatus::Failed);
    ended(&world, completed, at(-1), None).await;
    ended(&world, completed, at(0), None).await;
    ended(&world, completed, at(9), None).await;
    ended(&world, failed, at(10), Some(ErrorCode::Error203)).await;
    ended(&world, MissionStatus::Canceled, at(10), None).await;
    ended(&world, completed, at(45), None).await;
    let pace = world.store.pace(start, PIECE).await.unwrap();
    let piece = |minutes, completed, failed, ads| Pace { at: at(minutes), completed, failed, ads };
    assert_eq!(pace, [piece(0, 2, 0, 14), piece(10, 0, 1, 0), piece(40, 1, 0, 7)]);
}

async fn failures_are_counted_by_code(world: World) {
    let start: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
    let failed = MissionStatus::Failed;
    let before = start - SignedDuration::from_secs(1);
    ended(&world, failed, before, Some(ErrorCode::Error104)).await;
    ended(&world, failed, start, Some(ErrorCode::Error304)).await;
    ended(&world, failed, start, Some(ErrorCode::Error203)).await;
    ended(&world, failed, start, Some(ErrorCode::Error203)).await;
    ended(&world, MissionStatus::Completed, start, Some(ErrorCode::Error104)).await;
    let failures = world.store.failures_by_code(start).await.unwrap();
    assert_eq!(failures, [(ErrorCode::Error203, 2), (ErrorCode::Error304, 1)]);
}

async fn what_waits_says_for_what_and_since_when(world: World) {
    assert_eq!(world.store.waits().await.unwrap(), []);
    world.bank(1).await;
    let first = world.queue(2).await.remove(0);
    let since = world.mission(&first).await.queued_at;
    let at: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
    for (has_data, started) in [(false, at), (true, at + SignedDuration::from_secs(5))] {
        world
            .put(|mission| {
                mission.status = MissionStatus::Running;
                mission.checkpoint = Some(Checkpoint::Armazenamento);
                mission.waiting = Some(Waiting::Writer);
                mission.phase_started_at = Some(started);
                mission.worker_data_url = has_data.then(|| "https://a.example/b".into());
            })
            .await;
    }
    world
        .put(|mission| {
            mission.queued_at = Some(at);
            mission.worker_data_url = Some("https://a.example/b".into());
        })
        .await;
    let wait = |what, count, since| Wait { who: Waiter::Mission, what, count, since };
    assert_eq!(
        world.store.waits().await.unwrap(),
        [
            wait(WaitsFor::Turn, 2, since),
            wait(WaitsFor::Named(Waiting::Writer), 2, Some(at)),
            wait(WaitsFor::Write, 1, Some(at)),
        ]
    );
}

async fn a_writer_s_load_is_what_it_stores_and_what_ended(world: World) {
    let start: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
    let before = start - SignedDuration::from_secs(1);
    let (a, b) = (world.add_writer("a").await, world.add_writer("b").await);
    world.add_writer("idle").await;
    let put = async |writer: &WriterId, status, finished_at| {
        let change = |mission: &mut Mission| {
            mission.status = status;
            mission.finished_at = finished_at;
            mission.writer_id = Some(writer.clone());
        };
        world.put(change).await;
    };
    put(&a, MissionStatus::Running, None).await;
    put(&a, MissionStatus::Running, None).await;
    put(&a, MissionStatus::Completed, Some(start)).await;
    put(&a, MissionStatus::Completed, Some(before)).await;
    put(&b, MissionStatus::Failed, Some(start)).await;
    ended(&world, MissionStatus::Completed, start, None).await;
    let load = |writer: &WriterId, under_way, completed, failed| WriterLoad {
        writer: writer.clone(),
        under_way,
        completed,
        failed,
    };
    let loads = world.store.writer_loads(start).await.unwrap();
    assert_eq!(loads, [load(&a, 2, 1, 0), load(&b, 0, 0, 1)]);
}

async fn missions_are_counted_by_a_filter(world: World) {
    world.bank(3).await;
    world.queue(2).await;
    let bank = Filter { in_bank: Some(true), ..Filter::default() };
    assert_eq!(world.store.count(&bank).await.unwrap(), 3);
    assert_eq!(world.store.count(&Filter::default()).await.unwrap(), 5);
}

async fn a_stamp_changes_with_what_the_log_does_not_tell(world: World) {
    let mut stamps = vec![world.store.stamp().await.unwrap()];
    assert_eq!(world.store.stamp().await.unwrap(), stamps[0], "nothing has changed");
    world.bank(1).await;
    stamps.push(world.store.stamp().await.unwrap());
    let proxy = world.add_proxy("a").await;
    stamps.push(world.store.stamp().await.unwrap());
    let edit = Edit { active: Some(false), ..Edit::default() };
    world.store.edit(&Thing::Proxy(proxy), edit).await.unwrap();
    stamps.push(world.store.stamp().await.unwrap());
    world.store.set_control(Control { mode: Mode::Run, task_id: None }, None).await.unwrap();
    stamps.push(world.store.stamp().await.unwrap());
    let mut settings = world.store.settings().await.unwrap();
    settings.session_limit += 1;
    world.store.set_settings(settings).await.unwrap();
    stamps.push(world.store.stamp().await.unwrap());
    let different: std::collections::BTreeSet<&String> = stamps.iter().collect();
    assert_eq!(different.len(), stamps.len(), "{stamps:#?}");
}
