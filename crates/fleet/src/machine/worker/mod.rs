//! A worker: its session, its proxy and the mission that it scrapes.

mod ends;
mod scrape;
mod session;

use std::time::Duration;

use jiff::Timestamp;
use lavra_tasks::model::Token;
use serde_json::{Map, Value, json};

use super::{Entry, Guard, Seen, Step, later, next_entry};
use crate::api::{Reply, SessionStatus, Trouble};
use crate::code::{Blame, ErrorCode};
use crate::model::{
    Checkpoint, CloseReason, EventKind, Mission, MissionStatus, Mode, Proxy, SessionId, Waiting,
    Worker, WorkerStatus,
};
use crate::settings::Settings;

/// A worker with all that it holds, as the store has it at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub worker: Worker,
    pub mission: Option<Mission>,
    /// The one in use.
    pub proxy: Option<Proxy>,
    /// Whether a mission waits for a worker.
    pub has_queue: bool,
    pub mode: Mode,
}

impl View {
    /// The same when a step of it is written; what others have changed since, it does not show.
    #[must_use]
    pub fn after(&self, step: &Step) -> Self {
        let mut next = self.clone();
        if let Some((_, worker)) = &step.worker {
            next.worker = worker.clone();
        }
        if let Some((_, mission)) = &step.mission {
            next.mission = Some(mission.clone());
        }
        next.mission =
            next.mission.filter(|m| next.worker.current_mission_id == Some(m.id.clone()));
        next.proxy = next.proxy.filter(|_| !step.releases_proxy);
        next
    }

    /// Whether it could take a mission.
    pub(crate) fn is_free(&self) -> bool {
        self.worker.status == WorkerStatus::Ready && self.worker.current_mission_id.is_none()
    }
}

/// What is to be done for a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Todo {
    /// Nothing, until something changes.
    Rest(Waiting),
    /// Nothing before this time.
    Until(Timestamp, Waiting),
    /// Nobody needs to look after it.
    Leave,
    /// Ask the worker; at once, or when so much time has passed since it was last asked the same.
    Ask(Ask, Duration),
    /// Choose a proxy and begin a session.
    Open,
    /// Take the next mission of the queue.
    Assign,
    Write(Box<Step>),
}

/// A question to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    OpenSession,
    SessionStatus,
    CloseSession,
    StartScrape,
    /// The job, and while it is under way the session.
    Job,
    CancelJob,
}

const AT_ONCE: Duration = Duration::ZERO;

/// What is to be done next, from the rows alone.
pub fn todo(view: &View, settings: &Settings, now: Timestamp) -> Todo {
    let worker = &view.worker;
    let timing = &settings.timing;
    if worker.close_reason.is_some() {
        return closing(view, settings, now);
    }
    match worker.status {
        WorkerStatus::Idle => idle(view, settings, now),
        WorkerStatus::Initializing => {
            if let Some(reason) = must_close(view, settings) {
                return write(Draft::new(view, now).close(reason, settings));
            }
            if now >= later(worker.session_started_at.unwrap_or(now), timing.timeout_session) {
                let message = format!("not ready within {:?}", timing.timeout_session);
                // A worker that does not answer is not the proxy's fault.
                let (code, blame) = match worker.unreachable_since {
                    Some(_) => (ErrorCode::Error502, Some(Blame::Worker)),
                    None if !worker.session_accepted => (ErrorCode::Error101, Some(Blame::Worker)),
                    None => (ErrorCode::Error101, None),
                };
                return write(
                    Draft::new(view, now).session_failed(code, blame, &message, settings),
                );
            }
            if !worker.session_accepted {
                return Todo::Ask(Ask::OpenSession, AT_ONCE);
            }
            Todo::Ask(Ask::SessionStatus, timing.polling_session)
        }
        WorkerStatus::Ready => ready(view, settings, now),
        WorkerStatus::Scraping => scraping(view, settings, now),
        WorkerStatus::Error => write(Draft::new(view, now).close(CloseReason::Error, settings)),
    }
}

fn idle(view: &View, settings: &Settings, now: Timestamp) -> Todo {
    let worker = &view.worker;
    if worker.unclosed {
        return Todo::Ask(Ask::CloseSession, settings.timing.close_patience);
    }
    if lost_mission(view) {
        // Nobody can give it back but us: an end that came between two steps.
        return write(Draft::new(view, now).drop_mission());
    }
    let held = ours(view).is_some();
    if held && (view.mode == Mode::Stop || !worker.active) {
        return write(Draft::new(view, now).requeue());
    }
    if !worker.active {
        return Todo::Leave;
    }
    if view.mode != Mode::Run && !held {
        return Todo::Rest(Waiting::Orchestrator);
    }
    if let Some(time) = worker.next_attempt_at.filter(|time| *time > now) {
        return Todo::Until(time, Waiting::Retry);
    }
    if held || view.has_queue { Todo::Open } else { Todo::Rest(Waiting::Mission) }
}

fn ready(view: &View, settings: &Settings, now: Timestamp) -> Todo {
    if let Some(reason) = must_close(view, settings) {
        return write(Draft::new(view, now).close(reason, settings));
    }
    if lost_mission(view) {
        return write(Draft::new(view, now).drop_mission());
    }
    if ours(view).is_some() {
        return write(Draft::new(view, now).resume());
    }
    if view.mode == Mode::Run && view.has_queue {
        return Todo::Assign;
    }
    Todo::Ask(Ask::SessionStatus, settings.timing.polling_session)
}

fn scraping(view: &View, settings: &Settings, now: Timestamp) -> Todo {
    let worker = &view.worker;
    let timing = &settings.timing;
    let is_ours = ours(view).is_some();
    let Some(mission) = &view.mission else {
        return write(Draft::new(view, now).close(CloseReason::Error, settings));
    };
    let must_stop = !is_ours || view.mode == Mode::Stop || worker.stop_by.is_some();
    if must_stop {
        // Without its id a job cannot be told to stop; with its session it ends.
        let reason = if is_ours { CloseReason::Shutdown } else { CloseReason::Canceled };
        return match (&mission.worker_job_id, worker.stop_by) {
            (None, _) => write(Draft::new(view, now).close(reason, settings)),
            (Some(_), None) => Todo::Ask(Ask::CancelJob, AT_ONCE),
            (Some(_), Some(by)) if now >= by => {
                let mut draft = Draft::new(view, now);
                draft.worker.stop_by = None;
                let message = "the scrape job did not stop in time".to_owned();
                write(draft.gave_up(message, settings))
            }
            (Some(_), Some(_)) => Todo::Ask(Ask::Job, timing.polling_session),
        };
    }
    if unreachable_for_too_long(worker, settings, now) {
        let message = format!("did not answer for {:?}", timing.worker_patience);
        return write(Draft::new(view, now).worker_gone(&message, settings));
    }
    if mission.worker_job_id.is_none() {
        return Todo::Ask(Ask::StartScrape, timing.polling_session);
    }
    if now >= later(mission.phase_started_at.unwrap_or(now), timing.timeout_job) {
        // The old job is told to stop before another one may start.
        return Todo::Ask(Ask::CancelJob, AT_ONCE);
    }
    Todo::Ask(Ask::Job, timing.polling_job)
}

fn closing(view: &View, settings: &Settings, now: Timestamp) -> Todo {
    if view.worker.close_by.is_some_and(|by| now >= by) {
        return write(Draft::new(view, now).closed(false));
    }
    Todo::Ask(Ask::CloseSession, settings.timing.polling_session.min(Duration::from_secs(5)))
}

fn must_close(view: &View, settings: &Settings) -> Option<CloseReason> {
    if !view.worker.active {
        return Some(CloseReason::Deactivated);
    }
    match view.mode {
        Mode::Off | Mode::Stop => return Some(CloseReason::Shutdown),
        // What runs is finished, and a mission that lost its session has a new one.
        Mode::Drain if ours(view).is_none() => return Some(CloseReason::Shutdown),
        Mode::Drain | Mode::Run => {}
    }
    let is_full = view.worker.session_count >= settings.adjustable.session_limit;
    is_full.then_some(CloseReason::SessionLimit)
}

/// The mission, if it runs, is being scraped, and this worker's token is on it.
fn ours(view: &View) -> Option<(&Mission, Token)> {
    let mission = view.mission.as_ref()?;
    let is_ours = mission.status == MissionStatus::Running
        && mission.checkpoint == Some(Checkpoint::Extracao)
        && mission.token == view.worker.token;
    is_ours.then_some(mission).zip(mission.token)
}

/// Whether the worker still names a mission that is not its own any more.
fn lost_mission(view: &View) -> bool {
    view.worker.current_mission_id.is_some() && ours(view).is_none()
}

fn unreachable_for_too_long(worker: &Worker, settings: &Settings, now: Timestamp) -> bool {
    let since = worker.unreachable_since;
    since.is_some_and(|since| now >= later(since, settings.timing.worker_patience))
}

fn write(step: Step) -> Todo {
    Todo::Write(Box::new(step))
}

/// A session begins behind `proxy`; `previous` is the name of the one before.
pub fn opened(
    view: &View,
    proxy: &Proxy,
    previous: Option<&str>,
    session: SessionId,
    now: Timestamp,
) -> Step {
    let mut draft = Draft::new(view, now);
    let name = proxy.label().to_owned();
    draft.worker.session_id = Some(session);
    if let (Some(reason), Some(old)) = (view.worker.error_code, previous)
        && view.worker.last_proxy_id.as_ref() != Some(&proxy.id)
    {
        draft.log(
            EventKind::ProxyRotated,
            json!({
                "old_proxy": old, "new_proxy": name, "reason": reason, "proxy_name": old,
                "worker_id": view.worker.id,
            }),
        );
    }
    draft.log(
        EventKind::SessionStarted,
        json!({ "worker_id": view.worker.id, "proxy_id": proxy.id, "proxy_name": name }),
    );
    draft.worker.status = WorkerStatus::Initializing;
    draft.worker.session_started_at = Some(now);
    draft.worker.session_accepted = false;
    draft.worker.session_count = 0;
    draft.worker.next_attempt_at = None;
    draft.worker.unreachable_since = None;
    draft.worker.last_proxy_id = Some(proxy.id.clone());
    draft.waits_for(Waiting::Session);
    draft.step.reserves = Some(proxy.id.clone());
    draft.done()
}

/// No proxy is free: said once until one was.
pub fn no_proxy(view: &View, now: Timestamp) -> Option<Step> {
    if view.worker.waiting == Some(Waiting::Proxy) {
        return None;
    }
    let mut draft = Draft::new(view, now);
    draft.waits_for(Waiting::Proxy);
    let code = ErrorCode::Error501;
    let details = json!({
        "worker_id": view.worker.id, "error_code": code, "error_message": code.says(),
    });
    if let Value::Object(details) = details {
        let event = EventKind::SessionFailed;
        draft.step.logs.push(Entry { mission_id: None, session_id: None, event, details, at: now });
    }
    Some(draft.done())
}

/// A wait that has another name than before, for people to see.
pub fn waits_for(view: &View, waiting: Waiting, now: Timestamp) -> Option<Step> {
    let mut draft = Draft::new(view, now);
    let is_new = draft.waits_for(waiting);
    is_new.then(|| draft.done())
}

/// A mission of the queue is this worker's.
pub fn assigned(view: &View, mission: &Mission, now: Timestamp) -> Step {
    let mut draft = Draft::new(view, now);
    let mut mission = mission.clone();
    mission.status = MissionStatus::Running;
    mission.checkpoint = Some(Checkpoint::Extracao);
    mission.worker_id = Some(view.worker.id.clone());
    mission.worker_job_id = None;
    mission.proxy_used = draft.proxy_name();
    mission.started_at = Some(now);
    mission.phase_started_at = Some(now);
    mission.retry_count = 0;
    mission.attempts += 1;
    mission.token = view.worker.token;
    mission.held_by = view.worker.held_by;
    mission.waiting = Some(Waiting::Job);
    draft.worker.status = WorkerStatus::Scraping;
    draft.worker.current_mission_id = Some(mission.id.clone());
    draft.worker.waiting = Some(Waiting::Job);
    draft.step.links.clone_from(&view.worker.session_id);
    let details = json!({
        "worker_id": view.worker.id, "worker_name": view.worker.name,
        "proxy_name": mission.proxy_used, "mission_id": mission.id,
    });
    draft.step.seen.mission = mission.logged_at;
    draft.mission = Some((Guard::Queued, mission));
    draft.log(EventKind::MissionAssigned, details);
    draft.done()
}

/// What an answer means; `None` where nothing changes.
pub fn after(
    view: &View,
    ask: Ask,
    reply: &Reply,
    settings: &Settings,
    now: Timestamp,
) -> Option<Step> {
    if let Reply::Trouble(trouble) = reply {
        return after_trouble(view, ask, trouble, settings, now);
    }
    let mut draft = Draft::new(view, now);
    let was_away = draft.worker.unreachable_since.take().is_some();
    let settled = |draft: Draft| was_away.then(|| draft.done());
    match ask {
        Ask::OpenSession => {
            draft.worker.session_accepted = true;
            draft.worker.waiting = Some(Waiting::Session);
            Some(draft.done())
        }
        Ask::CloseSession => Some(draft.closed(true)),
        Ask::SessionStatus => match reply.session() {
            Some(status) => draft.session_is(status, view, settings),
            None => settled(draft),
        },
        Ask::StartScrape => match reply {
            Reply::Started { job_id } => Some(draft.started(job_id)),
            Reply::Unknown => draft.session_is(&SessionStatus::Terminated, view, settings),
            // It was refused because the session is not what it was.
            Reply::Session(SessionStatus::Scraping) => settled(draft),
            Reply::Session(status) => draft.session_is(status, view, settings),
            _ => settled(draft),
        },
        Ask::CancelJob => match reply {
            // It does not know the job: nothing is left to stop.
            Reply::Unknown => Some(draft.stopped(Session::Lost, settings)),
            _ => Some(draft.stopping(settings)),
        },
        Ask::Job => match reply {
            Reply::Job { job, session } => draft.job_is(job, session.as_ref(), view, settings),
            Reply::Unknown => Some(draft.job_vanished(view, settings)),
            _ => settled(draft),
        },
    }
}

fn after_trouble(
    view: &View,
    ask: Ask,
    trouble: &Trouble,
    settings: &Settings,
    now: Timestamp,
) -> Option<Step> {
    let mut draft = Draft::new(view, now);
    if ask == Ask::CancelJob {
        // Whatever it says, the job must be over by then, or its session ends it.
        return Some(draft.stopping(settings));
    }
    match trouble {
        Trouble::Busy { .. } => {
            let changed = draft.waits_for(Waiting::WorkerBusy);
            changed.then(|| draft.done())
        }
        Trouble::Refused { message } => match ask {
            Ask::StartScrape => Some(draft.scrape_failed(
                ErrorCode::Error500,
                message.clone(),
                settings,
                Session::Lost,
            )),
            Ask::OpenSession => {
                let blame = Some(Blame::Nobody);
                let code = ErrorCode::Error500;
                Some(draft.session_failed(code, blame, message, settings))
            }
            Ask::SessionStatus | Ask::CloseSession | Ask::Job | Ask::CancelJob => None,
        },
        Trouble::Away { message, .. } => match ask {
            // A session that cannot even be asked for: the worker is in error, and tried later.
            Ask::OpenSession => {
                let (code, blame) = (ErrorCode::Error502, Some(Blame::Worker));
                Some(draft.session_failed(code, blame, message, settings))
            }
            Ask::SessionStatus if view.worker.status == WorkerStatus::Ready => {
                let is_new = draft.is_away(now, message);
                if unreachable_for_too_long(&draft.worker, settings, now) {
                    return Some(draft.worker_gone(message, settings));
                }
                is_new.then(|| draft.done())
            }
            Ask::SessionStatus | Ask::StartScrape | Ask::Job => {
                let is_new = draft.is_away(now, message);
                is_new.then(|| draft.done())
            }
            Ask::CloseSession | Ask::CancelJob => None,
        },
    }
}

/// Whether a failed scrape leaves a session behind on which the job can be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    Ready,
    Lost,
}

impl Session {
    fn of(status: Option<&SessionStatus>) -> Self {
        match status {
            Some(SessionStatus::Ready) => Self::Ready,
            _ => Self::Lost,
        }
    }
}

/// A step in the making: the rows as they will be, and what the log will say.
struct Draft {
    worker: Worker,
    worker_token: Option<Token>,
    mission: Option<(Guard, Mission)>,
    proxy: Option<Proxy>,
    step: Step,
    now: Timestamp,
    /// No entry of this worker's is later: those of a session become a mission's, in their order.
    last: Timestamp,
}

impl Draft {
    fn new(view: &View, now: Timestamp) -> Self {
        Self {
            last: view.worker.updated_at,
            worker: view.worker.clone(),
            worker_token: view.worker.token,
            mission: ours(view).map(|(mission, token)| (Guard::Held(token), mission.clone())),
            proxy: view.proxy.clone(),
            step: Step {
                seen: Seen {
                    worker: Some(view.worker.updated_at),
                    mission: view.mission.as_ref().and_then(|mission| mission.logged_at),
                },
                ..Step::default()
            },
            now,
        }
    }

    fn done(mut self) -> Step {
        self.worker.updated_at = next_entry(self.step.seen.worker, self.now.max(self.last));
        self.step.worker = self.worker_token.map(|token| (token, self.worker));
        self.step.mission = self.mission;
        self.step
    }

    fn log(&mut self, event: EventKind, details: Value) {
        let Value::Object(details) = details else { return };
        let last = self.mission.as_ref().and_then(|(_, mission)| mission.logged_at);
        let at = next_entry(last.max(Some(self.last)), self.now);
        self.last = at;
        let mut mission_id = None;
        if let Some((_, mission)) = &mut self.mission {
            mission.logged_at = Some(at);
            mission_id = Some(mission.id.clone());
        }
        let session_id = self.worker.session_id.clone();
        self.step.logs.push(Entry { mission_id, session_id, event, details, at });
    }

    /// Names the wait, and says whether it has another name than before.
    fn waits_for(&mut self, waiting: Waiting) -> bool {
        let changed = self.worker.waiting != Some(waiting);
        self.worker.waiting = Some(waiting);
        if let Some((_, mission)) = &mut self.mission {
            mission.waiting = Some(waiting);
        }
        changed
    }

    fn is_away(&mut self, now: Timestamp, message: &str) -> bool {
        let is_new = self.worker.unreachable_since.is_none();
        self.worker.unreachable_since.get_or_insert(now);
        self.worker.error_code = Some(ErrorCode::Error502);
        self.worker.error_message = Some(message.to_owned());
        self.waits_for(Waiting::Worker);
        is_new
    }

    fn proxy_name(&self) -> Option<String> {
        self.proxy.as_ref().map(|proxy| proxy.label().to_owned())
    }
}

/// Where the results of a job are; a scheme in the domain is kept.
pub fn data_url(domain: &str, job_id: &str) -> String {
    let domain = domain.trim_end_matches('/');
    let scheme = if domain.contains("://") { "" } else { "https://" };
    format!("{scheme}{domain}/{job_id}/{job_id}_results.json")
}

/// The body of `POST /scrape`.
pub fn scrape_body(mission: &Mission) -> Map<String, Value> {
    let body = json!({
        "filters": {
            "date_range": { "start": mission.date_start, "end": mission.date_end },
            "format": mission.media_type,
            "sort_by": "qtd_ads",
            "languages": mission.languages,
        },
        "options": { "max_ads": "all", "batch_size": 150 },
    });
    match body {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
