//! Workers, proxies and writers: adding, changing, removing, and what is refused.

use lavra_fleet::model::{Checkpoint, MissionStatus, Proxy, WorkerStatus};
use lavra_fleet::store::{Edit, Edited, NewProxy, NewWorker, Thing};

use crate::support::{World, at_once, on_each_store, storing};

on_each_store!(
    what_was_added_is_there_without_its_secret,
    names_are_unique_per_table_and_urls_among_workers,
    of_many_that_take_a_name_at_once_one_has_it,
    an_edit_changes_what_it_names_and_nothing_else,
    a_proxy_that_is_made_active_again_has_no_failure,
    an_edit_of_nothing_is_refused,
    a_worker_is_removed_only_while_nothing_needs_it,
    a_proxy_is_removed_unless_it_is_in_use,
    a_writer_is_removed_unless_it_stores,
    a_test_is_noted,
    health_tests_inform_and_do_not_decide,
);

fn named(name: &str) -> Edit {
    Edit { name: Some(name.into()), ..Edit::default() }
}

async fn what_was_added_is_there_without_its_secret(world: World) {
    let new = world.new_worker("w");
    world.store.add_worker(new.clone()).await.unwrap();
    let worker = world.worker(&new.id).await;
    assert_eq!((worker.name, worker.url), (new.name, new.url));
    assert_eq!((worker.storage_domain, worker.active), (new.storage_domain, true));
    assert_eq!((worker.status, worker.token), (WorkerStatus::Idle, None));
    assert_eq!((worker.session_errors, worker.unclosed, worker.waiting), (0, false, None));
    let secret = world.store.secret(&Thing::Worker(new.id)).await.unwrap();
    assert_eq!(secret.as_deref(), Some("key of w"));

    let new = NewProxy { port: None, password: None, ..world.new_proxy("p") };
    world.store.add_proxy(new.clone()).await.unwrap();
    let proxy = world.proxy(&new.id).await;
    assert_eq!((proxy.name.as_deref(), proxy.port), (Some("p"), None));
    assert_eq!((proxy.fail_count, proxy.active, &proxy.in_use_by_worker_id), (0, true, &None));
    assert_eq!(world.store.secret(&Thing::Proxy(new.id)).await.unwrap(), None);

    let writer = world.add_writer("wr").await;
    assert_eq!(world.store.writers().await.unwrap()[0].id, writer);
    let secret = world.store.secret(&Thing::Writer(writer)).await.unwrap();
    assert_eq!(secret.as_deref(), Some("key"));
    assert_eq!(world.store.secret(&Thing::Writer("nobody".into())).await.unwrap(), None);
}

async fn names_are_unique_per_table_and_urls_among_workers(world: World) {
    let first = world.add_worker("a").await;
    let second = world.add_worker("b").await;
    let proxy = world.add_proxy("a").await;
    let writer = world.add_writer("a").await;
    let same_name = NewWorker { url: "http://other".into(), ..world.new_worker("a") };
    assert_eq!(world.store.add_worker(same_name).await.unwrap(), Edited::NameTaken);
    let same_url = NewWorker { name: "c".into(), ..world.new_worker("a") };
    assert_eq!(world.store.add_worker(same_url).await.unwrap(), Edited::UrlTaken);
    assert_eq!(world.store.add_proxy(world.new_proxy("a")).await.unwrap(), Edited::NameTaken);
    assert_eq!(world.store.workers().await.unwrap().len(), 2);

    let second = Thing::Worker(second);
    assert_eq!(world.store.edit(&second, named("a")).await.unwrap(), Edited::NameTaken);
    let url = Edit { url: Some("http://a.example".into()), ..Edit::default() };
    assert_eq!(world.store.edit(&second, url.clone()).await.unwrap(), Edited::UrlTaken);
    assert_eq!(world.store.edit(&Thing::Worker(first), url).await.unwrap(), Edited::Done);
    assert_eq!(world.store.edit(&Thing::Proxy(proxy), named("a")).await.unwrap(), Edited::Done);
    assert_eq!(world.store.edit(&Thing::Writer(writer), named("a")).await.unwrap(), Edited::Done);
}

async fn of_many_that_take_a_name_at_once_one_has_it(world: World) {
    let edited = at_once(10, |_| {
        let (store, new) = (world.store.clone(), world.new_proxy("p"));
        async move { store.add_proxy(new).await.unwrap() }
    })
    .await;
    assert_eq!(edited.iter().filter(|edited| **edited == Edited::Done).count(), 1);
    assert_eq!(world.store.proxies().await.unwrap().len(), 1);
}

async fn an_edit_changes_what_it_names_and_nothing_else(world: World) {
    let worker = world.add_worker("w").await;
    let before = world.worker(&worker).await;
    let edit = Edit {
        storage_domain: Some("other.example".into()),
        secret: Some("another".into()),
        active: Some(false),
        ..named("renamed")
    };
    let thing = Thing::Worker(worker.clone());
    world.later().await;
    assert_eq!(world.store.edit(&thing, edit).await.unwrap(), Edited::Done);
    let after = world.worker(&worker).await;
    assert_eq!((after.name.as_str(), after.active), ("renamed", false));
    assert_eq!(after.storage_domain.as_deref(), Some("other.example"));
    assert_eq!((after.url, after.created_at), (before.url, before.created_at));
    assert!(after.updated_at > before.updated_at);
    assert_eq!(world.store.secret(&thing).await.unwrap().as_deref(), Some("another"));

    let proxy = world.add_proxy("p").await;
    let edit = Edit { host: Some("h".into()), port: Some(1), ..Edit::default() };
    let before = world.proxy(&proxy).await;
    let thing = Thing::Proxy(proxy.clone());
    assert_eq!(world.store.edit(&thing, edit).await.unwrap(), Edited::Done);
    let expected = Proxy { host: "h".into(), port: Some(1), ..before };
    assert_eq!(world.proxy(&proxy).await, expected);
    let secret = world.store.secret(&thing).await.unwrap();
    assert_eq!(secret.as_deref(), Some("password of p"));
}

async fn a_proxy_that_is_made_active_again_has_no_failure(world: World) {
    let proxy = world.add_proxy("p").await;
    for failures in 1..=3 {
        let blamed = Some((proxy.clone(), 3));
        let step = lavra_fleet::machine::Step { blamed, ..Default::default() };
        assert!(world.applied(step).await);
        let row = world.proxy(&proxy).await;
        assert_eq!((row.fail_count, row.active), (failures, failures < 3));
    }
    let thing = Thing::Proxy(proxy.clone());
    let edit = |active| Edit { active: Some(active), ..Edit::default() };
    world.store.edit(&thing, edit(false)).await.unwrap();
    assert_eq!(world.proxy(&proxy).await.fail_count, 3);
    world.store.edit(&thing, edit(true)).await.unwrap();
    let row = world.proxy(&proxy).await;
    assert_eq!((row.fail_count, row.active), (0, true));
}

async fn an_edit_of_nothing_is_refused(world: World) {
    for thing in [
        Thing::Worker("nobody".into()),
        Thing::Proxy("nobody".into()),
        Thing::Writer("nobody".into()),
    ] {
        assert_eq!(world.store.edit(&thing, named("n")).await.unwrap(), Edited::NotFound);
        assert_eq!(world.store.remove(&thing).await.unwrap(), Edited::NotFound);
        world.store.tested(&thing, true).await.unwrap();
    }
}

async fn a_worker_is_removed_only_while_nothing_needs_it(world: World) {
    let (_, leases) = world.fleet(1).await;
    let thing = Thing::Worker(leases[0].0.clone());
    world.make_ready(&leases[0]).await;
    let in_use = Edited::InUse("it is ready".into());
    assert_eq!(world.store.remove(&thing).await.unwrap(), in_use);
    world.set_worker(&leases[0], |worker| worker.status = WorkerStatus::Idle).await;
    let mission = world
        .put(|mission| {
            mission.status = MissionStatus::Completed;
            mission.checkpoint = Some(Checkpoint::Finalizado);
            mission.worker_id = Some(leases[0].0.clone());
        })
        .await;
    let in_use = Edited::InUse("missions name it".into());
    assert_eq!(world.store.remove(&thing).await.unwrap(), in_use);
    assert_eq!(mission.worker_id, Some(leases[0].0.clone()));

    let free = world.add_worker("free").await;
    assert_eq!(world.store.remove(&Thing::Worker(free)).await.unwrap(), Edited::Done);
    assert_eq!(world.store.workers().await.unwrap().len(), 1);
}

async fn a_proxy_is_removed_unless_it_is_in_use(world: World) {
    world.queue(1).await;
    let (_, leases) = world.fleet(1).await;
    let proxy = world.add_proxy("p").await;
    world.open(&leases[0], 0).await;
    let in_use = Edited::InUse(format!("the worker {} uses it", leases[0].0));
    let thing = Thing::Proxy(proxy);
    assert_eq!(world.store.remove(&thing).await.unwrap(), in_use);
    let other = world.add_proxy("q").await;
    assert_eq!(world.store.remove(&Thing::Proxy(other)).await.unwrap(), Edited::Done);
    assert_eq!(world.store.proxies().await.unwrap().len(), 1);
}

async fn a_writer_is_removed_unless_it_stores(world: World) {
    let (busy, past) = (world.add_writer("busy").await, world.add_writer("past").await);
    world
        .put(|mission| {
            storing(mission);
            mission.writer_id = Some(busy.clone());
        })
        .await;
    world
        .put(|mission| {
            mission.status = MissionStatus::Completed;
            mission.writer_id = Some(past.clone());
        })
        .await;
    let in_use = Edited::InUse("missions are being stored by it".into());
    assert_eq!(world.store.remove(&Thing::Writer(busy)).await.unwrap(), in_use);
    assert_eq!(world.store.remove(&Thing::Writer(past)).await.unwrap(), Edited::Done);
}

async fn a_test_is_noted(world: World) {
    let worker = world.add_worker("w").await;
    let proxy = world.add_proxy("p").await;
    let writer = world.add_writer("wr").await;
    world.store.tested(&Thing::Worker(worker.clone()), true).await.unwrap();
    world.store.tested(&Thing::Proxy(proxy.clone()), false).await.unwrap();
    world.store.tested(&Thing::Writer(writer), true).await.unwrap();
    let row = world.worker(&worker).await;
    assert_eq!((row.last_test_ok, row.last_test_at.is_some()), (Some(true), true));
    let row = world.proxy(&proxy).await;
    assert_eq!((row.last_test_ok, row.last_test_at.is_some()), (Some(false), true));
    assert_eq!(world.store.writers().await.unwrap()[0].last_test_ok, Some(true));
}

async fn health_tests_inform_and_do_not_decide(world: World) {
    let (_, leases) = world.fleet(1).await;
    let proxies = world.store.proxies().await.unwrap();
    world.store.tested(&Thing::Worker(leases[0].0.clone()), false).await.unwrap();
    for proxy in &proxies {
        world.store.tested(&Thing::Proxy(proxy.id.clone()), false).await.unwrap();
    }
    assert!(world.worker(&leases[0].0).await.active);
    assert!(world.store.proxies().await.unwrap().iter().all(|p| p.active && p.fail_count == 0));
    world.make_ready(&leases[0]).await;
    assert_eq!(world.worker(&leases[0].0).await.status, WorkerStatus::Ready);
}
