//! Leases: one holder at a time, by the store's clock, with a term that tells holders apart.

use std::collections::BTreeSet;
use std::time::Duration;

use lavra_db::Leases;
use uuid::Uuid;

use crate::support::place::{Place, on_each_engine};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(150);
const LONGER_THAN_SHORT: Duration = Duration::from_millis(200);
const NAME: &str = "reaper";

on_each_engine!(
    the_first_takes_it_and_others_are_refused,
    a_holder_renews_in_the_same_term,
    an_expired_lease_goes_to_another_in_the_next_term,
    a_holder_that_was_frozen_past_its_end_is_refused,
    a_released_lease_is_free_at_once,
    a_holder_of_an_older_term_cannot_release,
    each_name_has_its_own_holder,
    of_twenty_at_once_exactly_one_holds_it,
);

async fn leases(place: &Place) -> Leases {
    Leases::new(place.ground().await)
}

fn two() -> (Uuid, Uuid) {
    (Uuid::new_v4(), Uuid::new_v4())
}

async fn the_first_takes_it_and_others_are_refused(place: Place) {
    let (leases, (us, them)) = (leases(&place).await, two());
    let lease = leases.acquire(NAME, us, LONG).await.unwrap().expect("a free lease was refused");
    assert_eq!((lease.name.as_str(), lease.holder, lease.term), (NAME, us, 1));
    assert_eq!(leases.acquire(NAME, them, LONG).await.unwrap(), None);
}

async fn a_holder_renews_in_the_same_term(place: Place) {
    let (leases, (us, them)) = (leases(&place).await, two());
    for length in [SHORT, SHORT, LONG] {
        let lease = leases.acquire(NAME, us, length).await.unwrap().unwrap();
        assert_eq!(lease.term, 1);
    }
    tokio::time::sleep(LONGER_THAN_SHORT).await;
    assert_eq!(leases.acquire(NAME, them, LONG).await.unwrap(), None, "it was renewed");
}

async fn an_expired_lease_goes_to_another_in_the_next_term(place: Place) {
    let (leases, (us, them)) = (leases(&place).await, two());
    leases.acquire(NAME, us, SHORT).await.unwrap().unwrap();
    tokio::time::sleep(LONGER_THAN_SHORT).await;
    let lease = leases.acquire(NAME, them, LONG).await.unwrap().expect("it had expired");
    assert_eq!((lease.holder, lease.term), (them, 2));
}

async fn a_holder_that_was_frozen_past_its_end_is_refused(place: Place) {
    let (leases, (us, them)) = (leases(&place).await, two());
    leases.acquire(NAME, us, SHORT).await.unwrap().unwrap();
    tokio::time::sleep(LONGER_THAN_SHORT).await;
    leases.acquire(NAME, them, LONG).await.unwrap().unwrap();
    assert_eq!(leases.acquire(NAME, us, LONG).await.unwrap(), None, "we were replaced");
}

async fn a_released_lease_is_free_at_once(place: Place) {
    let (leases, (us, them)) = (leases(&place).await, two());
    let lease = leases.acquire(NAME, us, LONG).await.unwrap().unwrap();
    leases.release(&lease).await.unwrap();
    assert_eq!(leases.acquire(NAME, them, LONG).await.unwrap().unwrap().term, 2);
}

async fn a_holder_of_an_older_term_cannot_release(place: Place) {
    let (leases, (us, them)) = (leases(&place).await, two());
    let ours = leases.acquire(NAME, us, LONG).await.unwrap().unwrap();
    leases.release(&ours).await.unwrap();
    leases.acquire(NAME, them, LONG).await.unwrap().unwrap();
    leases.release(&ours).await.unwrap();
    assert_eq!(leases.acquire(NAME, us, LONG).await.unwrap(), None, "we released theirs");
}

async fn each_name_has_its_own_holder(place: Place) {
    let (leases, (us, them)) = (leases(&place).await, two());
    assert!(leases.acquire("reaper", us, LONG).await.unwrap().is_some());
    assert!(leases.acquire("retention", them, LONG).await.unwrap().is_some());
}

async fn of_twenty_at_once_exactly_one_holds_it(place: Place) {
    let leases = leases(&place).await;
    let mut terms = BTreeSet::new();
    for _ in 0..3 {
        let tries: Vec<_> = (0..20)
            .map(|_| {
                let leases = leases.clone();
                tokio::spawn(async move { leases.acquire(NAME, Uuid::new_v4(), LONG).await })
            })
            .collect();
        let mut held = Vec::new();
        for attempt in tries {
            held.extend(attempt.await.unwrap().unwrap());
        }
        let [lease] = held.as_slice() else { panic!("{} hold it: {held:?}", held.len()) };
        assert!(terms.insert(lease.term), "the term {} came twice", lease.term);
        leases.release(lease).await.unwrap();
    }
    assert_eq!(terms, BTreeSet::from([1, 2, 3]));
}
