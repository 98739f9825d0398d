//! What people wish: the store does to many what the machine says of one.

use jiff::SignedDuration;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::machine::mission::{Wish, granted, refusal};
use lavra_fleet::model::{Checkpoint, Mission, MissionStatus, Waiting};
use lavra_fleet::store::Filter;

use crate::support::{World, kinds, on_each_store, these};

on_each_store!(
    a_wish_does_what_the_machine_says_in_every_state,
    many_are_queued_in_the_order_of_their_ids,
    a_wish_that_finds_nothing_does_nothing,
    a_mission_that_is_canceled_is_lost_to_who_held_it,
);

const WISHES: [Wish; 4] = [
    Wish::Queue,
    Wish::Cancel,
    Wish::Retry { from_scrape: false },
    Wish::Retry { from_scrape: true },
];

/// Every column that a mission may have on its way.
fn fill(mission: &mut Mission, world: &World) {
    let at = world.now();
    mission.worker_job_id = Some("scrape_1".into());
    mission.proxy_used = Some("proxy".into());
    mission.writer_job_id = Some("write_1".into());
    mission.ads_count = Some(7);
    mission.error_code = Some(ErrorCode::Error203);
    mission.error_message = Some("it \"failed\"".into());
    mission.retry_count = 2;
    mission.started_at = Some(at);
    mission.finished_at = Some(at);
    mission.attempts = 4;
    mission.phase_started_at = Some(at);
    mission.writer_id = Some("wrt_1".into());
    mission.writer_accepted_at = Some(at);
    mission.writer_processed = Some(12);
    mission.writer_moved_at = Some(at);
    mission.next_attempt_at = Some(at);
    mission.waiting = Some(Waiting::Writer);
    mission.told_at = Some(at);
    mission.token = Some(77);
    mission.held_by = Some(world.process());
}

async fn a_wish_does_what_the_machine_says_in_every_state(world: World) {
    let worker = world.add_worker("w").await;
    let hour = SignedDuration::from_hours(1);
    for status in MissionStatus::ALL {
        for (is_queued, has_data, logged) in
            [(false, false, None), (true, false, Some(-hour)), (true, true, Some(hour))]
        {
            for checkpoint in [None, Some(Checkpoint::Armazenamento)] {
                for wish in WISHES {
                    let before = world
                        .put(|mission| {
                            fill(mission, &world);
                            mission.status = *status;
                            mission.checkpoint = checkpoint;
                            mission.worker_id = Some(worker.clone());
                            mission.queued_at = is_queued.then(|| world.now());
                            mission.worker_data_url = has_data.then(|| "https://x/y".into());
                            mission.logged_at = logged.map(|by| world.now() + by);
                        })
                        .await;
                    let case = format!("{wish:?} of {before:?}");
                    assert_eq!(world.mission(&before.id).await, before, "as it was put");
                    compare(&world, &before, wish, &case).await;
                }
            }
        }
    }
}

async fn compare(world: &World, before: &Mission, wish: Wish, case: &str) {
    let filter = these(std::slice::from_ref(&before.id));
    let done = world.store.wish(&filter, wish, "ana").await.unwrap();
    let after = world.mission(&before.id).await;
    let log = world.log_of(&before.id).await;
    if refusal(before, wish).is_some() {
        assert_eq!(done, [], "{case}");
        assert_eq!(after, *before, "{case}");
        assert!(log.is_empty(), "{case}");
        return;
    }
    assert_eq!(done, std::slice::from_ref(&before.id), "{case}");
    let at = match wish {
        Wish::Queue | Wish::Retry { .. } => after.queued_at,
        Wish::Cancel => after.finished_at,
    };
    let (expected, entry) = granted(before, wish, "ana", at.unwrap());
    assert_eq!(after, expected, "{case}");
    let [said] = log.as_slice() else { panic!("{} entries: {case}", log.len()) };
    assert_eq!((said.event, &said.details), (entry.event, &entry.details), "{case}");
    assert_eq!((said.timestamp, &said.session_id), (entry.at, &entry.session_id), "{case}");
}

async fn many_are_queued_in_the_order_of_their_ids(world: World) {
    let ids = world.bank(500).await;
    let done = world.store.wish(&Filter::default(), Wish::Queue, "ana").await.unwrap();
    assert_eq!(done, ids);
    let mut missions = world.store.missions(&Filter::default(), None, 1000).await.unwrap();
    missions.reverse();
    let times: Vec<_> = missions.iter().map(|mission| mission.queued_at.unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "each has a time of its own");
    let done = world.store.wish(&Filter::default(), Wish::Queue, "ana").await.unwrap();
    assert_eq!(done, [], "they are in the queue");
}

async fn a_wish_that_finds_nothing_does_nothing(world: World) {
    let nobody = these(&["mis_nobody".into()]);
    for wish in WISHES {
        assert_eq!(world.store.wish(&nobody, wish, "ana").await.unwrap(), []);
    }
}

async fn a_mission_that_is_canceled_is_lost_to_who_held_it(world: World) {
    let ids = world.queue(1).await;
    let (_, leases) = world.fleet(1).await;
    world.make_ready(&leases[0]).await;
    world.store.assign(&leases[0].0, leases[0].1).await.unwrap();
    let before = world.view(&leases[0]).await;
    world.store.wish(&these(&ids), Wish::Cancel, "ana").await.unwrap();
    let mission = world.mission(&ids[0]).await;
    assert_eq!(mission.status, MissionStatus::Canceled);
    assert_eq!(mission.checkpoint, Some(Checkpoint::Extracao), "where it was");
    let late = lavra_fleet::machine::Step {
        mission: before.mission.map(|m| (lavra_fleet::machine::Guard::Held(leases[0].1), m)),
        worker: Some((leases[0].1, before.worker)),
        ..Default::default()
    };
    assert!(!world.applied(late).await);
    assert_eq!(world.mission(&ids[0]).await, mission);
    let log = world.log_of(&ids[0]).await;
    assert_eq!(kinds(&log), ["mission_queued", "mission_assigned", "mission_canceled"]);
}
