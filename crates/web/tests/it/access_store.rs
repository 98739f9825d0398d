//! The contract of the store of keys and sessions: each behaviour once, run on every engine.

use jiff::{SignedDuration, Timestamp};
use lavra_testkit::{on_each_engine, on_servers};
use lavra_web::access::{Hash, Key, KeyId, Role, Session};
use serde_json::json;

use crate::support::World;

on_each_engine!(
    a_key_is_kept_as_it_was_made_and_found_by_its_id,
    an_id_that_is_taken_is_not_given_twice,
    keys_are_listed_newest_first_and_survive_a_restart,
    a_key_is_revoked_once_and_its_sessions_end_with_it,
    the_use_of_a_key_is_noted,
    a_session_is_found_with_its_key,
    a_session_that_is_closed_is_gone_and_others_stay,
    a_new_session_clears_away_those_that_are_over,
);

on_servers!(no_data_api_shows_the_tables);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn key(id: &str, role: Role) -> Key {
    Key {
        id: KeyId(id.into()),
        name: "it's \"ünïque\"; --".into(),
        role,
        created_at: at("2026-01-01T00:00:00.000001Z"),
        last_used_at: None,
        expires_at: None,
        revoked_at: None,
    }
}

fn session(cookie: &str, key: &str, created: &str) -> Session {
    let (hash, created_at) = (Hash::of(cookie), at(created));
    Session { hash, key: KeyId(key.into()), created_at, seen_at: created_at }
}

async fn a_key_is_kept_as_it_was_made_and_found_by_its_id(world: World) {
    for (id, role) in ["k1", "k2", "k3", "k4"].into_iter().zip(Role::ALL) {
        let expires_at = Some(at("2027-02-03T04:05:06.789Z"));
        let made = Key { expires_at, ..key(id, role) };
        assert!(world.add_key(made.clone(), Hash::of(id)).await.unwrap());
        assert_eq!(world.key(made.id.clone()).await.unwrap(), Some((made, Hash::of(id))));
    }
    assert_eq!(world.key(KeyId("k5".into())).await.unwrap(), None);
}

async fn an_id_that_is_taken_is_not_given_twice(world: World) {
    assert!(world.add_key(key("k1", Role::Viewer), Hash::of("first")).await.unwrap());
    assert!(!world.add_key(key("k1", Role::Admin), Hash::of("second")).await.unwrap());
    let (found, hash) = world.key(KeyId("k1".into())).await.unwrap().unwrap();
    assert_eq!((found.role, hash), (Role::Viewer, Hash::of("first")));
}

async fn keys_are_listed_newest_first_and_survive_a_restart(world: World) {
    assert_eq!(world.keys().await.unwrap(), []);
    let newer = Key { created_at: at("2026-06-01T00:00:00Z"), ..key("k2", Role::Admin) };
    for key in [key("k1", Role::Viewer), newer.clone(), key("k3", Role::Writer)] {
        world.add_key(key, Hash::of("x")).await.unwrap();
    }
    let world = world.reopened().await;
    let expected = [newer, key("k1", Role::Viewer), key("k3", Role::Writer)];
    assert_eq!(world.keys().await.unwrap(), expected);
}

async fn a_key_is_revoked_once_and_its_sessions_end_with_it(world: World) {
    for id in ["k1", "k2"] {
        world.add_key(key(id, Role::Viewer), Hash::of(id)).await.unwrap();
    }
    world.open_session(session("a", "k1", "2026-01-02T00:00:00Z")).await.unwrap();
    world.open_session(session("b", "k2", "2026-01-02T00:00:00Z")).await.unwrap();
    let first = at("2026-01-02T01:00:00Z");
    let expected = Key { revoked_at: Some(first), ..key("k1", Role::Viewer) };
    let revoked = world.revoke_key(KeyId("k1".into()), first).await.unwrap();
    assert_eq!(revoked.as_ref(), Some(&expected));
    let again = world.revoke_key(KeyId("k1".into()), at("2026-01-03T00:00:00Z")).await.unwrap();
    assert_eq!(again, revoked, "the first time counts");
    assert_eq!(world.key(KeyId("k1".into())).await.unwrap().unwrap().0, expected);
    assert_eq!(world.session(Hash::of("a")).await.unwrap(), None);
    assert!(world.session(Hash::of("b")).await.unwrap().is_some());
    assert_eq!(world.revoke_key(KeyId("nobody".into()), first).await.unwrap(), None);
}

async fn the_use_of_a_key_is_noted(world: World) {
    for id in ["k1", "k2"] {
        world.add_key(key(id, Role::Viewer), Hash::of(id)).await.unwrap();
    }
    let used = at("2026-03-01T10:00:00Z");
    world.key_used(KeyId("k1".into()), used).await.unwrap();
    assert_eq!(world.key(KeyId("k1".into())).await.unwrap().unwrap().0.last_used_at, Some(used));
    assert_eq!(world.key(KeyId("k2".into())).await.unwrap().unwrap().0.last_used_at, None);
}

async fn a_session_is_found_with_its_key(world: World) {
    let made = key("k1", Role::Operator);
    world.add_key(made.clone(), Hash::of("k1")).await.unwrap();
    let opened = session("a", "k1", "2026-01-02T03:04:05.000006Z");
    world.open_session(opened.clone()).await.unwrap();
    let world = world.reopened().await;
    assert_eq!(world.session(opened.hash).await.unwrap(), Some((opened.clone(), made.clone())));
    assert_eq!(world.session(Hash::of("b")).await.unwrap(), None);
    let seen_at = at("2026-01-02T04:00:00Z");
    world.session_seen(opened.hash, seen_at).await.unwrap();
    let seen = Session { seen_at, ..opened.clone() };
    assert_eq!(world.session(opened.hash).await.unwrap(), Some((seen, made)));
}

async fn a_session_that_is_closed_is_gone_and_others_stay(world: World) {
    world.add_key(key("k1", Role::Viewer), Hash::of("k1")).await.unwrap();
    for cookie in ["a", "b"] {
        world.open_session(session(cookie, "k1", "2026-01-02T00:00:00Z")).await.unwrap();
    }
    for _ in 0..2 {
        world.close_session(Hash::of("a")).await.unwrap();
    }
    assert_eq!(world.session(Hash::of("a")).await.unwrap(), None);
    assert!(world.session(Hash::of("b")).await.unwrap().is_some());
}

async fn a_new_session_clears_away_those_that_are_over(world: World) {
    world.add_key(key("k1", Role::Viewer), Hash::of("k1")).await.unwrap();
    for (cookie, created) in [
        ("unused", "2026-01-09T11:00:00Z"),
        ("old", "2026-01-03T00:00:00Z"),
        ("used", "2026-01-09T01:00:00Z"),
    ] {
        world.open_session(session(cookie, "k1", created)).await.unwrap();
    }
    let now = at("2026-01-10T00:00:00Z");
    let lately = now - SignedDuration::from_mins(1);
    for cookie in ["old", "used"] {
        world.session_seen(Hash::of(cookie), lately).await.unwrap();
    }
    world.open_session(session("new", "k1", "2026-01-10T00:00:00Z")).await.unwrap();
    for (cookie, is_there) in [("unused", false), ("old", false), ("used", true), ("new", true)] {
        let found = world.session(Hash::of(cookie)).await.unwrap().is_some();
        assert_eq!(found, is_there, "{cookie}");
    }
}

async fn no_data_api_shows_the_tables(world: World) {
    let sql = "SELECT relname, relrowsecurity, has_schema_privilege('public', 'lavra', 'USAGE')
               FROM pg_class WHERE relnamespace = 'lavra'::regnamespace AND relkind = 'r'
               ORDER BY relname";
    let found = world.database.ask(sql, 10).await.unwrap().rows;
    let closed = |name: &str| vec![json!(name), json!(true), json!(false)];
    assert_eq!(found, ["api_keys", "secrets", "sessions"].map(closed));
}
