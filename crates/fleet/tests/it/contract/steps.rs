//! Steps are written as a whole or not at all.

use lavra_fleet::code::ErrorCode;
use lavra_fleet::machine::{Entry, Guard, Step};
use lavra_fleet::model::{
    Checkpoint, CloseReason, EventKind, Mission, MissionId, MissionStatus, Waiting, Worker,
    WorkerId, WorkerStatus,
};
use lavra_fleet::store::{Assigned, Edit, LogFilter, Thing};
use lavra_tasks::model::Token;
use serde_json::{Map, json};

use crate::support::{World, kinds, on_each_store};

on_each_store!(
    every_column_comes_back_as_it_was_written,
    what_people_set_is_not_written_over,
    a_stale_token_writes_nothing_of_a_step,
    a_mission_s_guard_is_its_status_and_its_token,
    steps_stand_by_themselves,
    steps_about_the_same_rows_follow_each_other,
    a_proxy_is_blamed_released_and_praised,
    texts_that_no_database_holds_are_mended,
    no_steps_are_no_work,
);

/// A worker that scrapes a mission.
async fn scraping(world: &World) -> (WorkerId, Token, MissionId) {
    let id = world.queue(1).await.remove(0);
    let (_, leases) = world.fleet(1).await;
    world.make_ready(&leases[0]).await;
    let assigned = world.store.assign(&leases[0].0, leases[0].1).await.unwrap();
    assert!(matches!(assigned, Assigned::With(_)));
    let (worker, token) = leases[0].clone();
    (worker, token, id)
}

fn entry(mission_id: Option<&MissionId>, world: &World) -> Entry {
    Entry {
        mission_id: mission_id.cloned(),
        session_id: None,
        event: EventKind::ScrapeProgress,
        details: Map::from_iter([("n".to_owned(), json!(1))]),
        at: world.now(),
    }
}

async fn every_column_comes_back_as_it_was_written(world: World) {
    let (id, token, mission_id) = scraping(&world).await;
    let view = world.view(&(id.clone(), token)).await;
    let at = world.later().await;
    let worker = Worker {
        status: WorkerStatus::Error,
        session_count: 3,
        updated_at: at,
        last_proxy_id: Some("prx_1".into()),
        session_id: Some("ses_1".into()),
        session_started_at: Some(at),
        session_accepted: true,
        session_errors: 2,
        error_code: Some(ErrorCode::Error102),
        error_message: Some("quotes \" ' \\ and é".into()),
        next_attempt_at: Some(at),
        close_reason: Some(CloseReason::Error),
        close_by: Some(at),
        unclosed: true,
        stop_by: Some(at),
        unreachable_since: Some(at),
        waiting: Some(Waiting::SessionEnd),
        ..view.worker
    };
    let mission = Mission {
        checkpoint: Some(Checkpoint::Armazenamento),
        worker_job_id: Some("j".repeat(100)),
        worker_data_url: Some("https://x/y?z".into()),
        proxy_used: Some("p".into()),
        writer_job_id: Some("w".into()),
        ads_count: Some(i32::MAX),
        error_code: Some(ErrorCode::Error300),
        error_message: Some("m".into()),
        retry_count: 1,
        finished_at: Some(at),
        attempts: 9,
        phase_started_at: Some(at),
        writer_id: Some("wrt".into()),
        writer_accepted_at: Some(at),
        writer_processed: Some(i64::MAX),
        writer_moved_at: Some(at),
        next_attempt_at: Some(at),
        waiting: Some(Waiting::WriterJob),
        told_at: Some(at),
        logged_at: Some(at),
        held_by: Some(world.process()),
        ..view.mission.unwrap()
    };
    let step = Step {
        worker: Some((token, worker.clone())),
        mission: Some((Guard::Held(token), mission.clone())),
        logs: vec![entry(Some(&mission_id), &world)],
        ..Step::default()
    };
    assert!(world.applied(step).await);
    assert_eq!(world.worker(&id).await, worker);
    assert_eq!(world.mission(&mission_id).await, mission);
    let log = world.log_of(&mission_id).await;
    assert_eq!(kinds(&log), ["mission_queued", "mission_assigned", "scrape_progress"]);
    assert_eq!(log[2].details["n"], 1);
}

async fn what_people_set_is_not_written_over(world: World) {
    let (process, leases) = world.fleet(1).await;
    let (id, token) = leases[0].clone();
    let before = world.view(&leases[0]).await.worker;
    let thing = Thing::Worker(id.clone());
    let edit = Edit {
        name: Some("new".into()),
        url: Some("http://new".into()),
        storage_domain: Some("new.example".into()),
        active: Some(false),
        ..Edit::default()
    };
    world.store.edit(&thing, edit).await.unwrap();
    world.store.tested(&thing, true).await.unwrap();
    let stale = Worker {
        status: WorkerStatus::Ready,
        token: Some(999),
        held_by: Some(world.process()),
        ..before
    };
    assert!(world.applied(Step { worker: Some((token, stale)), ..Step::default() }).await);
    let after = world.worker(&id).await;
    assert_eq!((after.name.as_str(), after.url.as_str()), ("new", "http://new"));
    assert_eq!(after.storage_domain.as_deref(), Some("new.example"));
    assert_eq!((after.active, after.last_test_ok), (false, Some(true)));
    assert_eq!((after.token, after.held_by), (Some(token), Some(process)));
    assert_eq!(after.status, WorkerStatus::Ready);
}

async fn a_stale_token_writes_nothing_of_a_step(world: World) {
    let (id, token, mission_id) = scraping(&world).await;
    let (bad, in_use) = (world.add_proxy("bad").await, world.add_proxy("in use").await);
    let view = world.view(&(id.clone(), token)).await;
    let reserve = Step {
        worker: Some((token, view.worker.clone())),
        reserves: Some(in_use.clone()),
        ..Step::default()
    };
    assert!(world.applied(reserve).await);
    let before = (
        world.worker(&id).await,
        world.mission(&mission_id).await,
        world.store.proxies().await.unwrap(),
        world.entries(LogFilter::default()).await,
    );
    let mission = Mission { ads_count: Some(1), ..view.mission.clone().unwrap() };
    let worker = Worker { session_count: 9, ..view.worker.clone() };
    for (worker_token, mission_token) in [(token + 1, token), (token, token + 1)] {
        let step = Step {
            worker: Some((worker_token, worker.clone())),
            mission: Some((Guard::Held(mission_token), mission.clone())),
            reserves: Some(bad.clone()),
            blamed: Some((bad.clone(), 1)),
            praised: Some(bad.clone()),
            releases_proxy: true,
            links: Some("ses_1".into()),
            logs: vec![entry(Some(&mission_id), &world), entry(None, &world)],
            ..Step::default()
        };
        assert!(!world.applied(step).await);
    }
    let after = (
        world.worker(&id).await,
        world.mission(&mission_id).await,
        world.store.proxies().await.unwrap(),
        world.entries(LogFilter::default()).await,
    );
    assert_eq!(after, before);
}

async fn a_mission_s_guard_is_its_status_and_its_token(world: World) {
    for status in MissionStatus::ALL {
        for guard in [Guard::Held(7), Guard::Held(8), Guard::Queued] {
            let mission = world
                .put(|mission| {
                    mission.status = *status;
                    mission.token = Some(7);
                })
                .await;
            let next = Mission { ads_count: Some(5), ..mission.clone() };
            let step = Step {
                mission: Some((guard, next)),
                logs: vec![entry(Some(&mission.id), &world)],
                ..Step::default()
            };
            let expected = match guard {
                Guard::Held(token) => *status == MissionStatus::Running && token == 7,
                Guard::Queued => *status == MissionStatus::Queued,
            };
            assert_eq!(world.applied(step).await, expected, "{status} {guard:?}");
            let after = world.mission(&mission.id).await;
            assert_eq!(after.ads_count, expected.then_some(5), "{status} {guard:?}");
            assert_eq!(world.log_of(&mission.id).await.len(), usize::from(expected));
        }
    }
    let nobody = world.put(|_| {}).await;
    let ghost = Mission { id: "mis_nobody".into(), ..nobody };
    let step = Step { mission: Some((Guard::Queued, ghost)), ..Step::default() };
    assert!(!world.applied(step).await);
}

async fn steps_stand_by_themselves(world: World) {
    let (_, leases) = world.fleet(4).await;
    let mut steps = Vec::new();
    for (place, lease) in leases.iter().enumerate() {
        let worker = Worker { session_count: 1, ..world.view(lease).await.worker };
        let token = if place % 2 == 0 { lease.1 } else { lease.1 + 1000 };
        steps.push(Step {
            worker: Some((token, worker)),
            logs: vec![entry(None, &world)],
            ..Step::default()
        });
    }
    assert_eq!(world.store.apply(steps).await.unwrap(), [true, false, true, false]);
    for (place, lease) in leases.iter().enumerate() {
        assert_eq!(world.worker(&lease.0).await.session_count, i32::from(place % 2 == 0));
    }
    assert_eq!(world.entries(LogFilter::default()).await.len(), 2);
}

async fn steps_about_the_same_rows_follow_each_other(world: World) {
    let (id, token, mission_id) = scraping(&world).await;
    let view = world.view(&(id.clone(), token)).await;
    let mission = view.mission.unwrap();
    let step = |count: i32, next: Mission| Step {
        worker: Some((token, Worker { session_count: count, ..view.worker.clone() })),
        mission: Some((Guard::Held(token), next)),
        logs: vec![entry(Some(&mission_id), &world)],
        ..Step::default()
    };
    let over = Mission { status: MissionStatus::Completed, token: None, ..mission.clone() };
    let steps = vec![
        step(1, Mission { ads_count: Some(1), ..mission.clone() }),
        step(2, over),
        step(3, mission.clone()),
    ];
    assert_eq!(world.store.apply(steps).await.unwrap(), [true, true, false]);
    assert_eq!(world.worker(&id).await.session_count, 2);
    assert_eq!(world.mission(&mission_id).await.status, MissionStatus::Completed);
    assert_eq!(world.log_of(&mission_id).await.len(), 4);
}

async fn a_proxy_is_blamed_released_and_praised(world: World) {
    let (_, leases) = world.fleet(2).await;
    let (first, second) = (world.add_proxy("first").await, world.add_proxy("second").await);
    for (lease, proxy) in leases.iter().zip([&first, &second]) {
        let step = Step {
            worker: Some((lease.1, world.view(lease).await.worker)),
            reserves: Some(proxy.clone()),
            ..Step::default()
        };
        assert!(world.applied(step).await);
    }
    // One step blames and releases; another one of the same moment blames it too.
    let steps = vec![
        Step {
            worker: Some((leases[0].1, world.view(&leases[0]).await.worker)),
            blamed: Some((first.clone(), 3)),
            releases_proxy: true,
            ..Step::default()
        },
        Step { blamed: Some((first.clone(), 3)), ..Step::default() },
        Step { blamed: Some((second.clone(), 3)), ..Step::default() },
    ];
    assert_eq!(world.store.apply(steps).await.unwrap(), [true; 3]);
    let row = world.proxy(&first).await;
    assert_eq!((row.fail_count, row.active, row.in_use_by_worker_id), (2, true, None));
    let row = world.proxy(&second).await;
    assert_eq!((row.fail_count, row.in_use_by_worker_id), (1, Some(leases[1].0.clone())));
    assert!(world.applied(Step { praised: Some(second.clone()), ..Step::default() }).await);
    assert!(world.applied(Step { blamed: Some((first.clone(), 3)), ..Step::default() }).await);
    assert_eq!(world.proxy(&second).await.fail_count, 0);
    let row = world.proxy(&first).await;
    assert_eq!((row.fail_count, row.active), (3, false));
}

async fn texts_that_no_database_holds_are_mended(world: World) {
    let (id, token, mission_id) = scraping(&world).await;
    let view = world.view(&(id.clone(), token)).await;
    let mut said = entry(Some(&mission_id), &world);
    said.details = Map::from_iter([("a\0b".to_owned(), json!(["\0"]))]);
    let step = Step {
        worker: Some((token, Worker { error_message: Some("a\0b".into()), ..view.worker })),
        logs: vec![said],
        ..Step::default()
    };
    assert!(world.applied(step).await);
    assert!(world.worker(&id).await.error_message.unwrap().starts_with('a'));
    assert_eq!(world.log_of(&mission_id).await.len(), 3);
}

async fn no_steps_are_no_work(world: World) {
    assert_eq!(world.store.apply(Vec::new()).await.unwrap(), Vec::<bool>::new());
    assert!(world.applied(Step::default()).await, "nothing stands in its way");
}
