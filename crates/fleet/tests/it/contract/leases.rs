//! Which process looks after what.

use std::collections::HashSet;

use lavra_fleet::machine::mission::Wish;
use lavra_fleet::machine::{Guard, Step};
use lavra_fleet::model::{Checkpoint, Mission, MissionStatus, WorkerId, WorkerStatus};
use lavra_fleet::store::{Assigned, Edit, Leased, Thing};

use crate::support::{World, at_once, on_each_store, storing, these};

on_each_store!(
    a_process_alone_takes_everything_and_keeps_it,
    two_processes_share_and_three_do,
    processes_that_come_at_once_never_hold_the_same,
    what_a_silent_process_held_is_taken_over_with_its_mission,
    what_a_process_gives_back_is_free,
    a_process_that_leaves_is_not_waited_for,
    workers_that_nobody_needs_are_left_alone,
    a_mission_to_be_stored_has_a_process_of_its_own,
    a_retry_from_the_write_goes_straight_to_storing,
    a_view_is_only_for_the_token,
);

fn ids(leased: &Leased) -> HashSet<WorkerId> {
    leased.workers.iter().map(|(id, _)| id.clone()).collect()
}

async fn a_process_alone_takes_everything_and_keeps_it(world: World) {
    let (process, leases) = world.fleet(3).await;
    assert_eq!(leases.len(), 3);
    let tokens: HashSet<_> = leases.iter().map(|(_, token)| *token).collect();
    assert_eq!(tokens.len(), 3, "each has a token of its own");
    let again = world.lease(process).await;
    assert_eq!((again.workers, again.surplus), (leases.clone(), 0), "the same tokens");
    let worker = world.worker(&leases[0].0).await;
    assert_eq!((worker.token, worker.held_by), (Some(leases[0].1), Some(process)));
}

async fn two_processes_share_and_three_do(world: World) {
    let (first, _) = world.fleet(6).await;
    let (second, third) = (world.process(), world.process());
    let none = world.lease(second).await;
    assert_eq!((none.workers.len(), none.surplus), (0, 0));
    let all = world.lease(first).await;
    assert_eq!((all.workers.len(), all.surplus), (6, 3));
    let given: Vec<WorkerId> = all.workers.into_iter().map(|(id, _)| id).take(3).collect();
    world.store.release(first, given.clone()).await.unwrap();
    let half = world.lease(second).await;
    assert_eq!((ids(&half), half.surplus), (given.iter().cloned().collect(), 0));
    let other_half = world.lease(first).await;
    assert_eq!((other_half.workers.len(), other_half.surplus), (3, 0));
    assert!(ids(&half).is_disjoint(&ids(&other_half)));

    world.lease(third).await;
    let third_of = world.lease(second).await;
    assert_eq!((third_of.workers.len(), third_of.surplus), (3, 1));
    world.store.release(second, given[..1].to_vec()).await.unwrap();
    assert_eq!(ids(&world.lease(third).await), given[..1].iter().cloned().collect());
    // What is not its own it cannot give back.
    world.store.release(third, given.clone()).await.unwrap();
    assert_eq!(world.lease(second).await.workers.len(), 2);
}

async fn processes_that_come_at_once_never_hold_the_same(world: World) {
    for number in 0..20 {
        world.add_worker(&format!("w{number}")).await;
    }
    let processes: Vec<_> = (0..5).map(|_| world.process()).collect();
    for _ in 0..6 {
        let leased = at_once(5, |place| {
            let (store, process) = (world.store.clone(), processes[place]);
            async move {
                let leased = store.lease(process, crate::support::STALE).await.unwrap();
                let spare = leased.workers.iter().take(leased.surplus);
                let spare: Vec<WorkerId> = spare.map(|(id, _)| id.clone()).collect();
                store.release(process, spare.clone()).await.unwrap();
                let kept = leased.workers.into_iter().map(|(id, _)| id);
                kept.filter(|id| !spare.contains(id)).collect::<Vec<_>>()
            }
        })
        .await;
        let kept: Vec<WorkerId> = leased.into_iter().flatten().collect();
        let distinct: HashSet<&WorkerId> = kept.iter().collect();
        assert_eq!(distinct.len(), kept.len(), "held twice");
    }
    for process in processes {
        assert_eq!(world.lease(process).await.workers.len(), 4);
    }
}

async fn what_a_silent_process_held_is_taken_over_with_its_mission(world: World) {
    let ids = world.queue(1).await;
    let (first, leases) = world.fleet(1).await;
    world.make_ready(&leases[0]).await;
    let assigned = world.store.assign(&leases[0].0, leases[0].1).await.unwrap();
    assert!(matches!(assigned, Assigned::With(_)));
    let before = world.view(&leases[0]).await;

    let second = world.process();
    assert!(world.lease(second).await.workers.is_empty(), "the first is alive");
    world.store.leave(second).await.unwrap();
    world.falls_silent(first).await;
    let taken = world.lease(second).await;
    assert_eq!(taken.workers.len(), 1);
    assert!(taken.workers[0].1 > leases[0].1, "a new token");
    let view = world.view(&taken.workers[0]).await;
    let mission = view.mission.unwrap();
    assert_eq!((mission.token, mission.held_by), (Some(taken.workers[0].1), Some(second)));
    assert_eq!(mission.id, ids[0]);

    assert_eq!(world.store.view(&leases[0].0, leases[0].1).await.unwrap(), None);
    let late = Step {
        worker: Some((leases[0].1, before.worker)),
        mission: before.mission.map(|mission| (Guard::Held(leases[0].1), mission)),
        ..Step::default()
    };
    assert!(!world.applied(late).await);
    assert!(world.lease(first).await.workers.is_empty(), "it has lost it");
}

async fn what_a_process_gives_back_is_free(world: World) {
    let (first, leases) = world.fleet(1).await;
    world.store.release(first, vec![leases[0].0.clone()]).await.unwrap();
    let second = world.process();
    let taken = world.lease(second).await;
    assert_eq!(taken.workers.len(), 1);
    assert!(taken.workers[0].1 > leases[0].1);
}

async fn a_process_that_leaves_is_not_waited_for(world: World) {
    let (first, _) = world.fleet(2).await;
    let mission = world.put(storing).await;
    assert_eq!(world.lease(first).await.missions.len(), 1);
    world.store.leave(first).await.unwrap();
    assert_eq!(world.mission(&mission.id).await.held_by, None);
    let second = world.process();
    let taken = world.lease(second).await;
    assert_eq!((taken.workers.len(), taken.missions.len(), taken.surplus), (2, 1, 0));
}

async fn workers_that_nobody_needs_are_left_alone(world: World) {
    let worker = world.add_worker("w").await;
    let edit = |active| Edit { active: Some(active), ..Edit::default() };
    let thing = Thing::Worker(worker);
    world.store.edit(&thing, edit(false)).await.unwrap();
    let process = world.process();
    assert!(world.lease(process).await.workers.is_empty());
    world.store.edit(&thing, edit(true)).await.unwrap();
    let leases = world.lease(process).await.workers;
    assert_eq!(leases.len(), 1);
    // Whose session stands is looked after until it is closed.
    world.make_ready(&leases[0]).await;
    world.store.edit(&thing, edit(false)).await.unwrap();
    world.store.leave(process).await.unwrap();
    assert_eq!(world.lease(process).await.workers.len(), 1);
}

async fn a_mission_to_be_stored_has_a_process_of_its_own(world: World) {
    let mission = world.put(storing).await;
    let (first, second) = (world.process(), world.process());
    let leased = world.lease(first).await.missions;
    let [(id, token)] = leased.as_slice() else { panic!("{leased:?}") };
    assert_eq!(*id, mission.id);
    let row = world.store.storing(id, *token).await.unwrap().unwrap();
    assert_eq!((row.token, row.held_by), (Some(*token), Some(first)));
    assert_eq!(world.store.storing(id, token + 1).await.unwrap(), None);
    assert_eq!(world.lease(first).await.missions, leased, "the same token");
    assert!(world.lease(second).await.missions.is_empty());
    world.store.leave(second).await.unwrap();
    world.falls_silent(first).await;
    let others = world.lease(second).await.missions;
    assert!(others[0].1 > *token);
    assert_eq!(world.store.storing(id, *token).await.unwrap(), None);
}

async fn a_retry_from_the_write_goes_straight_to_storing(world: World) {
    let at = world.now();
    let failed = |mission: &mut Mission| {
        mission.status = MissionStatus::Failed;
        mission.checkpoint = Some(Checkpoint::Armazenamento);
        mission.queued_at = Some(at);
        mission.worker_data_url = Some("https://files.example/a.json".into());
    };
    let (written, scraped) = (world.put(failed).await.id, world.put(failed).await.id);
    for (id, from_scrape) in [(&written, false), (&scraped, true)] {
        let filter = these(std::slice::from_ref(id));
        world.store.wish(&filter, Wish::Retry { from_scrape }, "ana").await.unwrap();
    }
    let (_, leases) = world.fleet(1).await;
    let mission = world.mission(&written).await;
    assert_eq!(mission.status, MissionStatus::Running);
    assert_eq!(mission.checkpoint, Some(Checkpoint::Armazenamento));
    assert!(mission.token.is_some() && mission.held_by.is_some() && mission.started_at.is_some());
    world.make_ready(&leases[0]).await;
    let assigned = world.store.assign(&leases[0].0, leases[0].1).await.unwrap();
    let Assigned::With(view) = assigned else { panic!("{assigned:?}") };
    assert_eq!(view.mission.unwrap().id, scraped, "all of it again");
}

async fn a_view_is_only_for_the_token(world: World) {
    let (_, leases) = world.fleet(1).await;
    let (id, token) = &leases[0];
    let view = world.view(&leases[0]).await;
    assert_eq!((view.worker.status, view.mission, view.proxy), (WorkerStatus::Idle, None, None));
    assert!(!view.has_queue);
    assert_eq!(world.store.view(id, token + 1).await.unwrap(), None);
    assert_eq!(world.store.view(&"nobody".into(), *token).await.unwrap(), None);
    world.queue(1).await;
    assert!(world.view(&leases[0]).await.has_queue);
}
