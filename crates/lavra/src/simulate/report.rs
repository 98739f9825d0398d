//! What a simulation shows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use lavra_fleet::memory::Memory;
use lavra_fleet::model::{EventKind, LogEntry, MissionId};
use lavra_fleet::orchestrator::Ended;
use lavra_world::FleetWorld;
use serde::Serialize;
use serde_json::Value;

use super::{beginning, clock_time};

/// Pieces of the timeline.
const PIECES: usize = 24;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) virtual_seconds: u64,
    pub(crate) completed: i64,
    pub(crate) failed: i64,
    pub(crate) canceled: i64,
    pub(crate) missions_per_hour: f64,
    /// The share of their time in which workers scraped.
    pub(crate) utilisation: f64,
    pub(crate) sessions: usize,
    pub(crate) proxy_rotations: usize,
    pub(crate) retries_by_code: BTreeMap<String, usize>,
    pub(crate) failures_by_code: BTreeMap<String, usize>,
    pub(crate) requests: u64,
    pub(crate) unclosed: usize,
    pub(crate) timeline: Vec<Piece>,
    /// What must never be.
    pub(crate) wrong: Vec<String>,
    /// The whole log in a line each: two runs of a seed are the same if these are.
    #[serde(skip)]
    pub(crate) log: Vec<String>,
}

/// A stretch of the timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Piece {
    pub(crate) at: String,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    pub(crate) retries: usize,
    pub(crate) sessions: usize,
}

impl Report {
    pub(super) fn of(memory: &Memory, world: &FleetWorld, took: Duration, ended: &Ended) -> Self {
        let tables = memory.tables();
        let is = |event| tables.logs.iter().filter(move |entry: &&LogEntry| entry.event == event);
        let by_code = |event| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for entry in is(event) {
                let code = entry.details.get("error_code").and_then(Value::as_str);
                *counts.entry(code.unwrap_or("none").to_owned()).or_default() += 1;
            }
            counts
        };
        let scraped: i64 = is(EventKind::ScrapeCompleted)
            .filter_map(|entry| entry.details.get("duration_ms")?.as_i64())
            .sum();
        let seconds = took.as_secs_f64().max(1.0);
        let capacity = seconds * 1e3 * tables.workers.len().max(1) as f64;
        Self {
            virtual_seconds: took.as_secs(),
            completed: ended.counts.completed,
            failed: ended.counts.failed,
            canceled: ended.counts.canceled,
            missions_per_hour: ended.counts.completed as f64 * 3600.0 / seconds,
            utilisation: scraped as f64 / capacity,
            sessions: is(EventKind::SessionStarted).count(),
            proxy_rotations: is(EventKind::ProxyRotated).count(),
            retries_by_code: by_code(EventKind::RetryTriggered),
            failures_by_code: by_code(EventKind::MissionFailed),
            requests: world.stats(took).requests.values().sum(),
            unclosed: ended.unclosed,
            timeline: timeline(&tables.logs, took),
            wrong: Vec::new(),
            log: tables.logs.iter().map(line).collect(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let hours = self.virtual_seconds as f64 / 3600.0;
        let _infallible = write!(
            text,
            "virtual time          {hours:.1} h\n\
             missions              {} completed, {} failed, {} canceled\n\
             missions per hour     {:.1}\n\
             workers at work       {:.0} %\n\
             sessions              {}, {} of them not closed\n\
             proxies rotated       {}\n\
             requests              {}\n",
            self.completed,
            self.failed,
            self.canceled,
            self.missions_per_hour,
            self.utilisation * 100.0,
            self.sessions,
            self.unclosed,
            self.proxy_rotations,
            self.requests,
        );
        for (name, counts) in
            [("retries", &self.retries_by_code), ("failures", &self.failures_by_code)]
        {
            let list: Vec<String> =
                counts.iter().map(|(code, count)| format!("{code} {count}")).collect();
            let list = if list.is_empty() { "none".into() } else { list.join(", ") };
            let _infallible = writeln!(text, "{name:<22}{list}");
        }
        let _infallible = writeln!(
            text,
            "\n{:<10}{:>10}{:>8}{:>9}{:>10}",
            "from", "completed", "failed", "retries", "sessions"
        );
        for piece in &self.timeline {
            let Piece { at, completed, failed, retries, sessions } = piece;
            let _infallible =
                writeln!(text, "{at:<10}{completed:>10}{failed:>8}{retries:>9}{sessions:>10}");
        }
        text.trim_end().to_owned()
    }
}

fn timeline(logs: &[LogEntry], took: Duration) -> Vec<Piece> {
    let length = (took.as_secs() as i64 / PIECES as i64).max(1);
    let mut pieces = vec![Piece::default(); PIECES];
    for (number, piece) in pieces.iter_mut().enumerate() {
        let at = jiff::SignedDuration::from_secs(length * number as i64);
        piece.at = clock_time(beginning().saturating_add(at).unwrap_or_else(|_| beginning()));
    }
    for entry in logs {
        let since = entry.timestamp.duration_since(beginning()).as_secs().max(0);
        let place = (since / length).min(PIECES as i64 - 1) as usize;
        let Some(piece) = pieces.get_mut(place) else { continue };
        match entry.event {
            EventKind::MissionCompleted => piece.completed += 1,
            EventKind::MissionFailed => piece.failed += 1,
            EventKind::RetryTriggered => piece.retries += 1,
            EventKind::SessionStarted => piece.sessions += 1,
            _ => {}
        }
    }
    pieces
}

fn line(entry: &LogEntry) -> String {
    let mission = entry.mission_id.as_ref().map_or("-", |MissionId(id)| id);
    let details = Value::Object(entry.details.clone());
    format!("{} {mission} {} {details}", clock_time(entry.timestamp), entry.event)
}
