//! An entry of the fleet's log, as pages show it.

use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{EventKind, LogEntry, Worker};
use serde_json::Value;

use super::page::Shell;
use super::words;

/// A row of a table of entries.
#[derive(Debug)]
pub(crate) struct EntryRow {
    pub(crate) id: String,
    pub(crate) iso: String,
    pub(crate) time: String,
    pub(crate) ago: String,
    pub(crate) event: &'static str,
    /// `good`, `bad`, `busy` or `calm`.
    pub(crate) tone: &'static str,
    pub(crate) mission: Option<String>,
    pub(crate) code: Option<ErrorCode>,
    pub(crate) code_says: &'static str,
    /// The other details, in the order of their names.
    pub(crate) details: Vec<(String, String)>,
}

impl EntryRow {
    pub(crate) fn new(entry: LogEntry, shell: &Shell) -> Self {
        let code = entry.details.get("error_code").and_then(Value::as_str);
        let code: Option<ErrorCode> = code.and_then(|code| code.parse().ok());
        // The mission has a column of its own, and a name says more than an id.
        let is_named = entry.details.contains_key("worker_name");
        let shown = |name: &str| match name {
            "error_code" => code.is_none(),
            "mission_id" => false,
            "worker_id" => !is_named,
            _ => true,
        };
        let details = entry.details.iter().filter(|(name, value)| shown(name) && !value.is_null());
        let details = details.map(|(name, value)| (name.clone(), text(name, value, shell)));
        Self {
            id: entry.id.0,
            iso: shell.f.iso(entry.timestamp),
            time: shell.f.time(entry.timestamp),
            ago: shell.f.ago(entry.timestamp),
            event: entry.event.as_str(),
            tone: tone(entry.event),
            mission: entry.mission_id.map(|id| id.0),
            code,
            code_says: code.map_or("", |code| words::error(code, shell.words)),
            details: details.collect(),
        }
    }

    /// With the names of the workers that are known, in place of their ids.
    pub(crate) fn naming(mut self, workers: &[Worker]) -> Self {
        for (name, value) in &mut self.details {
            if name == "worker_id"
                && let Some(worker) = workers.iter().find(|worker| worker.id.0 == *value)
            {
                "worker_name".clone_into(name);
                worker.name.clone_into(value);
            }
        }
        self
    }

    /// Without what the page is about anyway.
    pub(crate) fn without(mut self, names: &[&str]) -> Self {
        self.details.retain(|(name, _)| !names.contains(&name.as_str()));
        self
    }
}

fn text(name: &str, value: &Value, shell: &Shell) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if name.ends_with("_ms") => {
            number.as_i64().map_or_else(|| number.to_string(), |millis| shell.f.millis(millis))
        }
        other => other.to_string(),
    }
}

pub(crate) fn tone(event: EventKind) -> &'static str {
    match event {
        EventKind::SessionReady
        | EventKind::ScrapeCompleted
        | EventKind::WriterCompleted
        | EventKind::MissionCompleted => "ok",
        EventKind::SessionFailed
        | EventKind::ScrapeFailed
        | EventKind::WriterFailed
        | EventKind::MissionFailed => "bad",
        EventKind::RetryTriggered | EventKind::ProxyRotated => "warn",
        EventKind::SessionStarted
        | EventKind::MissionAssigned
        | EventKind::ScrapeStarted
        | EventKind::ScrapeProgress
        | EventKind::WriterStarted
        | EventKind::WriterProgress => "busy",
        EventKind::MissionQueued
        | EventKind::MissionCanceled
        | EventKind::SessionTerminated
        | EventKind::ScrapeEmpty => "calm",
    }
}
