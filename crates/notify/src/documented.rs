//! The page about webhooks, held against the code.

use std::collections::BTreeSet;
use std::process::Command;

use jiff::Timestamp;
use lavra_fleet::model::EventKind;
use lavra_tasks::model::{EventId, TaskId};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::fact::{Fact, facts};
use crate::model::{Notification, Topic};
use crate::send::Timing;
use crate::sign;
use crate::store::{Ended, Logged, Position, Reading};
use crate::{LATE, POLICY};

const PAGE: &str = include_str!("../../../docs/webhooks.md");

/// The first cells of the table whose head begins so.
fn column(head: &str) -> Vec<&str> {
    let lines = PAGE.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('|').nth(1).unwrap().trim()).collect()
}

/// The code blocks of a language.
fn blocks(language: &str) -> Vec<&str> {
    let start = format!("```{language}\n");
    PAGE.split(&start).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// One of each, as it would be told.
fn one_of_each() -> Vec<Fact> {
    let at: Timestamp = "2026-11-15T20:30:00Z".parse().unwrap();
    let logged = |event, mission: Option<&str>| Logged {
        id: "log_1".into(),
        event,
        mission: mission.map(Into::into),
        details: Map::new(),
        at,
    };
    let ended = |error: Option<&str>| Ended {
        event: EventId(Uuid::nil()),
        task: TaskId(Uuid::nil()),
        kind: "extract".into(),
        has_failed: error.is_some(),
        error: error.map(str::to_owned),
        attempts: 1,
        said: Some(json!({ "summary": {} })),
        at,
    };
    let nowhere = lavra_tasks::store::Cursor { transaction: 0, event: EventId(Uuid::nil()) };
    let position = Position { ended: nowhere, floor: at, mark: 0, marked_at: at };
    facts(&Reading {
        logged: vec![
            logged(EventKind::MissionFailed, Some("mis_1")),
            logged(EventKind::SessionFailed, None),
        ],
        ended: vec![ended(None), ended(Some("short"))],
        unreadable: Vec::new(),
        has_more: false,
        position,
    })
}

fn keys(value: &Value) -> BTreeSet<String> {
    match value.as_object() {
        Some(fields) => fields
            .iter()
            .flat_map(|(name, value)| {
                let below = keys(value).into_iter().map(move |key| format!("{name}.{key}"));
                below.chain([name.clone()])
            })
            .collect(),
        None => BTreeSet::new(),
    }
}

#[test]
fn every_event_is_documented_with_a_body_that_has_its_fields() {
    let named: Vec<&str> = column("| event |").iter().map(|cell| cell.trim_matches('`')).collect();
    assert_eq!(named, Topic::ALL.map(Topic::as_str));
    let bodies: Vec<Notification> =
        blocks("json").iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let kinds: Vec<&str> = bodies.iter().map(|body| body.kind.as_str()).collect();
    assert_eq!(kinds, named);
    for fact in one_of_each() {
        let told = fact.notification;
        let body = bodies.iter().find(|body| body.kind == told.kind).unwrap();
        assert_eq!(keys(&body.data), keys(&told.data), "{}", told.kind);
        assert!(body.id.starts_with(&format!("{}:", body.kind)));
    }
}

#[test]
fn every_header_is_documented() {
    let named: Vec<&str> = column("| header |").iter().map(|cell| cell.trim_matches('`')).collect();
    assert_eq!(named, crate::send::HEADERS.map(|name| name.to_string()));
}

#[test]
fn the_waits_are_those_that_are_kept() {
    let attempts = column("| before attempt |");
    assert_eq!(attempts.len() as i32, POLICY.max_retries);
    assert_eq!(attempts.last().copied(), Some("8"));
    let backoff = Timing::default().backoff;
    let longest = |retry: i32| {
        (0..200).map(|_| backoff.wait(retry)).max().unwrap_or_default().as_secs_f64().round()
    };
    for (retry, (least, most)) in (1..).zip([
        (30.0, 60.0),
        (60.0, 120.0),
        (120.0, 240.0),
        (240.0, 480.0),
        (480.0, 960.0),
        (960.0, 1920.0),
        (1800.0, 3600.0),
    ]) {
        let longest = longest(retry);
        assert!((least..=most).contains(&longest) && longest > 0.9 * most, "{retry}: {longest}");
    }
    assert_eq!(LATE.as_secs(), 300);
}

/// `is_ours` as the page has it, asked about what [`sign`] has signed.
#[test]
fn a_receiver_in_python_knows_what_is_ours() {
    let [function] = blocks("python")[..] else { panic!("one block of Python") };
    let now = Timestamp::now().as_second();
    let body = r#"{"text":"é"}"#;
    let signature = sign("s3cret-s3cret-s3cret", now, body.as_bytes());
    let script = format!(
        "{function}\n\
         body = {body:?}.encode()\n\
         headers = {{'lavra-timestamp': '{now}', 'lavra-signature': '{signature}'}}\n\
         assert is_ours('s3cret-s3cret-s3cret', headers, body)\n\
         assert not is_ours('another-secret', headers, body)\n\
         assert not is_ours('s3cret-s3cret-s3cret', headers, body + b' ')\n\
         old = dict(headers, **{{'lavra-timestamp': '{}'}})\n\
         assert not is_ours('s3cret-s3cret-s3cret', old, body)\n",
        now - 400,
    );
    let ran = Command::new("python3").args(["-c", &script]).output();
    let ran = ran.expect("python3 is missing: run it by cargo xtask test");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
