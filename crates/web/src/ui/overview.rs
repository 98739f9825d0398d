//! The overview: is it running, what waits and for what, what failed and why, how fast, until when.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use jiff::{SignedDuration, Timestamp};
use lavra_fleet::Fleet;
use lavra_fleet::model::{Mode, Proxy, Worker, WorkerStatus, Writer};
use lavra_fleet::store::{Counts, LogFilter, Pace, Waiter, WaitsFor};
use lavra_tasks::Tasks;
use lavra_tasks::model::{Status, Task};
use lavra_tasks::store::ListFilter;
use serde::Deserialize;

use super::asked::Asked;
use super::chart::{self, Bar};
use super::entry::EntryRow;
use super::fleet;
use super::format::Format;
use super::page::{Said, Section, Shell, back_to, show};
use super::texts::{Missions, Overview, Things};
use super::visitor::Visitor;
use super::words::{self, State as MissionState};
use crate::access::Form;
use crate::app::Site;
use crate::problem::Problem;

const PIECE: Duration = Duration::from_secs(600);
const PIECES: usize = 36;
const DAY: SignedDuration = SignedDuration::from_hours(24);

pub(crate) fn routes() -> Router<Site> {
    Router::new().route("/ui", get(overview)).route("/ui/run", post(run))
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    t: &'static Overview,
    mode: Mode,
    counts: Counts,
    tiles: Vec<Tile>,
    waits: Vec<WaitRow>,
    failures: Vec<FailureRow>,
    pace: PaceView,
    eta: Eta,
    fleet: FleetView,
    latest: Vec<EntryRow>,
    tasks: Vec<TaskRow>,
    /// What is missing until the first mission can be completed; none after that.
    steps: Vec<StepRow>,
}

#[derive(Debug)]
pub(super) struct Tile {
    pub(super) slug: &'static str,
    pub(super) name: &'static str,
    pub(super) count: String,
    pub(super) is_here: bool,
    pub(super) href: String,
}

#[derive(Debug)]
struct WaitRow {
    what: &'static str,
    href: String,
    count: String,
    age: Option<String>,
}

#[derive(Debug)]
struct FailureRow {
    code: &'static str,
    says: &'static str,
    count: String,
}

#[derive(Debug)]
struct PaceView {
    /// Made here, from numbers.
    chart: Option<String>,
    per_hour: String,
    ads: String,
}

#[derive(Debug)]
enum Eta {
    Nothing,
    Unknown { oldest: Option<String> },
    At { clock: String, span: String, oldest: Option<String> },
}

#[derive(Debug)]
struct FleetView {
    workers_busy: usize,
    workers: usize,
    proxies_used: usize,
    proxies: usize,
    proxies_failing: usize,
    writers: usize,
    by_status: Vec<(&'static str, &'static str, usize)>,
}

#[derive(Debug)]
struct TaskRow {
    id: String,
    kind: String,
    state: String,
    progress: i16,
}

#[derive(Debug)]
struct StepRow {
    text: &'static str,
    href: &'static str,
    is_done: bool,
}

async fn overview(
    State(fleet): State<Fleet>,
    State(tasks): State<Tasks>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    let language = visitor.language;
    let (t, m) = (Overview::of(language), Missions::of(language));
    let shell = Shell::new(visitor, Section::Overview, t.title);
    let shell = shell.follows("missions fleet tasks").saying(said.text());
    let now = fleet.store.clock().now();
    let back = |span: SignedDuration| now.saturating_sub(span).unwrap_or(Timestamp::MIN);
    let window = SignedDuration::from_secs(PIECE.as_secs() as i64 * (PIECES as i64 - 1));
    let newest = LogFilter { limit: 8, ..LogFilter::default() };
    let store = &fleet.store;
    let (control, counts, waits, failures, pace, (workers, proxies, writers), log) = tokio::try_join!(
        store.control(),
        store.counts(),
        store.waits(),
        store.failures_by_code(back(DAY)),
        store.pace(back(window), PIECE),
        async { tokio::try_join!(store.workers(), store.proxies(), store.writers()) },
        store.log(&newest),
    )?;
    let running =
        ListFilter { status: Some(Status::InProgress), limit: 5, ..ListFilter::default() };
    let running = tasks.store().list(running).await?;
    let began = match control.task_id {
        Some(run) => tasks.store().task(run).await?.map(|task| task.created_at),
        None => None,
    };
    let oldest = waits.iter().filter(|wait| wait.what == WaitsFor::Turn).find_map(|it| it.since);
    let view = OverviewPage {
        mode: control.mode,
        tiles: tiles(&counts, None, m, &shell.f),
        waits: waits
            .iter()
            .map(|wait| {
                let (one, many) = match wait.who {
                    Waiter::Mission => (t.waits_mission, t.waits_missions),
                    Waiter::Worker => (t.waits_worker, t.waits_workers),
                };
                WaitRow {
                    what: words::waits_for(wait.what, control.mode, shell.words),
                    href: match (wait.who, wait.what) {
                        (Waiter::Worker, _) => "/ui/workers".into(),
                        (Waiter::Mission, WaitsFor::Turn | WaitsFor::Write) => {
                            "/ui/missions?state=queued".into()
                        }
                        (Waiter::Mission, WaitsFor::Named(waiting)) => {
                            format!("/ui/missions?waiting={}", waiting.as_str())
                        }
                    },
                    count: shell.f.counted(wait.count, one, many),
                    age: wait.since.map(|since| shell.f.age(since)),
                }
            })
            .collect(),
        failures: failures
            .iter()
            .map(|(code, count)| FailureRow {
                code: code.as_str(),
                says: words::error(*code, shell.words),
                count: shell.f.number(*count),
            })
            .collect(),
        pace: pace_view(&pace, now, t, &shell.f),
        eta: eta(&counts, &pace, began, now, oldest, &shell.f),
        fleet: fleet_view(&workers, &proxies, &writers, Things::of(language)),
        latest: log.into_iter().map(|it| EntryRow::new(it, &shell).naming(&workers)).collect(),
        tasks: running.into_iter().map(TaskRow::from).collect(),
        steps: steps(&counts, control.mode, &workers, &proxies, &writers, t),
        counts,
        shell,
        t,
    };
    Ok(show(&view))
}

/// The counts of all states, each a link to those missions.
pub(super) fn tiles(
    counts: &Counts,
    here: Option<MissionState>,
    m: &'static Missions,
    format: &Format,
) -> Vec<Tile> {
    let tile = |state: MissionState| Tile {
        slug: state.slug(),
        name: state.plural(m),
        count: format.number(state.count(counts)),
        is_here: here == Some(state),
        href: format!("/ui/missions?state={}", state.slug()),
    };
    MissionState::ALL.into_iter().map(tile).collect()
}

fn pace_view(pace: &[Pace], now: Timestamp, t: &Overview, format: &Format) -> PaceView {
    let step = PIECE.as_secs() as i64;
    let last = now.as_second().div_euclid(step);
    let first = last - PIECES as i64 + 1;
    let mut bars = vec![Bar::default(); PIECES];
    for piece in pace {
        let number = piece.at.as_second().div_euclid(step) - first;
        if let Some(bar) = usize::try_from(number).ok().and_then(|number| bars.get_mut(number)) {
            *bar = Bar { good: piece.completed, poor: piece.failed };
        }
    }
    let at = |piece: i64| Timestamp::from_second(piece * step).unwrap_or(now);
    let labels = [first, first + PIECES as i64 / 2, last].map(|piece| format.clock(at(piece)));
    let labels = [labels[0].as_str(), &labels[1], &labels[2]];
    let title = format!("{}: {}", t.pace, t.pace_window);
    let (completed, ads) = last_hour(pace, now);
    PaceView {
        chart: (!pace.is_empty()).then(|| chart::bars(&bars, labels, &title, format)),
        per_hour: format.number(completed),
        ads: format.number(ads),
    }
}

/// What was completed, and its ads, in the last hour.
fn last_hour(pace: &[Pace], now: Timestamp) -> (i64, i64) {
    let recent = pace.iter().filter(|piece| now.duration_since(piece.at).as_secs() < 3600);
    recent.fold((0, 0), |(completed, ads), piece| (completed + piece.completed, ads + piece.ads))
}

fn eta(
    counts: &Counts,
    pace: &[Pace],
    run_began: Option<Timestamp>,
    now: Timestamp,
    oldest: Option<Timestamp>,
    format: &Format,
) -> Eta {
    let left = counts.queued + counts.running();
    if left == 0 {
        return Eta::Nothing;
    }
    let oldest = oldest.map(|since| format.age(since));
    // From the first mission of the last hour on, or from the beginning of the run: one that has just
    // begun is not taken to be slow.
    let recent = pace.iter().filter(|piece| now.duration_since(piece.at).as_secs() < 3600);
    let Some(began) = recent.clone().map(|piece| piece.at).min() else {
        return Eta::Unknown { oldest };
    };
    let ended: i64 = recent.map(|piece| piece.completed + piece.failed).sum();
    let began = run_began.map_or(began, |run| run.max(began));
    let seconds = now.duration_since(began).as_secs().max(10);
    let needed = (left as f64 * seconds as f64 / ended.max(1) as f64).min(1e9);
    let span = SignedDuration::from_secs(needed as i64);
    let at = now.saturating_add(span).unwrap_or(Timestamp::MAX);
    let is_today = span.as_secs() < 20 * 3600;
    let clock = if is_today { format.clock(at) } else { format.time(at) };
    Eta::At { clock, span: format.span(span), oldest }
}

fn fleet_view(workers: &[Worker], proxies: &[Proxy], writers: &[Writer], t: &Things) -> FleetView {
    let active: Vec<&Worker> = workers.iter().filter(|worker| worker.active).collect();
    let count = |status| active.iter().filter(|worker| worker.status == status).count();
    FleetView {
        workers_busy: count(WorkerStatus::Scraping),
        workers: active.len(),
        proxies_used: proxies.iter().filter(|proxy| proxy.in_use_by_worker_id.is_some()).count(),
        proxies: proxies.iter().filter(|proxy| proxy.active).count(),
        proxies_failing: proxies.iter().filter(|it| !it.active && it.fail_count > 0).count(),
        writers: writers.iter().filter(|writer| writer.active).count(),
        by_status: WorkerStatus::ALL
            .iter()
            .map(|status| (status.as_str(), fleet::status_name(*status, t), count(*status)))
            .filter(|(.., count)| *count > 0)
            .collect(),
    }
}

impl From<Task> for TaskRow {
    fn from(task: Task) -> Self {
        let (id, progress) = (task.id.to_string(), task.progress);
        Self { id, kind: task.kind, state: task.state, progress }
    }
}

fn steps(
    counts: &Counts,
    mode: Mode,
    workers: &[Worker],
    proxies: &[Proxy],
    writers: &[Writer],
    t: &'static Overview,
) -> Vec<StepRow> {
    if counts.completed > 0 {
        return Vec::new();
    }
    let ended = counts.failed + counts.canceled;
    let queued = counts.queued + counts.running() + ended;
    let step = |text, href, is_done| StepRow { text, href, is_done };
    vec![
        step(t.step_worker, "/ui/workers", workers.iter().any(|worker| worker.active)),
        step(t.step_proxy, "/ui/proxies", proxies.iter().any(|proxy| proxy.active)),
        step(t.step_writer, "/ui/writers", writers.iter().any(|writer| writer.active)),
        step(t.step_missions, "/ui/missions/new", queued > 0),
        step(t.step_start, "/ui", mode != Mode::Off),
    ]
}

#[derive(Debug, Deserialize)]
struct RunWish {
    #[serde(rename = "do")]
    verb: Verb,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Start,
    Drain,
    Stop,
}

async fn run(
    State(fleet): State<Fleet>,
    State(tasks): State<Tasks>,
    visitor: Visitor,
    Form(wish): Form<RunWish>,
) -> Result<Response, Problem> {
    let t = Overview::of(visitor.language);
    let said = match wish.verb {
        Verb::Start => match fleet.start(&tasks).await? {
            (_, true) => t.run_started,
            (_, false) => t.run_already,
        },
        Verb::Drain => {
            fleet.steer(Mode::Drain).await?;
            t.run_draining
        }
        Verb::Stop => {
            fleet.steer(Mode::Stop).await?;
            t.run_stopping
        }
    };
    Ok(back_to("/ui", said))
}
