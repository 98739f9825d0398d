//! The raw log with its filters, newest first; entries that belong to no mission included.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use lavra_fleet::Fleet;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{EventKind, LogEntry, LogId, MissionId, WorkerId};
use lavra_fleet::store::LogFilter;
use serde::Deserialize;

use super::Tab;
use super::when::When;
use crate::problem::{Code, Problem};
use crate::time::can_be_held;
use crate::ui::asked::Asked;
use crate::ui::entry::{EntryRow, tone};
use crate::ui::page::{self, Section, Shell};
use crate::ui::texts::Audit;
use crate::ui::visitor::Visitor;

const PAGE: usize = 50;

/// What the address asks for.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Query {
    mission: Option<String>,
    without_mission: Option<String>,
    #[serde(default)]
    event: Vec<EventKind>,
    worker: Option<String>,
    /// By its name.
    proxy: Option<String>,
    error: Option<ErrorCode>,
    since: Option<When>,
    until: Option<When>,
    /// Where the page before ended.
    before: Option<String>,
}

impl Query {
    fn filter(&self) -> Result<LogFilter, Problem> {
        Ok(LogFilter {
            mission: self.mission.as_deref().map(|id| MissionId(id.trim().to_owned())),
            without_mission: self.without_mission.is_some(),
            events: self.event.clone(),
            worker: self.worker.clone().map(WorkerId),
            proxy: self.proxy.clone(),
            error_code: self.error,
            since: self.since.map(|time| time.0),
            until: self.until.map(|time| time.0),
            before: self.before.as_deref().map(place).transpose()?,
            limit: PAGE + 1,
            ..LogFilter::default()
        })
    }

    /// The conditions as the query of an address.
    fn text(&self) -> String {
        let events: Vec<&str> = self.event.iter().map(|event| event.as_str()).collect();
        self.text_with(&events, "error")
    }

    /// The same for the API, which takes several events with commas in between.
    fn api_text(&self) -> String {
        let events: Vec<&str> = self.event.iter().map(|event| event.as_str()).collect();
        let together = events.join(",");
        let events: &[&str] = if events.is_empty() { &[] } else { &[&together] };
        self.text_with(events, "error_code")
    }

    fn text_with(&self, events: &[&str], error: &str) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        let mut put = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                text.append_pair(name, value);
            }
        };
        put("mission", self.mission.as_deref());
        put("without_mission", self.without_mission.as_ref().map(|_| "true"));
        for event in events {
            put("event", Some(event));
        }
        put("worker", self.worker.as_deref());
        put("proxy", self.proxy.as_deref());
        put(error, self.error.map(ErrorCode::as_str));
        put("since", self.since.map(|time| time.0.to_string()).as_deref());
        put("until", self.until.map(|time| time.0.to_string()).as_deref());
        text.finish()
    }
}

/// Where a page ended: `TIME/ID`.
pub(super) fn place(text: &str) -> Result<(Timestamp, LogId), Problem> {
    let wrong = || Problem::new(Code::BadQuery, "before is not one of ours");
    let (time, id) = text.split_once('/').ok_or_else(wrong)?;
    let time = time.parse().ok().filter(can_be_held).ok_or_else(wrong)?;
    Ok((time, LogId(id.to_owned())))
}

/// Cuts what was read to a page, and says where the next one begins.
fn cut(entries: &mut Vec<LogEntry>, page: usize) -> Option<String> {
    let more = entries.len() > page;
    entries.truncate(page);
    let last = entries.last().filter(|_| more);
    last.map(|entry| format!("{}/{}", entry.timestamp, entry.id))
}

#[derive(Template)]
#[template(path = "audit_log.html")]
struct LogPage {
    shell: Shell,
    t: &'static Audit,
    tabs: [(&'static str, &'static str, bool); 5],
    query: Query,
    query_text: String,
    api_text: String,
    events: Vec<(&'static str, &'static str, bool)>,
    workers: Vec<(String, String)>,
    proxies: Vec<String>,
    entries: Vec<EntryRow>,
    next: Option<String>,
    is_first: bool,
    is_narrowed: bool,
}

pub(super) async fn show(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let t = Audit::of(visitor.language);
    let filter = query.filter()?;
    let store = &fleet.store;
    let (mut log, workers, proxies) =
        tokio::try_join!(store.log(&filter), store.workers(), store.proxies())?;
    let shell = Shell::new(visitor, Section::Audit, t.log_title).follows("missions fleet");
    let next = cut(&mut log, PAGE);
    let query_text = query.text();
    let event = |event: &EventKind| (event.as_str(), tone(*event), query.event.contains(event));
    let page = LogPage {
        tabs: Tab::Log.all(t),
        events: EventKind::ALL.iter().map(event).collect(),
        entries: log.into_iter().map(|it| EntryRow::new(it, &shell).naming(&workers)).collect(),
        proxies: proxies.iter().map(|proxy| proxy.label().to_owned()).collect(),
        workers: workers.into_iter().map(|worker| (worker.id.0, worker.name)).collect(),
        next,
        is_first: query.before.is_none(),
        is_narrowed: !query_text.is_empty(),
        api_text: query.api_text(),
        query_text,
        query,
        shell,
        t,
    };
    Ok(page::show(&page))
}
