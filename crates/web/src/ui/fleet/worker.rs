//! One worker: its facts, how it has done, its last missions and its log.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use jiff::Timestamp;
use lavra_fleet::Fleet;
use lavra_fleet::model::{Mission, Worker, WorkerId};
use lavra_fleet::store::{Filter, LogFilter};

use super::workers::{Row, performance, users};
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::entry::EntryRow;
use crate::ui::page::{self, Said, Section, Shell};
use crate::ui::texts::{Missions, Things};
use crate::ui::visitor::Visitor;
use crate::ui::words::{self, State as MissionState};

const MISSIONS: usize = 10;
const ENTRIES: usize = 30;

#[derive(Template)]
#[template(path = "worker.html")]
struct WorkerPage {
    shell: Shell,
    t: &'static Things,
    m: &'static Missions,
    row: Row,
    message: Option<String>,
    facts: Vec<(&'static str, String)>,
    missions: Vec<MissionRow>,
    entries: Vec<EntryRow>,
}

#[derive(Debug)]
struct MissionRow {
    id: String,
    short: String,
    days: String,
    slug: &'static str,
    state: &'static str,
    code: Option<&'static str>,
    ads: Option<String>,
    iso: String,
    ago: String,
}

pub(super) async fn show(
    State(fleet): State<Fleet>,
    Path(id): Path<String>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    let id = WorkerId(id);
    let worker = fleet.worker(&id).await?;
    let (t, m) = (Things::of(visitor.language), Missions::of(visitor.language));
    let shell = Shell::new(visitor, Section::Workers, worker.name.clone());
    let shell = shell.follows("fleet missions").saying(said.text());
    let of_worker = Filter { worker: Some(id.clone()), ..Filter::default() };
    let by_worker = LogFilter { worker: Some(id), limit: ENTRIES, ..LogFilter::default() };
    let store = &fleet.store;
    let (proxies, settings, mut done, missions, log) = tokio::try_join!(
        store.proxies(),
        store.settings(),
        performance(&fleet, &shell),
        store.missions(&of_worker, None, MISSIONS),
        store.log(&by_worker),
    )?;
    let proxy = users(&proxies).get(&worker.id).map(|label| (*label).to_owned());
    let done = done.remove(&worker.id);
    let page = WorkerPage {
        message: worker.error_message.clone().filter(|_| worker.error_code.is_some()),
        facts: facts(&worker, proxy.clone(), settings.session_limit, t, &shell),
        missions: missions.into_iter().map(|it| MissionRow::new(it, m, &shell)).collect(),
        entries: log
            .into_iter()
            .map(|entry| EntryRow::new(entry, &shell).without(&["worker_id", "worker_name"]))
            .collect(),
        row: Row::new(worker, proxy, done, settings.session_limit, t, &shell),
        shell,
        t,
        m,
    };
    Ok(page::show(&page))
}

fn facts(
    worker: &Worker,
    proxy: Option<String>,
    limit: i32,
    t: &'static Things,
    shell: &Shell,
) -> Vec<(&'static str, String)> {
    let time = |at: Option<Timestamp>| at.map(|at| format!("{} UTC", shell.f.time(at)));
    let session = worker.session_id.is_some().then(|| {
        format!("{} {} {limit} {}", worker.session_count, t.session_of, t.session_missions)
    });
    let errors = (worker.session_errors > 0).then(|| worker.session_errors.to_string());
    let all = [
        (t.address, Some(worker.url.clone())),
        (t.storage_domain, worker.storage_domain.clone()),
        (t.proxy, proxy),
        (t.session, session),
        (t.session_since, time(worker.session_started_at)),
        (t.session_errors, errors),
        (t.unreachable_since, time(worker.unreachable_since)),
        (t.added_at, time(Some(worker.created_at))),
        (t.changed_at, time(Some(worker.updated_at))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

impl MissionRow {
    fn new(mission: Mission, m: &'static Missions, shell: &Shell) -> Self {
        let state = MissionState::of(&mission);
        let moved = mission.finished_at.or(mission.phase_started_at).or(mission.queued_at);
        let moved = moved.unwrap_or(mission.created_at);
        Self {
            short: words::short(&mission.id.0).to_owned(),
            days: words::days(&mission),
            slug: state.slug(),
            state: state.name(m),
            code: mission.error_code.map(lavra_fleet::code::ErrorCode::as_str),
            ads: mission.ads_count.map(|count| shell.f.number(count)),
            iso: shell.f.iso(moved),
            ago: shell.f.ago(moved),
            id: mission.id.0,
        }
    }
}
