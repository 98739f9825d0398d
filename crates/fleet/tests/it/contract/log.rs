//! The log: what it is asked for, and the order of its entries.

use jiff::SignedDuration;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::machine::{Entry, Step};
use lavra_fleet::model::{EventKind, LogEntry, MissionId};
use lavra_fleet::store::LogFilter;
use serde_json::{Map, Value, json};

use crate::support::{World, kinds, on_each_store};

on_each_store!(
    all_conditions_of_a_log_filter_hold,
    the_log_comes_newest_first_page_by_page,
    times_are_kept_to_the_microsecond,
);

async fn said(world: &World, mission: Option<&MissionId>, event: EventKind, details: Value) {
    let Value::Object(details) = details else { panic!("details are an object") };
    let entry = Entry {
        mission_id: mission.cloned(),
        session_id: None,
        event,
        details,
        at: world.later().await,
    };
    assert!(world.applied(Step { logs: vec![entry], ..Step::default() }).await);
}

async fn all_conditions_of_a_log_filter_hold(world: World) {
    let id = world.bank(1).await.remove(0);
    said(
        &world,
        None,
        EventKind::SessionFailed,
        json!({"error_code": "ERROR501", "worker_id": "w", "proxy_name": "p"}),
    )
    .await;
    said(&world, Some(&id), EventKind::ScrapeStarted, json!({"worker_id": "w"})).await;
    let middle = world.later().await + SignedDuration::from_micros(1);
    while world.later().await <= middle {}
    said(&world, Some(&id), EventKind::ScrapeFailed, json!({"error_code": "ERROR200"})).await;
    said(&world, Some(&id), EventKind::MissionFailed, json!({"error_code": "ERROR203"})).await;
    let any = LogFilter::default();
    let checks: Vec<(LogFilter, &[&str])> = vec![
        (any.clone(), &["session_failed", "scrape_started", "scrape_failed", "mission_failed"]),
        (
            LogFilter { mission: Some(id), ..any.clone() },
            &["scrape_started", "scrape_failed", "mission_failed"],
        ),
        (LogFilter { mission: Some("nobody".into()), ..any.clone() }, &[]),
        (LogFilter { without_mission: true, ..any.clone() }, &["session_failed"]),
        (
            LogFilter {
                events: vec![EventKind::ScrapeFailed, EventKind::SessionFailed],
                ..any.clone()
            },
            &["session_failed", "scrape_failed"],
        ),
        (
            LogFilter {
                events: vec![
                    EventKind::ScrapeFailed,
                    EventKind::MissionFailed,
                    EventKind::ScrapeFailed,
                    EventKind::SessionReady,
                ],
                since: Some(middle),
                ..any.clone()
            },
            &["scrape_failed", "mission_failed"],
        ),
        (
            LogFilter { worker: Some("w".into()), ..any.clone() },
            &["session_failed", "scrape_started"],
        ),
        (LogFilter { proxy: Some("p".into()), ..any.clone() }, &["session_failed"]),
        (LogFilter { session: Some("ses_1".into()), ..any.clone() }, &[]),
        (LogFilter { error_code: Some(ErrorCode::Error203), ..any.clone() }, &["mission_failed"]),
        (LogFilter { since: Some(middle), ..any.clone() }, &["scrape_failed", "mission_failed"]),
        (LogFilter { until: Some(middle), ..any.clone() }, &["session_failed", "scrape_started"]),
    ];
    for (filter, expected) in checks {
        let found = world.entries(filter.clone()).await;
        assert_eq!(kinds(&found), expected, "{filter:?}");
    }
}

async fn the_log_comes_newest_first_page_by_page(world: World) {
    let at = world.now();
    // Two of a moment are in the order of their ids.
    let (ready, failed, ended) =
        (EventKind::SessionReady, EventKind::SessionFailed, EventKind::SessionTerminated);
    for (micros, event) in [(0, ready), (1, failed), (1, ready), (1, ended), (2, failed)] {
        let entry = Entry {
            mission_id: None,
            session_id: None,
            event,
            details: Map::new(),
            at: at + SignedDuration::from_micros(micros),
        };
        assert!(world.applied(Step { logs: vec![entry], ..Step::default() }).await);
    }
    for (events, count) in [(vec![], 5), (vec![failed], 2), (vec![ready, failed], 4)] {
        let of = LogFilter { events, ..LogFilter::default() };
        let mut seen: Vec<LogEntry> = Vec::new();
        loop {
            let before = seen.last().map(|entry| (entry.timestamp, entry.id.clone()));
            let filter = LogFilter { before, limit: 2, ..of.clone() };
            let page = world.store.log(&filter).await.unwrap();
            if page.is_empty() {
                break;
            }
            seen.extend(page);
        }
        assert_eq!(seen.len(), count);
        seen.reverse();
        assert_eq!(seen, world.entries(of.clone()).await);
        assert!(seen.is_sorted_by(|a, b| (a.timestamp, &a.id) < (b.timestamp, &b.id)));
        let mut again: Vec<LogEntry> = Vec::new();
        loop {
            let after = again.last().map(|entry| (entry.timestamp, entry.id.clone()));
            let filter = LogFilter { after, oldest_first: true, limit: 2, ..of.clone() };
            let page = world.store.log(&filter).await.unwrap();
            if page.is_empty() {
                break;
            }
            again.extend(page);
        }
        assert_eq!(again, seen, "and the other way round");
    }
}

async fn times_are_kept_to_the_microsecond(world: World) {
    let at = "2026-01-02T03:04:05.678901Z".parse().unwrap();
    let entry = Entry {
        mission_id: None,
        session_id: Some("ses_1".into()),
        event: EventKind::SessionReady,
        details: Map::from_iter([("a".to_owned(), json!({"b": [1, 2.5, null, "x"]}))]),
        at,
    };
    assert!(world.applied(Step { logs: vec![entry.clone()], ..Step::default() }).await);
    let found = world.entries(LogFilter::default()).await;
    assert_eq!((found[0].timestamp, &found[0].details), (at, &entry.details));
    assert_eq!(found[0].session_id, entry.session_id);
    let of_session = LogFilter { session: entry.session_id, ..LogFilter::default() };
    assert_eq!(world.entries(of_session).await, found);
    assert!(found[0].id.0.starts_with("log_"));
}
