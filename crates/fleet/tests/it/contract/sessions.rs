//! Proxies for sessions, and missions for workers: each goes to one.

use std::collections::HashSet;
use std::sync::Arc;

use lavra_fleet::machine::Step;
use lavra_fleet::machine::worker::View;
use lavra_fleet::model::{
    Checkpoint, EventKind, MissionId, MissionStatus, Proxy, ProxyId, SessionId, Waiting, WorkerId,
    WorkerStatus,
};
use lavra_fleet::store::{Assigned, Edit, LogFilter, Opened, Opening, Store, Thing};
use lavra_tasks::model::Token;

use crate::support::{World, at_once, kinds, on_each_store};

on_each_store!(
    a_session_begins_with_a_proxy_that_is_then_taken,
    luck_chooses_among_the_free_in_their_order,
    the_previous_proxy_is_not_taken_again_unless_it_is_the_only_one,
    without_a_free_proxy_the_worker_waits_and_says_so_once,
    no_session_is_opened_that_nobody_needs,
    only_an_idle_worker_with_its_token_opens,
    of_many_that_open_at_once_no_two_have_the_same_proxy,
    sessions_opened_at_once_are_no_more_than_what_waits,
    the_oldest_of_the_queue_is_assigned_first,
    only_a_ready_worker_with_its_token_is_assigned,
    of_many_that_ask_at_once_no_two_have_the_same_mission,
    what_a_session_said_becomes_its_first_mission_s,
);

fn with(opened: Opened) -> Proxy {
    let Opened::With(proxy) = opened else { panic!("{opened:?}") };
    *proxy
}

fn mission(assigned: &Assigned) -> Option<MissionId> {
    match assigned {
        Assigned::With(view) => view.mission.as_ref().map(|mission| mission.id.clone()),
        Assigned::NothingQueued | Assigned::Lost => None,
    }
}

/// Ends the session of a worker, so that it may open another.
async fn close(world: &World, lease: &(WorkerId, Token)) {
    let mut worker = world.view(lease).await.worker;
    worker.status = WorkerStatus::Idle;
    worker.session_id = None;
    let step = Step { worker: Some((lease.1, worker)), releases_proxy: true, ..Step::default() };
    assert!(world.applied(step).await);
}

async fn a_session_begins_with_a_proxy_that_is_then_taken(world: World) {
    world.queue(1).await;
    let (_, leases) = world.fleet(1).await;
    let id = world.add_proxy("p").await;
    let proxy = with(world.open(&leases[0], 5).await);
    assert_eq!((&proxy.id, proxy.host.as_str()), (&id, "10.0.0.1"));
    let view = world.view(&leases[0]).await;
    assert_eq!(view.worker.status, WorkerStatus::Initializing);
    assert_eq!(view.worker.last_proxy_id, Some(id.clone()));
    assert_eq!(view.worker.waiting, Some(Waiting::Session));
    assert!(view.worker.session_id.is_some() && view.worker.session_started_at.is_some());
    assert_eq!(view.proxy.unwrap().id, id);
    let row = world.proxy(&id).await;
    assert_eq!(row.in_use_by_worker_id.as_ref(), Some(&leases[0].0));
    assert_eq!(row.last_used_at, Some(view.worker.updated_at));
    let log = world.entries(LogFilter { without_mission: true, ..LogFilter::default() }).await;
    assert_eq!(kinds(&log), ["session_started"]);
    assert_eq!(log[0].session_id, view.worker.session_id);
    assert_eq!(log[0].details["proxy_name"], "p");
    assert_eq!(world.open(&leases[0], 5).await, Opened::Lost, "it is not idle any more");

    close(&world, &leases[0]).await;
    assert_eq!(world.proxy(&id).await.in_use_by_worker_id, None);
    assert_eq!(world.view(&leases[0]).await.proxy, None);
}

async fn luck_chooses_among_the_free_in_their_order(world: World) {
    world.queue(9).await;
    let (_, leases) = world.fleet(5).await;
    let mut free: Vec<ProxyId> = Vec::new();
    for number in 0..5 {
        free.push(world.add_proxy(&format!("p{number}")).await);
    }
    let idle = world.add_proxy("inactive").await;
    let edit = Edit { active: Some(false), ..Edit::default() };
    world.store.edit(&Thing::Proxy(idle), edit).await.unwrap();
    for (lease, luck) in leases.iter().zip([7, u64::MAX, 2, 1, 0]) {
        let expected = free.remove((luck % free.len() as u64) as usize);
        assert_eq!(with(world.open(lease, luck).await).id, expected);
    }
}

async fn the_previous_proxy_is_not_taken_again_unless_it_is_the_only_one(world: World) {
    world.queue(9).await;
    let (_, leases) = world.fleet(2).await;
    let first = world.add_proxy("first").await;
    assert_eq!(with(world.open(&leases[0], 0).await).id, first);
    close(&world, &leases[0]).await;
    assert_eq!(with(world.open(&leases[0], 0).await).id, first, "the only one");
    world
        .set_worker(&leases[0], |worker| {
            worker.error_code = Some(lavra_fleet::code::ErrorCode::Error102);
        })
        .await;
    close(&world, &leases[0]).await;

    let second = world.add_proxy("second").await;
    for luck in 0..2 {
        assert_eq!(with(world.open(&leases[0], luck).await).id, second);
        let log = world.entries(LogFilter::default()).await;
        let rotated = log.iter().filter(|entry| entry.event == EventKind::ProxyRotated).count();
        assert_eq!(rotated, 1, "said when it changed after an error");
        close(&world, &leases[0]).await;
        world.set_worker(&leases[0], |worker| worker.last_proxy_id = Some(first.clone())).await;
        world.set_worker(&leases[0], |worker| worker.error_code = None).await;
    }
    // It is free, and the only free one, but not the only active one.
    assert_eq!(with(world.open(&leases[1], 1).await).id, second);
    assert_eq!(world.open(&leases[0], 0).await, Opened::NoProxy);
}

async fn without_a_free_proxy_the_worker_waits_and_says_so_once(world: World) {
    world.queue(1).await;
    let (_, leases) = world.fleet(1).await;
    for _ in 0..3 {
        assert_eq!(world.open(&leases[0], 0).await, Opened::NoProxy);
    }
    let worker = world.view(&leases[0]).await.worker;
    assert_eq!((worker.status, worker.waiting), (WorkerStatus::Idle, Some(Waiting::Proxy)));
    let log = world.entries(LogFilter::default()).await;
    let failed: Vec<_> =
        log.iter().filter(|entry| entry.event == EventKind::SessionFailed).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!((&failed[0].mission_id, &failed[0].session_id), (&None, &None));
    assert_eq!(failed[0].details["error_code"], "ERROR501");
    world.add_proxy("p").await;
    with(world.open(&leases[0], 0).await);
}

async fn no_session_is_opened_that_nobody_needs(world: World) {
    let (_, leases) = world.fleet(3).await;
    for number in 0..3 {
        world.add_proxy(&format!("p{number}")).await;
    }
    assert_eq!(world.open(&leases[0], 0).await, Opened::NotNeeded, "an empty queue");
    world.bank(5).await;
    assert_eq!(world.open(&leases[0], 0).await, Opened::NotNeeded, "the bank is no queue");
    world.queue(1).await;
    with(world.open(&leases[0], 0).await);
    assert_eq!(world.open(&leases[1], 0).await, Opened::NotNeeded, "one expects it");
    world.make_ready(&leases[0]).await;
    assert_eq!(world.open(&leases[1], 0).await, Opened::NotNeeded, "one waits for it");
    world
        .set_worker(&leases[0], |worker| {
            worker.close_reason = Some(lavra_fleet::model::CloseReason::SessionLimit);
        })
        .await;
    with(world.open(&leases[1], 0).await);

    // A mission that lost its session has a new one, whatever waits.
    let ids = world.queue(1).await;
    let mission = world.mission(&ids[0]).await;
    world.set_worker(&leases[2], |worker| worker.current_mission_id = Some(mission.id)).await;
    with(world.open(&leases[2], 0).await);
}

async fn only_an_idle_worker_with_its_token_opens(world: World) {
    world.queue(9).await;
    world.add_proxy("p").await;
    let (_, leases) = world.fleet(1).await;
    let (id, token) = leases[0].clone();
    assert_eq!(world.open(&(id.clone(), token + 1), 0).await, Opened::Lost);
    assert_eq!(world.open(&("nobody".into(), token), 0).await, Opened::Lost);
    for status in WorkerStatus::ALL.iter().filter(|status| **status != WorkerStatus::Idle) {
        world.set_worker(&leases[0], |worker| worker.status = *status).await;
        assert_eq!(world.open(&leases[0], 0).await, Opened::Lost);
    }
    assert!(
        world.entries(LogFilter { without_mission: true, ..LogFilter::default() }).await.is_empty()
    );
}

async fn open_all(world: &World, leases: &[(WorkerId, Token)]) -> Vec<Opened> {
    let leases: Arc<[(WorkerId, Token)]> = leases.into();
    at_once(leases.len(), |place| {
        let store: Arc<dyn Store> = world.store.clone();
        let (worker, token) = leases[place].clone();
        async move {
            let session = SessionId::new(store.clock());
            let luck = place as u64 * 7;
            store.open(Opening { worker, token, session, luck }).await.unwrap()
        }
    })
    .await
}

async fn of_many_that_open_at_once_no_two_have_the_same_proxy(world: World) {
    world.queue(60).await;
    let (_, leases) = world.fleet(50).await;
    for number in 0..30 {
        world.add_proxy(&format!("p{number}")).await;
    }
    let opened = open_all(&world, &leases).await;
    let taken: Vec<&ProxyId> = opened
        .iter()
        .filter_map(|opened| match opened {
            Opened::With(proxy) => Some(&proxy.id),
            _ => None,
        })
        .collect();
    assert_eq!(taken.len(), 30);
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 30);
    assert_eq!(opened.iter().filter(|opened| **opened == Opened::NoProxy).count(), 20);
    let users: HashSet<_> = world
        .store
        .proxies()
        .await
        .unwrap()
        .into_iter()
        .filter_map(|proxy| proxy.in_use_by_worker_id)
        .collect();
    assert_eq!(users.len(), 30);
}

async fn sessions_opened_at_once_are_no_more_than_what_waits(world: World) {
    world.queue(5).await;
    let (_, leases) = world.fleet(20).await;
    for number in 0..20 {
        world.add_proxy(&format!("p{number}")).await;
    }
    let opened = open_all(&world, &leases).await;
    let count = opened.iter().filter(|opened| matches!(opened, Opened::With(_))).count();
    assert_eq!(count, 5);
    let rest = opened.iter().filter(|opened| **opened == Opened::NotNeeded).count();
    assert_eq!(rest, 15);
}

async fn the_oldest_of_the_queue_is_assigned_first(world: World) {
    let late = world.bank(2).await;
    let early = world.queue(2).await;
    world.later().await;
    let filter = crate::support::these(&late);
    world.store.wish(&filter, lavra_fleet::machine::mission::Wish::Queue, "ana").await.unwrap();
    let (process, leases) = world.fleet(5).await;
    let mut order = Vec::new();
    for lease in &leases {
        world.make_ready(lease).await;
        let assigned = world.store.assign(&lease.0, lease.1).await.unwrap();
        if let Assigned::With(view) = &assigned {
            let mission = view.mission.as_ref().unwrap();
            assert_eq!(*mission, world.mission(&mission.id).await, "as it is stored");
            assert_eq!(mission.status, MissionStatus::Running);
            assert_eq!(mission.checkpoint, Some(Checkpoint::Extracao));
            assert_eq!((mission.worker_id.as_ref(), mission.attempts), (Some(&lease.0), 1));
            assert_eq!((mission.token, mission.held_by), (Some(lease.1), Some(process)));
            let stored = world.view(lease).await;
            assert_eq!(stored.worker.status, WorkerStatus::Scraping);
            assert_eq!(**view, View { has_queue: view.has_queue, ..stored });
        } else {
            assert_eq!(assigned, Assigned::NothingQueued);
        }
        order.extend(mission(&assigned));
    }
    assert_eq!(order, [early, late].concat());
}

async fn only_a_ready_worker_with_its_token_is_assigned(world: World) {
    let ids = world.queue(2).await;
    let (_, leases) = world.fleet(1).await;
    let (id, token) = leases[0].clone();
    for status in WorkerStatus::ALL.iter().filter(|status| **status != WorkerStatus::Ready) {
        world.set_worker(&leases[0], |worker| worker.status = *status).await;
        assert_eq!(world.store.assign(&id, token).await.unwrap(), Assigned::Lost);
    }
    world.make_ready(&leases[0]).await;
    assert_eq!(world.store.assign(&id, token + 1).await.unwrap(), Assigned::Lost);
    assert_eq!(world.store.assign(&"nobody".into(), token).await.unwrap(), Assigned::Lost);
    world.set_worker(&leases[0], |w| w.current_mission_id = Some(ids[1].clone())).await;
    assert_eq!(world.store.assign(&id, token).await.unwrap(), Assigned::Lost);
    assert_eq!(world.store.counts().await.unwrap().queued, 2);
}

async fn of_many_that_ask_at_once_no_two_have_the_same_mission(world: World) {
    world.queue(30).await;
    let (_, leases) = world.fleet(50).await;
    for lease in &leases {
        world.make_ready(lease).await;
    }
    let leases: Arc<[(WorkerId, Token)]> = leases.into();
    let mut taken: Vec<MissionId> = Vec::new();
    // Who found the last ones in others' hands asks again, as an orchestrator does.
    for _ in 0..5 {
        let assigned = at_once(leases.len(), |place| {
            let (store, lease) = (world.store.clone(), leases[place].clone());
            async move { store.assign(&lease.0, lease.1).await.unwrap() }
        })
        .await;
        taken.extend(assigned.iter().filter_map(mission));
    }
    assert_eq!(taken.len(), 30);
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 30);
    let counts = world.store.counts().await.unwrap();
    assert_eq!((counts.queued, counts.extracao), (0, 30));
}

async fn what_a_session_said_becomes_its_first_mission_s(world: World) {
    let ids = world.queue(2).await;
    world.later().await;
    let (_, leases) = world.fleet(2).await;
    world.add_proxy("p").await;
    world.add_proxy("q").await;
    with(world.open(&leases[0], 0).await);
    with(world.open(&leases[1], 0).await);
    for lease in &leases {
        let view = world.view(lease).await;
        let reply = lavra_fleet::api::Reply::Session(lavra_fleet::api::SessionStatus::Ready);
        let ask = lavra_fleet::machine::worker::Ask::SessionStatus;
        let settings = lavra_fleet::settings::Settings::default();
        let now = world.now();
        let step = lavra_fleet::machine::worker::after(&view, ask, &reply, &settings, now);
        assert!(world.applied(step.unwrap()).await);
    }
    let expected = ["mission_queued", "session_started", "session_ready", "mission_assigned"];
    for (lease, id) in leases.iter().zip(&ids) {
        let session = world.view(lease).await.worker.session_id;
        assert_eq!(
            mission(&world.store.assign(&lease.0, lease.1).await.unwrap()).as_ref(),
            Some(id)
        );
        let log = world.log_of(id).await;
        assert_eq!(kinds(&log), expected);
        assert!(log[1..].iter().all(|entry| entry.session_id == session));
        let times: Vec<_> = log.iter().map(|entry| entry.timestamp).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    }
    let rest = world.entries(LogFilter { without_mission: true, ..LogFilter::default() }).await;
    assert!(rest.is_empty(), "{rest:?}");
}
