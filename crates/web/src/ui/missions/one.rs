//! One mission: its facts, why it waits, and its timeline by phase.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use jiff::Timestamp;
use lavra_fleet::Fleet;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::machine::mission::{Wish, refusal};
use lavra_fleet::model::{Mission, MissionId, Mode};
use lavra_fleet::store::{LogFilter, WaitsFor};
use serde::Deserialize;

use super::timeline::{Attempt, Outcome, Phase, attempts};
use crate::access::Form;
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::chart::{self, Span};
use crate::ui::entry::EntryRow;
use crate::ui::page::{self, Said, Section, Shell, back_to};
use crate::ui::texts::Missions;
use crate::ui::visitor::Visitor;
use crate::ui::words::{self, State as MissionState};

/// Entries of the timeline; a mission that has more is in the audit.
const MOST: usize = 2000;

#[derive(Template)]
#[template(path = "mission.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is shown or not")]
struct MissionPage {
    shell: Shell,
    m: &'static Missions,
    id: String,
    days: String,
    slug: &'static str,
    state: &'static str,
    waits: Option<String>,
    code: Option<ErrorCode>,
    code_says: &'static str,
    message: Option<String>,
    facts: Vec<(&'static str, String)>,
    lanes: Vec<Lane>,
    attempts: Vec<AttemptRow>,
    entries: Vec<EntryRow>,
    is_cut: bool,
    can_queue: bool,
    can_cancel: bool,
    can_retry: bool,
    has_data: bool,
}

#[derive(Debug)]
struct Lane {
    name: &'static str,
    chart: String,
}

#[derive(Debug)]
struct AttemptRow {
    phase: &'static str,
    number: usize,
    tone: &'static str,
    outcome: &'static str,
    code: Option<ErrorCode>,
    worker: String,
    proxy: String,
    began: String,
    iso: String,
    took: String,
}

pub(super) async fn show(
    State(fleet): State<Fleet>,
    Path(id): Path<String>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    let mission = fleet.mission(&MissionId(id)).await?;
    let filter = LogFilter {
        mission: Some(mission.id.clone()),
        oldest_first: true,
        limit: MOST + 1,
        ..LogFilter::default()
    };
    let store = &fleet.store;
    let (mut log, workers, control) =
        tokio::try_join!(fleet.log(&filter), store.workers(), store.control())?;
    let is_cut = log.len() > MOST;
    log.truncate(MOST);
    let m = Missions::of(visitor.language);
    let days = words::days(&mission);
    let shell = Shell::new(visitor, Section::Missions, format!("{} {days}", m.mission));
    let shell = shell.follows("missions").saying(said.text());
    let now = shell.f.now();
    let mut attempts = attempts(&log);
    for attempt in &mut attempts {
        let named = workers.iter().find(|it| Some(&it.id.0) == attempt.worker.as_ref());
        if let Some(worker) = named {
            attempt.worker = Some(worker.name.clone());
        }
    }
    let began = log.first().map_or(mission.created_at, |entry| entry.timestamp);
    let state = MissionState::of(&mission);
    let worker = mission.worker_id.as_ref().map(|id| {
        let found = workers.iter().find(|worker| worker.id == *id);
        found.map_or_else(|| id.0.clone(), |worker| worker.name.clone())
    });
    let page = MissionPage {
        slug: state.slug(),
        state: state.name(m),
        waits: why(&mission, control.mode, &shell),
        code: mission.error_code,
        code_says: mission.error_code.map_or("", |code| words::error(code, shell.words)),
        message: mission.error_message.clone(),
        facts: facts(&mission, worker, m, &shell),
        lanes: lanes(&attempts, began, mission.finished_at.unwrap_or(now), m, &shell),
        attempts: rows(&attempts, now, m, &shell),
        entries: log.into_iter().map(|it| EntryRow::new(it, &shell).naming(&workers)).collect(),
        is_cut,
        can_queue: refusal(&mission, Wish::Queue).is_none(),
        can_cancel: refusal(&mission, Wish::Cancel).is_none(),
        can_retry: refusal(&mission, Wish::Retry { from_scrape: false }).is_none(),
        has_data: mission.worker_data_url.is_some(),
        id: mission.id.0,
        days,
        shell,
        m,
    };
    Ok(page::show(&page))
}

/// Why it waits, in a sentence.
fn why(mission: &Mission, mode: Mode, shell: &Shell) -> Option<String> {
    if MissionState::of(mission) == MissionState::Bank {
        return Some(shell.words.wait_bank.to_owned());
    }
    let what = words::waits_for(WaitsFor::of(mission)?, mode, shell.words);
    Some(match mission.next_attempt_at {
        Some(at) => format!("{what} {} {} UTC", shell.words.wait_until, shell.f.clock(at)),
        None => what.to_owned(),
    })
}

fn facts(
    mission: &Mission,
    worker: Option<String>,
    m: &'static Missions,
    shell: &Shell,
) -> Vec<(&'static str, String)> {
    let time = |at: Option<Timestamp>| at.map(|at| shell.f.time(at));
    let took = mission.queued_at.map(|queued| {
        let end = mission.finished_at.unwrap_or_else(|| shell.f.now());
        shell.f.span(end.duration_since(queued))
    });
    let count = mission.ads_count.map(|count| shell.f.number(count));
    let all = [
        (m.media, Some(words::media(mission.media_type, m).to_owned())),
        (m.languages, Some(mission.languages.join(" "))),
        (m.worker, worker),
        (m.proxy, mission.proxy_used.clone()),
        (m.ads, count),
        (m.jobs_sent, Some(mission.attempts.to_string())),
        (m.retries, Some(mission.retry_count.to_string())),
        (m.queued_at, time(mission.queued_at)),
        (m.started_at, time(mission.started_at)),
        (m.finished_at, time(mission.finished_at)),
        (m.duration, took),
        (m.job, mission.worker_job_id.clone()),
        (m.writer_job, mission.writer_job_id.clone()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn phase_name(phase: Phase, m: &'static Missions) -> &'static str {
    match phase {
        Phase::Session => m.phase_session,
        Phase::Scrape => m.phase_scrape,
        Phase::Write => m.phase_write,
    }
}

fn outcome_name(outcome: Outcome, m: &'static Missions) -> &'static str {
    match outcome {
        Outcome::Done => m.outcome_ok,
        Outcome::Failed => m.outcome_failed,
        Outcome::Ended => m.outcome_ended,
        Outcome::Open => m.outcome_open,
    }
}

fn lanes(
    attempts: &[Attempt],
    began: Timestamp,
    end: Timestamp,
    m: &'static Missions,
    shell: &Shell,
) -> Vec<Lane> {
    if attempts.is_empty() {
        return Vec::new();
    }
    let whole = end.duration_since(began).as_millis().max(1);
    let place = |at: Timestamp| (at.duration_since(began).as_millis() * 1000 / whole) as i64;
    let lane = |phase: Phase| {
        let of_phase = attempts.iter().filter(|attempt| attempt.phase == phase);
        let spans: Vec<Span> = of_phase
            .map(|attempt| {
                let to = attempt.to.unwrap_or(end);
                let took = shell.f.span(to.duration_since(attempt.from));
                let code = attempt.code.map_or("", ErrorCode::as_str);
                let outcome = outcome_name(attempt.outcome, m);
                Span {
                    from: place(attempt.from),
                    to: place(to),
                    class: match attempt.outcome {
                        Outcome::Done => "good",
                        Outcome::Failed => "poor",
                        Outcome::Ended => "rest",
                        Outcome::Open => "work",
                    },
                    title: format!("{} · {outcome} {code} · {took}", phase_name(phase, m)),
                }
            })
            .collect();
        let title = format!("{}: {}", phase_name(phase, m), spans.len());
        Lane { name: phase_name(phase, m), chart: chart::lane(&spans, &title) }
    };
    [Phase::Session, Phase::Scrape, Phase::Write].map(lane).into()
}

fn rows(
    attempts: &[Attempt],
    now: Timestamp,
    m: &'static Missions,
    shell: &Shell,
) -> Vec<AttemptRow> {
    let mut numbers = [0; 3];
    let row = |attempt: &Attempt| {
        let number = &mut numbers[attempt.phase as usize];
        *number += 1;
        AttemptRow {
            phase: phase_name(attempt.phase, m),
            number: *number,
            tone: match attempt.outcome {
                Outcome::Done => "ok",
                Outcome::Failed => "bad",
                Outcome::Ended => "calm",
                Outcome::Open => "busy",
            },
            outcome: outcome_name(attempt.outcome, m),
            code: attempt.code,
            worker: attempt.worker.clone().unwrap_or_default(),
            proxy: attempt.proxy.clone().unwrap_or_default(),
            began: shell.f.time(attempt.from),
            iso: shell.f.iso(attempt.from),
            took: shell.f.span(attempt.to.unwrap_or(now).duration_since(attempt.from)),
        }
    };
    attempts.iter().map(row).collect()
}

#[derive(Debug, Deserialize)]
pub(super) struct CopyWish {
    queue: Option<String>,
}

pub(super) async fn copy(
    State(fleet): State<Fleet>,
    Path(id): Path<String>,
    visitor: Visitor,
    Form(wish): Form<CopyWish>,
) -> Result<Response, Problem> {
    let copy = fleet.copy(&MissionId(id), wish.queue.is_some()).await?;
    let m = Missions::of(visitor.language);
    Ok(back_to(&format!("/ui/missions/{copy}"), m.mission_copied))
}
