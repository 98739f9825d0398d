//! Missions that failed, each time they did, newest first. What the report of the API has, a page at a
//! time.

use std::collections::HashMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{EventKind, LogEntry, Mission, MissionId};
use lavra_fleet::store::{Filter, LogFilter};
use serde::Deserialize;
use serde_json::Value;

use super::Tab;
use super::log::{cut, place};
use super::when::{When, Window};
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::page::{self, Section, Shell};
use crate::ui::texts::{Audit, Missions};
use crate::ui::visitor::Visitor;
use crate::ui::words::{self, State as MissionState};

const PAGE: usize = 50;
const USUAL: i64 = 24;

#[derive(Debug, Deserialize)]
pub(super) struct Query {
    before: Option<String>,
}

#[derive(Template)]
#[template(path = "audit_failures.html")]
struct FailuresPage {
    shell: Shell,
    t: &'static Audit,
    tabs: [(&'static str, &'static str, bool); 5],
    here: &'static str,
    report: &'static str,
    choices: Vec<(i64, String, bool)>,
    since: String,
    window_text: String,
    rows: Vec<Row>,
    next: Option<String>,
    is_first: bool,
}

#[derive(Debug)]
struct Row {
    key: String,
    id: String,
    short: String,
    /// As the mission is by now, which may have been tried again.
    slug: &'static str,
    state: &'static str,
    code: Option<ErrorCode>,
    code_says: &'static str,
    message: String,
    retries: String,
    iso: String,
    time: String,
    ago: String,
}

pub(super) async fn show(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(window): Asked<Window>,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let (t, m) = (Audit::of(visitor.language), Missions::of(visitor.language));
    let shell = Shell::new(visitor, Section::Audit, t.failures_title).follows("missions");
    let filter = LogFilter {
        events: vec![EventKind::MissionFailed],
        since: Some(window.begin(fleet.store.clock().now(), USUAL)),
        before: query.before.as_deref().map(place).transpose()?,
        limit: PAGE + 1,
        ..LogFilter::default()
    };
    let mut log = fleet.store.log(&filter).await?;
    let next = cut(&mut log, PAGE);
    let missions = missions_of(&fleet, &log).await?;
    let row = |entry: LogEntry| {
        let mission = missions.get(entry.mission_id.as_ref()?)?;
        Some(Row::new(&entry, mission, m, &shell))
    };
    let page = FailuresPage {
        tabs: Tab::Failures.all(t),
        here: "/ui/audit/failures",
        report: "failures",
        choices: window.choices(USUAL, t),
        since: window.since.map(When::field).unwrap_or_default(),
        window_text: window.text(USUAL),
        rows: log.into_iter().filter_map(row).collect(),
        next,
        is_first: query.before.is_none(),
        shell,
        t,
    };
    Ok(page::show(&page))
}

/// The missions that entries name.
async fn missions_of(
    fleet: &Fleet,
    log: &[LogEntry],
) -> Result<HashMap<MissionId, Mission>, Problem> {
    let mut ids: Vec<MissionId> = log.iter().filter_map(|it| it.mission_id.clone()).collect();
    ids.sort();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let limit = ids.len();
    let found = fleet.store.missions(&Filter { ids, ..Filter::default() }, None, limit).await?;
    Ok(found.into_iter().map(|mission| (mission.id.clone(), mission)).collect())
}

impl Row {
    fn new(entry: &LogEntry, mission: &Mission, m: &Missions, shell: &Shell) -> Self {
        let text = |name: &str| entry.details.get(name).and_then(Value::as_str);
        let code: Option<ErrorCode> = text("error_code").and_then(|code| code.parse().ok());
        let code = code.or(mission.error_code);
        let message = text("error_message").or(mission.error_message.as_deref());
        let retries = entry.details.get("retry_count").and_then(Value::as_i64);
        let state = MissionState::of(mission);
        Self {
            key: entry.id.0.clone(),
            id: mission.id.0.clone(),
            short: words::short(&mission.id.0).to_owned(),
            slug: state.slug(),
            state: state.name(m),
            code,
            code_says: code.map_or("", |code| words::error(code, shell.words)),
            message: message.unwrap_or_default().to_owned(),
            retries: shell.f.number(retries.unwrap_or_else(|| i64::from(mission.retry_count))),
            iso: shell.f.iso(entry.timestamp),
            time: shell.f.time(entry.timestamp),
            ago: shell.f.ago(entry.timestamp),
        }
    }
}
