//! What people do with the fleet, beyond what a store says to it.

use std::time::Duration;

use lavra_db::Leases;
use lavra_fleet::keys::Keys;
use lavra_fleet::service::{Changes, ProxyOrder, Service};
use lavra_fleet::settings::Timing;
use lavra_fleet::store::Thing;
use lavra_fleet::{Error, Fleet, FleetRun};
use lavra_tasks::{Handler, Settings, Tasks};
use lavra_testkit::on_each_engine;
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::{World, at_once};

on_each_engine!(
    a_change_that_is_refused_leaves_the_secret,
    a_change_that_is_made_replaces_the_secret,
    a_proxy_that_is_refused_leaves_no_secret,
    what_cannot_be_looked_for_is_not_taken_to_be_absent,
    of_many_starts_at_once_one_makes_a_run,
    the_lease_of_the_tests_is_given_back,
);

fn worker(name: &str) -> Service {
    Service {
        name: name.into(),
        url: format!("http://{name}.example"),
        api_key: "the-first-key".into(),
        storage_domain: Some("files.example".into()),
    }
}

async fn key(fleet: &Fleet, thing: &Thing) -> Option<String> {
    fleet.keys.key(thing).await.map(|key| key.expose_secret().to_owned())
}

async fn a_change_that_is_refused_leaves_the_secret(world: World) {
    let fleet = world.as_people_have_it(&Timing::default());
    fleet.add_worker(worker("a")).await.unwrap();
    let thing = Thing::Worker(fleet.add_worker(worker("b")).await.unwrap());
    let with_a_key = Changes { api_key: Some("another-key".into()), ..Changes::default() };

    let renamed = Changes { name: Some("a".into()), ..with_a_key.clone() };
    let refused = fleet.change(&thing, renamed).await.unwrap_err();
    assert!(matches!(refused, Error::NameTaken { .. }), "{refused}");
    let moved = Changes { url: Some("http://a.example".into()), ..with_a_key.clone() };
    let refused = fleet.change(&thing, moved).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused}");
    assert_eq!(key(&fleet, &thing).await.as_deref(), Some("the-first-key"));

    let before = secrets(&fleet).await;
    let nobody = Thing::Writer("nobody".into());
    let refused = fleet.change(&nobody, with_a_key).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    assert_eq!(secrets(&fleet).await, before);
}

async fn secrets(fleet: &Fleet) -> usize {
    fleet.keys.to_open().unwrap().list().await.unwrap().len()
}

async fn a_change_that_is_made_replaces_the_secret(world: World) {
    let fleet = world.as_people_have_it(&Timing::default());
    let thing = Thing::Worker(fleet.add_worker(worker("a")).await.unwrap());
    assert_eq!(key(&fleet, &thing).await.as_deref(), Some("the-first-key"));
    let changes = Changes {
        name: Some("b".into()),
        api_key: Some("another-key".into()),
        ..Changes::default()
    };
    fleet.change(&thing, changes).await.unwrap();
    assert_eq!(key(&fleet, &thing).await.as_deref(), Some("another-key"));
    assert_eq!(fleet.store.workers().await.unwrap()[0].name, "b");

    let order = ProxyOrder {
        name: "p".into(),
        host: "10.0.0.1".into(),
        port: None,
        username: None,
        password: None,
    };
    let thing = Thing::Proxy(fleet.add_proxy(order).await.unwrap());
    assert_eq!(key(&fleet, &thing).await, None);
    let changes = Changes { password: Some("its first".into()), ..Changes::default() };
    fleet.change(&thing, changes).await.unwrap();
    assert_eq!(key(&fleet, &thing).await.as_deref(), Some("its first"));
}

async fn a_proxy_that_is_refused_leaves_no_secret(world: World) {
    let fleet = world.as_people_have_it(&Timing::default());
    // So that there is a key to look with.
    fleet.add_worker(worker("a")).await.unwrap();
    let order = ProxyOrder {
        name: "p".into(),
        host: "10.0.0.1".into(),
        port: Some(70_000),
        username: None,
        password: Some("password".into()),
    };
    fleet.add_proxy(order).await.unwrap_err();
    assert_eq!(secrets(&fleet).await, 1);
}

async fn what_cannot_be_looked_for_is_not_taken_to_be_absent(world: World) {
    let fleet = world.as_people_have_it(&Timing::default());
    world.execute("ALTER TABLE public.writers RENAME TO hidden").await;
    let asked = fleet.add_writer_as("wtr_1".into(), worker("a")).await.unwrap_err();
    assert!(matches!(asked, Error::Database(_)), "{asked}");
    world.execute("ALTER TABLE public.hidden RENAME TO writers").await;
    assert_eq!(secrets(&fleet).await, 0, "it was not gone on with");
}

async fn of_many_starts_at_once_one_makes_a_run(world: World) {
    let fleet = world.as_people_have_it(&Timing::default());
    let tasks = Tasks::open(&world.database(), Settings::default()).await.unwrap();
    tasks.declare(vec![FleetRun::KIND.into()]).await.unwrap();
    let started = at_once(8, |_| {
        let (fleet, tasks) = (fleet.clone(), tasks.clone());
        async move { fleet.start(&tasks).await.unwrap() }
    })
    .await;
    assert_eq!(started.iter().filter(|(_, is_new)| *is_new).count(), 1, "{started:?}");
    assert!(started.iter().all(|(id, _)| *id == started[0].0), "{started:?}");
}

async fn the_lease_of_the_tests_is_given_back(world: World) {
    let timing = Timing { test_every: Duration::from_secs(1), ..Timing::default() };
    let fleet = world.as_people_have_it(&timing);
    let worker = fleet.add_worker(Service { url: "http://127.0.0.1:9".into(), ..worker("a") });
    worker.await.unwrap();
    let stop = CancellationToken::new();
    let testing = tokio::spawn(fleet.clone().test_now_and_then(stop.clone()));
    while fleet.store.workers().await.unwrap()[0].last_test_at.is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    testing.await.unwrap();
    let (other, term) = (Uuid::new_v4(), Duration::from_secs(1));
    let lease = Leases::new(world.database()).acquire("fleet-tests", other, term).await.unwrap();
    assert!(lease.is_some(), "it is held by one who is gone");
}
