//! Missions that failed, each time they did, newest first, a page at a time.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::MissionStatus;
use lavra_fleet::report::{self, Failure};
use serde::Deserialize;
use serde_json::Value;

use super::Tab;
use super::log::place;
use super::when::{When, Window};
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::page::{self, Section, Shell};
use crate::ui::texts::{Audit, Missions};
use crate::ui::visitor::Visitor;
use crate::ui::words;

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
    let since = report::Window::since(window.begin(fleet.store.clock().now(), USUAL));
    let before = query.before.as_deref().map(place).transpose()?;
    let mut failures = fleet.failures(since, before, PAGE + 1).await?;
    let more = failures.len() > PAGE;
    failures.truncate(PAGE);
    let last = failures.last().filter(|_| more);
    let page = FailuresPage {
        tabs: Tab::Failures.all(t),
        here: "/ui/audit/failures",
        report: "failures",
        choices: window.choices(USUAL, t),
        since: window.since.map(When::field).unwrap_or_default(),
        window_text: window.text(USUAL),
        next: last.map(|last| format!("{}/{}", last.failed_at, last.log_id)),
        rows: failures.into_iter().map(|it| Row::new(it, t, m, &shell)).collect(),
        is_first: query.before.is_none(),
        shell,
        t,
    };
    Ok(page::show(&page))
}

impl Row {
    fn new(failure: Failure, t: &Audit, m: &Missions, shell: &Shell) -> Self {
        // What the entry says is of that time; the mission's own may be of a later failure.
        let text = |name: &str| failure.details.get(name).and_then(Value::as_str);
        let code = text("error_code").or(failure.error_code.as_deref());
        let code: Option<ErrorCode> = code.and_then(|code| code.parse().ok());
        let message = text("error_message").or(failure.error_message.as_deref());
        let retries = failure.details.get("retry_count").and_then(Value::as_i64);
        let (slug, state) = match failure.status {
            MissionStatus::Queued => ("queued", m.one_queued),
            MissionStatus::Running => ("running", t.under_way),
            MissionStatus::Completed => ("completed", m.one_completed),
            MissionStatus::Failed => ("failed", m.one_failed),
            MissionStatus::Canceled => ("canceled", m.one_canceled),
        };
        Self {
            short: words::short(&failure.id.0).to_owned(),
            slug,
            state,
            code,
            code_says: code.map_or("", |code| words::error(code, shell.words)),
            message: message.unwrap_or_default().to_owned(),
            retries: shell.f.number(retries.unwrap_or_else(|| i64::from(failure.retry_count))),
            iso: shell.f.iso(failure.failed_at),
            time: shell.f.time(failure.failed_at),
            ago: shell.f.ago(failure.failed_at),
            key: failure.log_id.0,
            id: failure.id.0,
        }
    }
}
