//! What happened, in the words that a webhook is told of it.

use jiff::Timestamp;
use lavra_extract::task::Extract;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::EventKind;
use lavra_tasks::Handler;
use serde_json::{Map, Value, json};

use crate::model::{Notification, Topic};
use crate::store::{Ended, Logged, Reading, Unreadable};

/// More of an error message is of no use to a receiver.
const LONGEST_TEXT: usize = 2000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fact {
    pub(crate) topic: Topic,
    pub(crate) notification: Notification,
}

impl Fact {
    /// `row` is the one that says so: the same row is the same fact, whoever reads it.
    fn new(
        topic: Topic,
        row: &dyn std::fmt::Display,
        at: Timestamp,
        data: Value,
        text: String,
    ) -> Self {
        let notification = Notification {
            id: format!("{}:{row}", topic.as_str()),
            kind: topic.as_str().to_owned(),
            created_at: at,
            data: fit(data),
            text: fit_text(text),
        };
        Self { topic, notification }
    }

    pub(crate) fn at(&self) -> Timestamp {
        self.notification.created_at
    }
}

/// All that a reading has to tell, oldest first.
pub(crate) fn facts(reading: &Reading) -> Vec<Fact> {
    let logged = reading.logged.iter().map(of_log);
    let ended = reading.ended.iter().flat_map(of_task);
    let unreadable = reading.unreadable.iter().map(of_message);
    let mut all: Vec<Fact> = logged.chain(ended).chain(unreadable).collect();
    all.sort_by_key(Fact::at);
    all
}

fn of_log(entry: &Logged) -> Fact {
    let detail = |name: &str| entry.details.get(name).cloned().unwrap_or(Value::Null);
    let code: Option<ErrorCode> = serde_json::from_value(detail("error_code")).ok();
    let says = code.map_or("something went wrong", ErrorCode::says);
    if entry.event == EventKind::SessionFailed {
        let data = json!({ "worker_id": detail("worker_id"), "error_code": detail("error_code") });
        let text = format!("No proxy is free: {}. Missions wait until one is.", word(code));
        return Fact::new(Topic::PoolExhausted, &entry.id, entry.at, data, text);
    }
    let mission = entry.mission.as_ref().map_or("(unknown)", |id| id.0.as_str());
    let message = detail("error_message");
    let text = match message.as_str() {
        Some(message) => format!("Mission {mission} failed: {} ({says}): {message}", word(code)),
        None => format!("Mission {mission} failed: {} ({says})", word(code)),
    };
    let data = json!({
        "mission_id": entry.mission,
        "error_code": detail("error_code"),
        "error_message": message,
        "cause": detail("cause"),
        "retry_count": detail("retry_count"),
        "worker_id": detail("worker_id"),
        "writer_id": detail("writer_id"),
    });
    Fact::new(Topic::MissionFailed, &entry.id, entry.at, data, text)
}

fn word(code: Option<ErrorCode>) -> &'static str {
    code.map_or("an unknown error", ErrorCode::as_str)
}

/// An extraction that failed is two facts: what is missing, and that its task is a dead letter.
fn of_task(ended: &Ended) -> Vec<Fact> {
    let mut all = Vec::new();
    if ended.kind == Extract::KIND {
        all.extend(of_extraction(ended));
    }
    if ended.has_failed {
        let error = ended.error.as_deref().unwrap_or("no reason was given");
        let text = format!("Task {} ({}) failed for good: {error}", ended.task, ended.kind);
        let data = json!({
            "task_id": ended.task, "type": ended.kind, "error": error,
            "attempts": ended.attempts,
        });
        let topic = Topic::TaskDeadLettered;
        all.push(Fact::new(topic, &ended.event, ended.at, data, text));
    }
    all
}

/// `None` for a run that came to nothing: it failed before it knew what is missing.
fn of_extraction(ended: &Ended) -> Option<Fact> {
    let nothing = Map::new();
    let said = ended.said.as_ref().and_then(Value::as_object);
    if ended.has_failed && said.is_none() {
        return None;
    }
    let said = said.unwrap_or(&nothing);
    let part = |name: &str| said.get(name).cloned().unwrap_or(Value::Null);
    let summary = part("summary");
    let count = |name: &str| summary.get(name).cloned().unwrap_or(Value::Null);
    let number = |name: &str| summary.get(name).and_then(Value::as_u64).unwrap_or(0);
    let what = format!(
        "Extraction of {} from {} to {}",
        part("source").as_str().unwrap_or("(unknown)"),
        part("from").as_str().unwrap_or("?"),
        part("to").as_str().unwrap_or("?"),
    );
    let (topic, text) = if ended.has_failed {
        let counts = format!(
            "{} complete, {} partial, {} failed, {} pending",
            number("complete"),
            number("partial"),
            number("failed"),
            number("pending"),
        );
        (Topic::ExtractionShort, format!("{what} ended short: {counts}."))
    } else {
        let counts = format!("{} pages, {} records", number("pages"), number("records"));
        (Topic::ExtractionComplete, format!("{what} is complete: {counts} were fetched."))
    };
    let data = json!({
        "task_id": ended.task,
        "source": part("source"),
        "from": part("from"),
        "to": part("to"),
        "endpoints": part("endpoints"),
        "counts": {
            "complete": count("complete"),
            "partial": count("partial"),
            "failed": count("failed"),
            "pending": count("pending"),
            "pages": count("pages"),
            "records": count("records"),
        },
    });
    Some(Fact::new(topic, &ended.event, ended.at, data, text))
}

fn of_message(letter: &Unreadable) -> Fact {
    let text = format!("A message of the broker failed for good: {}", letter.reason);
    let data = json!({ "task_id": null, "type": null, "error": letter.reason, "attempts": null });
    Fact::new(Topic::TaskDeadLettered, &letter.id, letter.at, data, text)
}

/// What is told must be such that it can be stored as a task, or one row would hold up all others:
/// without the character U+0000, and not endless.
fn fit(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(fit_text(text)),
        Value::Array(items) => items.into_iter().map(fit).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (fit_text(name), fit(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn fit_text(text: String) -> String {
    let text = if text.contains('\0') { text.replace('\0', "") } else { text };
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use lavra_tasks::model::{DeadLetterId, EventId, TaskId};
    use uuid::Uuid;

    use super::*;

    fn at() -> Timestamp {
        "2026-11-15T20:30:00Z".parse().unwrap()
    }

    fn ended(kind: &str, error: Option<&str>, said: Option<Value>) -> Ended {
        Ended {
            event: EventId(Uuid::from_u128(1)),
            task: TaskId(Uuid::from_u128(2)),
            kind: kind.into(),
            has_failed: error.is_some(),
            error: error.map(str::to_owned),
            attempts: 4,
            said,
            at: at(),
        }
    }

    fn run(partial: u64) -> Value {
        let summary = json!({
            "complete": 3, "partial": partial, "failed": 0, "pending": 0, "pages": 40,
            "records": 2000, "bytes": 7,
        });
        json!({
            "source": "pncp", "from": "2024-01", "to": "2024-03", "endpoints": [],
            "summary": summary,
        })
    }

    fn topics(facts: &[Fact]) -> Vec<Topic> {
        facts.iter().map(|fact| fact.topic).collect()
    }

    #[test]
    fn a_run_that_completed_is_told_with_its_counts() {
        let facts = of_task(&ended("extract", None, Some(run(0))));
        assert_eq!(topics(&facts), [Topic::ExtractionComplete]);
        let told = &facts[0].notification;
        assert_eq!(told.data["counts"]["pages"], 40);
        assert_eq!(
            told.text,
            "Extraction of pncp from 2024-01 to 2024-03 is complete: 40 pages, 2000 records were fetched."
        );
    }

    #[test]
    fn a_run_that_is_short_is_also_a_dead_letter_under_another_id() {
        let facts = of_task(&ended("extract", Some("3 complete, 1 partial"), Some(run(1))));
        assert_eq!(topics(&facts), [Topic::ExtractionShort, Topic::TaskDeadLettered]);
        assert_ne!(facts[0].notification.id, facts[1].notification.id);
        let says = "ended short: 3 complete, 1 partial, 0 failed, 0 pending.";
        assert!(facts[0].notification.text.ends_with(says), "{}", facts[0].notification.text);
    }

    #[test]
    fn a_run_that_came_to_nothing_is_only_a_dead_letter() {
        let facts = of_task(&ended("extract", Some("there is no source \"x\""), None));
        assert_eq!(topics(&facts), [Topic::TaskDeadLettered]);
        assert_eq!(facts[0].notification.data["attempts"], 4);
    }

    #[test]
    fn other_tasks_are_told_only_when_they_failed() {
        assert_eq!(of_task(&ended("http", None, None)), []);
        let facts = of_task(&ended("http", Some("HTTP 404"), None));
        let says = "Task 00000000-0000-0000-0000-000000000002 (http) failed for good: HTTP 404";
        assert_eq!(facts[0].notification.text, says);
    }

    #[test]
    fn what_cannot_be_stored_is_left_out() {
        let letter =
            Unreadable { id: DeadLetterId(Uuid::from_u128(3)), reason: "a\0b".into(), at: at() };
        let told = of_message(&letter).notification;
        assert_eq!(told.data["error"], "ab");
        assert!(!told.text.contains('\0'));
        let long = fit(json!({ "a\0": ["é".repeat(3000)] }));
        assert_eq!(long["a"][0].as_str().unwrap().chars().count(), LONGEST_TEXT + 1);
    }

    #[test]
    fn a_mission_says_its_code_and_why() {
        let details = json!({
            "error_code": "ERROR203", "error_message": "page 3 timed out", "retry_count": 3,
            "cause": "ERROR200", "worker_id": "wrk_1",
        });
        let Value::Object(details) = details else { panic!("an object") };
        let entry = Logged {
            id: "log_1".into(),
            event: EventKind::MissionFailed,
            mission: Some("mis_1".into()),
            details,
            at: at(),
        };
        let told = of_log(&entry).notification;
        assert_eq!(told.id, "mission.failed:log_1");
        let says = "Mission mis_1 failed: ERROR203 (the scrape failed after all retries): page 3 timed out";
        assert_eq!(told.text, says);
        assert_eq!(told.data["retry_count"], 3);
    }
}
