//! Requests that may be repeated: carried out once, answered the same way ever after.

use lavra_db::{Database, GROUND, IDEMPOTENCY, IdempotencyKeys, Migration, Reserved, migrate};
use uuid::Uuid;

use crate::support::place::{Place, on_each_engine};

on_each_engine!(
    the_first_carries_it_out_and_the_others_get_its_answer,
    a_key_of_another_request_is_refused,
    what_was_refused_may_come_again_otherwise,
    what_somebody_left_half_done_is_taken_over_as_the_same_id,
    an_old_key_is_forgotten,
    of_twenty_at_once_exactly_one_carries_it_out,
);

async fn open(place: &Place) -> (Database, IdempotencyKeys) {
    const BOTH: &[Migration] = &[GROUND, IDEMPOTENCY];
    let database = place.ground().await;
    migrate(&database, BOTH).await.unwrap();
    (database.clone(), IdempotencyKeys::new(database))
}

async fn reserve(keys: &IdempotencyKeys, fingerprint: &str) -> Reserved {
    keys.reserve("order-1", fingerprint).await.unwrap()
}

async fn new(keys: &IdempotencyKeys, fingerprint: &str) -> Uuid {
    match reserve(keys, fingerprint).await {
        Reserved::New(id) => id,
        other => panic!("{other:?}"),
    }
}

/// Changes a row behind everyone's back.
async fn meddle(database: &Database, sql: &'static str) {
    match database {
        Database::Duck(duck) => {
            duck.write("meddle", move |tx| tx.execute_batch(sql)).await.unwrap();
        }
        Database::Postgres(pg) => {
            pg.query("meddle", sql, &[]).await.unwrap();
        }
    }
}

async fn the_first_carries_it_out_and_the_others_get_its_answer(place: Place) {
    let (_database, keys) = open(&place).await;
    let id = new(&keys, "a").await;
    assert_eq!(reserve(&keys, "a").await, Reserved::UnderWay);
    keys.answer("order-1", id, "{\"made\": \"é\"}").await.unwrap();
    for _ in 0..2 {
        let answered = Reserved::Answered("{\"made\": \"é\"}".into());
        assert_eq!(reserve(&keys, "a").await, answered);
    }
    assert!(matches!(keys.reserve("order-2", "a").await.unwrap(), Reserved::New(_)));
}

async fn a_key_of_another_request_is_refused(place: Place) {
    let (_database, keys) = open(&place).await;
    let id = new(&keys, "a").await;
    assert_eq!(reserve(&keys, "b").await, Reserved::Reused, "while it is under way");
    keys.answer("order-1", id, "{}").await.unwrap();
    assert_eq!(reserve(&keys, "b").await, Reserved::Reused);
}

async fn what_was_refused_may_come_again_otherwise(place: Place) {
    let (_database, keys) = open(&place).await;
    let id = new(&keys, "a").await;
    keys.release("order-1", Uuid::new_v4()).await.unwrap();
    assert_eq!(reserve(&keys, "a").await, Reserved::UnderWay, "that was somebody else's");
    keys.release("order-1", id).await.unwrap();
    new(&keys, "b").await;
}

async fn what_somebody_left_half_done_is_taken_over_as_the_same_id(place: Place) {
    let (database, keys) = open(&place).await;
    let id = new(&keys, "a").await;
    let late =
        "UPDATE lavra.idempotency_keys SET reserved_until = TIMESTAMPTZ '2026-01-01 00:00:00Z'";
    meddle(&database, late).await;
    assert_eq!(reserve(&keys, "b").await, Reserved::Reused);
    assert_eq!(new(&keys, "a").await, id);
    assert_eq!(reserve(&keys, "a").await, Reserved::UnderWay, "reserved anew");
}

async fn an_old_key_is_forgotten(place: Place) {
    let (database, keys) = open(&place).await;
    let id = new(&keys, "a").await;
    keys.answer("order-1", id, "{}").await.unwrap();
    let old = "UPDATE lavra.idempotency_keys SET created_at = TIMESTAMPTZ '2026-01-01 00:00:00Z'";
    meddle(&database, old).await;
    assert_ne!(new(&keys, "b").await, id);
}

async fn of_twenty_at_once_exactly_one_carries_it_out(place: Place) {
    let (_database, keys) = open(&place).await;
    let tried = (0..20).map(|_| {
        let keys = keys.clone();
        tokio::spawn(async move { keys.reserve("order-1", "a").await.unwrap() })
    });
    let mut new = 0;
    for one in tried.collect::<Vec<_>>() {
        match one.await.unwrap() {
            Reserved::New(_) => new += 1,
            other => assert_eq!(other, Reserved::UnderWay),
        }
    }
    assert_eq!(new, 1);
}
