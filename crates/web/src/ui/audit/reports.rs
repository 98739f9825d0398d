//! What the workers did, and which proxies are trouble.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::report::{self, Performance, ProxyTrouble};

use super::Tab;
use super::when::{When, Window};
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::page::{self, Section, Shell};
use crate::ui::texts::Audit;
use crate::ui::visitor::Visitor;

const USUAL: i64 = 7 * 24;

#[derive(Template)]
#[template(path = "audit_workers.html")]
struct WorkersPage {
    shell: Shell,
    t: &'static Audit,
    tabs: [(&'static str, &'static str, bool); 5],
    here: &'static str,
    report: &'static str,
    choices: Vec<(i64, String, bool)>,
    since: String,
    window_text: String,
    rows: Vec<WorkerRow>,
}

#[derive(Debug)]
struct WorkerRow {
    id: String,
    name: String,
    completed: String,
    failed: String,
    has_failed: bool,
    /// Percent of those that ended.
    success: i64,
    average: String,
}

#[derive(Template)]
#[template(path = "audit_proxies.html")]
struct ProxiesPage {
    shell: Shell,
    t: &'static Audit,
    tabs: [(&'static str, &'static str, bool); 5],
    here: &'static str,
    report: &'static str,
    choices: Vec<(i64, String, bool)>,
    since: String,
    window_text: String,
    rows: Vec<ProxyRow>,
}

#[derive(Debug)]
struct ProxyRow {
    name: String,
    host: String,
    active: bool,
    fail_count: i32,
    session_failures: String,
    rotations: String,
}

pub(super) async fn workers(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(window): Asked<Window>,
) -> Result<Response, Problem> {
    let t = Audit::of(visitor.language);
    let shell = Shell::new(visitor, Section::Audit, t.workers_title).follows("missions fleet");
    let since = window.begin(fleet.store.clock().now(), USUAL);
    let rows = fleet.performance(report::Window::since(since)).await?;
    let row = |row: Performance| {
        let (completed, failed) = (row.completed_count, row.failed_count);
        let average = row.avg_duration_ms;
        WorkerRow {
            id: row.worker_id.0,
            name: row.worker_name,
            completed: shell.f.number(completed),
            failed: shell.f.number(failed),
            has_failed: failed > 0,
            success: completed * 100 / (completed + failed).max(1),
            average: average.map_or_else(|| "—".into(), |millis| shell.f.millis(millis as i64)),
        }
    };
    let page = WorkersPage {
        tabs: Tab::Workers.all(t),
        here: "/ui/audit/workers",
        report: "workers",
        choices: window.choices(USUAL, t),
        since: window.since.map(When::field).unwrap_or_default(),
        window_text: window.text(USUAL),
        rows: rows.into_iter().map(row).collect(),
        shell,
        t,
    };
    Ok(page::show(&page))
}

pub(super) async fn proxies(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(window): Asked<Window>,
) -> Result<Response, Problem> {
    let t = Audit::of(visitor.language);
    let shell = Shell::new(visitor, Section::Audit, t.proxies_title).follows("missions fleet");
    let since = window.begin(fleet.store.clock().now(), USUAL);
    let rows = fleet.troubled_proxies(report::Window::since(since)).await?;
    let row = |row: ProxyTrouble| ProxyRow {
        name: row.name.unwrap_or_default(),
        host: row.host,
        active: row.active,
        fail_count: row.fail_count,
        session_failures: shell.f.number(row.session_failures),
        rotations: shell.f.number(row.rotations),
    };
    let page = ProxiesPage {
        tabs: Tab::Proxies.all(t),
        here: "/ui/audit/proxies",
        report: "proxies",
        choices: window.choices(USUAL, t),
        since: window.since.map(When::field).unwrap_or_default(),
        window_text: window.text(USUAL),
        rows: rows.into_iter().map(row).collect(),
        shell,
        t,
    };
    Ok(page::show(&page))
}
