//! The workers: what each does or waits for, and how it has done.

use std::collections::HashMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use lavra_fleet::Fleet;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{Proxy, Worker, WorkerId, WorkerStatus};
use lavra_fleet::report::{Performance, Window};

use super::shown::{ListQuery, TestView, paged, status_name, tiles};
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::overview::Tile;
use crate::ui::page::{Said, Section, Shell, show};
use crate::ui::texts::{Common, Things};
use crate::ui::visitor::Visitor;
use crate::ui::words;

const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
const INACTIVE: &str = "inactive";

#[derive(Template)]
#[template(path = "workers.html")]
struct ListPage {
    shell: Shell,
    t: &'static Things,
    total: String,
    tiles: Vec<Tile>,
    is_narrowed: bool,
    query_text: String,
    rows: Vec<Row>,
    is_first: bool,
    next: Option<String>,
}

/// A worker as lists and its own page show it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) active: bool,
    pub(super) slug: &'static str,
    pub(super) state: &'static str,
    pub(super) waits: Option<String>,
    pub(super) is_leaving: bool,
    pub(super) has_domain: bool,
    pub(super) mission: Option<String>,
    pub(super) proxy: Option<String>,
    /// Missions of this session, of so many; none without a session.
    pub(super) session: Option<(i32, i32)>,
    pub(super) test: Option<TestView>,
    pub(super) code: Option<ErrorCode>,
    pub(super) code_says: &'static str,
    pub(super) done: Option<Done>,
}

/// What a worker did.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) completed: i64,
    pub(super) failed: i64,
    pub(super) average: Option<String>,
}

/// The state that a worker is counted in.
pub(super) fn slug(worker: &Worker) -> &'static str {
    if !worker.active && worker.status == WorkerStatus::Idle {
        return INACTIVE;
    }
    worker.status.as_str()
}

pub(super) async fn list(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(query): Asked<ListQuery>,
) -> Result<Response, Problem> {
    let language = visitor.language;
    let t = Things::of(language);
    let shell = Shell::new(visitor, Section::Workers, Common::of(language).nav_workers);
    let shell = shell.follows("fleet missions").saying(said.text());
    let store = &fleet.store;
    let (workers, proxies, settings, done) = tokio::try_join!(
        store.workers(),
        store.proxies(),
        store.settings(),
        performance(&fleet, &shell),
    )?;
    let users = users(&proxies);
    let states = [
        (WorkerStatus::Scraping.as_str(), t.many_scraping),
        (WorkerStatus::Ready.as_str(), t.many_ready),
        (WorkerStatus::Initializing.as_str(), t.many_initializing),
        (WorkerStatus::Idle.as_str(), t.many_idle),
        (WorkerStatus::Error.as_str(), t.many_error),
        (INACTIVE, t.inactive_many),
    ];
    let state = query.state.as_deref();
    let here = states.iter().find(|(slug, _)| Some(*slug) == state).map(|(slug, _)| *slug);
    let count = |wanted: &str| workers.iter().filter(|worker| slug(worker) == wanted).count();
    let tiles = tiles("/ui/workers", &states, here, count, &shell);
    let total = shell.f.number(workers.len() as i64);
    let mut shown = workers;
    shown.retain(|worker| here.is_none_or(|here| slug(worker) == here));
    let (shown, next) = paged(shown, query.after.as_deref(), |worker| &worker.id.0);
    let row = |worker: Worker| {
        let proxy = users.get(&worker.id).map(|label| (*label).to_owned());
        let done = done.get(&worker.id).cloned();
        Row::new(worker, proxy, done, settings.session_limit, t, &shell)
    };
    let page = ListPage {
        total,
        tiles,
        is_narrowed: here.is_some(),
        query_text: here.map(|here| format!("state={here}")).unwrap_or_default(),
        rows: shown.into_iter().map(row).collect(),
        is_first: query.after.is_none(),
        next,
        shell,
        t,
    };
    Ok(show(&page))
}

/// Which worker uses which proxy.
pub(super) fn users(proxies: &[Proxy]) -> HashMap<&WorkerId, &str> {
    let used = proxies.iter().filter_map(|it| Some((it.in_use_by_worker_id.as_ref()?, it.label())));
    used.collect()
}

/// What each worker did in the last days.
pub(super) async fn performance(
    fleet: &Fleet,
    shell: &Shell,
) -> lavra_fleet::Result<HashMap<WorkerId, Done>> {
    let now = fleet.store.clock().now();
    let since = now.saturating_sub(WEEK).unwrap_or(Timestamp::MIN);
    let rows = fleet.performance(Window::since(since)).await?;
    let read = |row: Performance| {
        let done = Done {
            completed: row.completed_count,
            failed: row.failed_count,
            average: row.avg_duration_ms.map(|millis| shell.f.millis(millis as i64)),
        };
        (row.worker_id, done)
    };
    Ok(rows.into_iter().map(read).collect())
}

impl Row {
    pub(super) fn new(
        worker: Worker,
        proxy: Option<String>,
        done: Option<Done>,
        limit: i32,
        t: &Things,
        shell: &Shell,
    ) -> Self {
        let slug = slug(&worker);
        let is_inactive = slug == INACTIVE;
        let waits = worker.waiting.filter(|_| !is_inactive).map(|waiting| {
            let what = words::wait(waiting, shell.words);
            match worker.next_attempt_at.filter(|at| *at > shell.f.now()) {
                Some(at) => format!("{what} {} {}", t.until, shell.f.clock(at)),
                None => what.to_owned(),
            }
        });
        Self {
            slug,
            state: if is_inactive { t.inactive } else { status_name(worker.status, t) },
            waits,
            is_leaving: !worker.active && !is_inactive,
            has_domain: worker.storage_domain.is_some(),
            mission: worker.current_mission_id.map(|id| id.0),
            proxy,
            session: worker.session_id.is_some().then_some((worker.session_count, limit)),
            test: TestView::new(worker.last_test_at, worker.last_test_ok, t, shell),
            code: worker.error_code,
            code_says: worker.error_code.map_or("", |code| words::error(code, shell.words)),
            done,
            id: worker.id.0,
            name: worker.name,
            url: worker.url,
            active: worker.active,
        }
    }
}
