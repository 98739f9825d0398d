//! A worker: its session, its proxy and the mission that it scrapes.

use std::time::Duration;

use jiff::Timestamp;
use lavra_tasks::model::Token;
use serde_json::{Map, Value, json};

use super::{Entry, Guard, Seen, Step, later, milliseconds, next_entry};
use crate::api::{JobReport, JobStatus, Reply, SessionStatus, Trouble};
use crate::code::{Blame, ErrorCode, Phase};
use crate::model::{
    Checkpoint, CloseReason, EventKind, Mission, MissionStatus, Mode, Proxy, SessionId, Waiting,
    Worker, WorkerStatus,
};
use crate::settings::{ProxyFailures, Settings};

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

    // --- session -------------------------------------------------------------------------------

    fn session_is(
        mut self,
        status: &SessionStatus,
        view: &View,
        settings: &Settings,
    ) -> Option<Step> {
        let was_away = view.worker.unreachable_since.is_some();
        let is_initializing = self.worker.status == WorkerStatus::Initializing;
        match status {
            SessionStatus::Ready if is_initializing => Some(self.session_ready()),
            SessionStatus::Ready => was_away.then(|| self.done()),
            SessionStatus::Stuck => {
                let message = "the worker says stuck";
                Some(self.session_failed(ErrorCode::Error102, None, message, settings))
            }
            SessionStatus::Disconnected => {
                let message = "the worker says disconnected";
                Some(self.session_failed(ErrorCode::Error103, None, message, settings))
            }
            SessionStatus::Terminated => {
                let (code, blame) = (ErrorCode::Error100, Some(Blame::Nobody));
                let message = "the worker says terminated";
                Some(self.session_failed(code, blame, message, settings))
            }
            // A job of someone else's, or of an earlier life: not ours to follow.
            SessionStatus::Scraping => Some(self.close(CloseReason::Error, settings)),
            SessionStatus::Initializing
            | SessionStatus::Connecting
            | SessionStatus::Authenticating
            | SessionStatus::WarmingUp
            | SessionStatus::Other(_) => {
                // One that was ready and is not has begun anew by itself.
                let is_new = is_initializing && self.waits_for(Waiting::Session);
                (is_new || is_initializing && was_away).then(|| self.done())
            }
        }
    }

    fn session_ready(mut self) -> Step {
        let duration = milliseconds(self.worker.session_started_at, self.now);
        let id = self.worker.id.clone();
        self.log(
            EventKind::SessionReady,
            json!({ "worker_id": id, "duration_ms": duration, "proxy_name": self.proxy_name() }),
        );
        self.worker.status = WorkerStatus::Ready;
        self.worker.session_errors = 0;
        self.worker.error_code = None;
        self.worker.error_message = None;
        self.worker.waiting = Some(Waiting::Mission);
        self.done()
    }

    /// The session failed: it is closed, and its proxy blamed where the code or the answer says so.
    fn session_failed(
        mut self,
        code: ErrorCode,
        blame: Option<Blame>,
        message: &str,
        settings: &Settings,
    ) -> Step {
        let blame = blame.unwrap_or_else(|| code.blame());
        self.log(
            EventKind::SessionFailed,
            json!({
                "worker_id": self.worker.id, "error_code": code, "error_message": message,
                "blame": blame, "proxy_name": self.proxy_name(),
            }),
        );
        self.blame(blame, settings);
        self.worker.error_code = Some(code);
        self.worker.error_message = Some(message.to_owned());
        if self.mission.is_some() && code == ErrorCode::Error502 {
            // Nothing runs for it yet, and another worker may take it.
            self.put_back();
            let wait = settings.timing.backoff_after(self.worker.session_errors + 1);
            self.worker.session_errors += 1;
            self.worker.next_attempt_at = Some(later(self.now, wait));
        } else if self.mission.is_some() {
            self.retry_or_fail(code, message, settings);
        } else {
            self.worker.session_errors += 1;
            let errors = self.worker.session_errors;
            if errors > settings.adjustable.max_retries {
                self.log(
                    EventKind::SessionFailed,
                    json!({
                        "worker_id": self.worker.id, "error_code": ErrorCode::Error104,
                        "error_message": format!("{errors} in a row, the last: {code}"),
                        "proxy_name": self.proxy_name(),
                    }),
                );
                self.worker.error_code = Some(ErrorCode::Error104);
            }
            let is_urgent = errors <= settings.adjustable.max_retries && blame == Blame::Proxy;
            let wait = settings.timing.backoff_after(errors);
            self.worker.next_attempt_at = (!is_urgent).then(|| later(self.now, wait));
        }
        self.close(CloseReason::Error, settings)
    }

    fn blame(&mut self, blame: Blame, settings: &Settings) {
        if blame == Blame::Proxy
            && let Some(proxy) = &self.proxy
        {
            self.step.blamed = Some((proxy.id.clone(), settings.timing.max_proxy_failures));
        }
    }

    /// The session is to end; it has ended when the worker says so, or when its time is up.
    fn close(mut self, reason: CloseReason, settings: &Settings) -> Step {
        let by = later(self.now, settings.timing.close_patience);
        self.worker.close_reason = Some(reason);
        self.worker.close_by = Some(by);
        self.worker.stop_by = None;
        self.worker.waiting = Some(Waiting::SessionEnd);
        let is_scraping = self.worker.status == WorkerStatus::Scraping;
        if reason == CloseReason::Error || is_scraping && reason == CloseReason::Canceled {
            self.worker.status = WorkerStatus::Error;
        }
        self.done()
    }

    fn closed(mut self, is_confirmed: bool) -> Step {
        let has_session = self.worker.session_id.is_some();
        if let Some(reason) = self.worker.close_reason.take()
            && has_session
        {
            let mut details = json!({ "worker_id": self.worker.id, "reason": reason });
            if !is_confirmed {
                details["confirmed"] = json!(false);
            }
            if let Some(name) = self.proxy_name() {
                details["proxy_name"] = json!(name);
            }
            self.log(EventKind::SessionTerminated, details);
        }
        // Only now does nothing run any more for a mission that names its job still.
        let is_stopped = self.worker.status == WorkerStatus::Scraping;
        let has_job = |(_, mission): &(Guard, Mission)| mission.worker_job_id.is_some();
        if is_stopped || self.mission.as_ref().is_some_and(has_job) {
            self.put_back();
        }
        if self.mission.is_none() {
            self.worker.current_mission_id = None;
        }
        self.worker.status = WorkerStatus::Idle;
        self.worker.session_count = 0;
        self.worker.session_id = None;
        self.worker.session_started_at = None;
        self.worker.session_accepted = false;
        self.worker.close_by = None;
        self.worker.stop_by = None;
        self.worker.unreachable_since = None;
        self.worker.unclosed = !is_confirmed;
        self.worker.waiting = None;
        self.step.releases_proxy = true;
        self.done()
    }

    // --- scrape --------------------------------------------------------------------------------

    /// A session stands again for the mission that lost its last one.
    fn resume(mut self) -> Step {
        let name = self.proxy_name();
        self.worker.status = WorkerStatus::Scraping;
        self.worker.waiting = Some(Waiting::Job);
        if let Some((_, mission)) = &mut self.mission {
            mission.proxy_used = name;
            mission.attempts += 1;
            mission.phase_started_at = Some(self.now);
            mission.waiting = Some(Waiting::Job);
        }
        self.done()
    }

    fn started(mut self, job_id: &str) -> Step {
        let Some((_, mission)) = &mut self.mission else { return self.done() };
        mission.worker_job_id = Some(job_id.to_owned());
        mission.phase_started_at = Some(self.now);
        mission.waiting = Some(Waiting::Job);
        let config = json!({
            "date_start": mission.date_start, "date_end": mission.date_end,
            "media_type": mission.media_type, "languages": mission.languages,
        });
        let id = mission.id.clone();
        self.worker.waiting = Some(Waiting::Job);
        self.log(
            EventKind::ScrapeStarted,
            json!({
                "worker_job_id": job_id, "mission_id": id, "mission_config": config,
                "worker_id": self.worker.id,
            }),
        );
        self.done()
    }

    fn job_is(
        mut self,
        job: &JobReport,
        session: Option<&SessionStatus>,
        view: &View,
        settings: &Settings,
    ) -> Option<Step> {
        if self.worker.stop_by.is_some() || self.mission.is_none() {
            return self.stopping_job_is(job, Session::of(session), settings);
        }
        let was_away = view.worker.unreachable_since.is_some();
        let session_left = Session::of(session);
        let message = |what: &str| job.message.clone().unwrap_or_else(|| what.to_owned());
        match &job.status {
            JobStatus::Completed => Some(self.scraped(job, settings)),
            JobStatus::Empty => Some(self.empty(settings)),
            JobStatus::Failed => {
                let code = job.error_code.unwrap_or(ErrorCode::Error200);
                let text = message("the scrape job failed");
                if let Some(blame) = job.blame {
                    self.blame(blame, settings);
                }
                Some(self.scrape_failed(code, text, settings, session_left))
            }
            JobStatus::Cancelled => {
                let text = message("cancelled, and not by us");
                Some(self.scrape_failed(ErrorCode::Error201, text, settings, session_left))
            }
            // It must not go on beside the next one.
            JobStatus::Paused => {
                let text = message("the scrape job is paused");
                Some(self.scrape_failed(ErrorCode::Error200, text, settings, Session::Lost))
            }
            JobStatus::Pending | JobStatus::Queued | JobStatus::Running | JobStatus::Other(_) => {
                match session {
                    Some(SessionStatus::Stuck) => {
                        let message = "stuck while scraping";
                        Some(self.session_failed(ErrorCode::Error102, None, message, settings))
                    }
                    Some(SessionStatus::Disconnected) => {
                        let message = "disconnected while scraping";
                        Some(self.session_failed(ErrorCode::Error103, None, message, settings))
                    }
                    Some(SessionStatus::Terminated) => {
                        let (code, blame) = (ErrorCode::Error100, Some(Blame::Nobody));
                        let message = "terminated while scraping";
                        Some(self.session_failed(code, blame, message, settings))
                    }
                    _ => {
                        let told = self.tell_progress(job, settings);
                        let renamed = self.waits_for(Waiting::Job);
                        (told || was_away || renamed).then(|| self.done())
                    }
                }
            }
        }
    }

    fn tell_progress(&mut self, job: &JobReport, settings: &Settings) -> bool {
        let Some((_, mission)) = &mut self.mission else { return false };
        let is_due = mission
            .told_at
            .is_none_or(|told| self.now >= later(told, settings.timing.progress_every));
        let Some(count) = job.ads_count.filter(|count| Some(*count) != mission.ads_count) else {
            return false;
        };
        if !is_due {
            return false;
        }
        mission.ads_count = Some(count);
        mission.told_at = Some(self.now);
        let job_id = mission.worker_job_id.clone();
        self.log(
            EventKind::ScrapeProgress,
            json!({
                "worker_job_id": job_id, "ads_count": count, "progress_pct": job.progress_pct,
                "worker_id": self.worker.id,
            }),
        );
        true
    }

    /// The job is done: its data is for the writer, and the worker is free.
    fn scraped(mut self, job: &JobReport, settings: &Settings) -> Step {
        let Some((_, mission)) = &mut self.mission else { return self.done() };
        let job_id = mission.worker_job_id.clone().unwrap_or_default();
        let duration = milliseconds(mission.phase_started_at, self.now);
        mission.checkpoint = Some(Checkpoint::Armazenamento);
        mission.worker_data_url =
            self.worker.storage_domain.as_deref().map(|domain| data_url(domain, &job_id));
        mission.ads_count = job.ads_count.or(mission.ads_count);
        mission.retry_count = 0;
        mission.error_code = None;
        mission.error_message = None;
        mission.told_at = None;
        mission.phase_started_at = None;
        mission.waiting = Some(Waiting::Writer);
        let count = mission.ads_count;
        self.log(
            EventKind::ScrapeCompleted,
            json!({
                "worker_job_id": job_id, "ads_count": count, "duration_ms": duration,
                "worker_id": self.worker.id,
            }),
        );
        self.free(settings)
    }

    fn empty(mut self, settings: &Settings) -> Step {
        let Some((_, mission)) = &mut self.mission else { return self.done() };
        let job_id = mission.worker_job_id.clone();
        let total = milliseconds(mission.queued_at, self.now);
        mission.ads_count = Some(0);
        super::mission::end(mission, MissionStatus::Completed, self.now);
        mission.checkpoint = Some(Checkpoint::Finalizado);
        let id = self.worker.id.clone();
        self.log(
            EventKind::ScrapeEmpty,
            json!({ "worker_job_id": job_id, "worker_id": id, "ads_count": 0 }),
        );
        self.log(
            EventKind::MissionCompleted,
            json!({ "total_duration_ms": total, "ads_count": 0, "success_count": 0, "failed_count": 0 }),
        );
        self.free(settings)
    }

    fn free(mut self, settings: &Settings) -> Step {
        self.worker.status = WorkerStatus::Ready;
        self.worker.session_count += 1;
        self.worker.current_mission_id = None;
        self.worker.waiting = Some(Waiting::Mission);
        if settings.adjustable.proxy_failures == ProxyFailures::Consecutive {
            self.step.praised = self.proxy.as_ref().map(|proxy| proxy.id.clone());
        }
        self.done()
    }

    /// The job failed: it is sent again on the session that stands, or on a new one.
    fn scrape_failed(
        mut self,
        code: ErrorCode,
        message: String,
        settings: &Settings,
        session: Session,
    ) -> Step {
        let job_id = self.mission.as_ref().and_then(|(_, mission)| mission.worker_job_id.clone());
        self.log(
            EventKind::ScrapeFailed,
            json!({
                "worker_job_id": job_id, "error_code": code, "error_message": message,
                "worker_id": self.worker.id, "proxy_name": self.proxy_name(),
            }),
        );
        let goes_on = self.retry_or_fail(code, &message, settings);
        if goes_on && session == Session::Ready && code.phase() == Phase::Scrape {
            if let Some((_, mission)) = &mut self.mission {
                mission.attempts += 1;
                mission.phase_started_at = Some(self.now);
                mission.waiting = Some(Waiting::Job);
            }
            return self.done();
        }
        self.worker.error_code = Some(code);
        self.worker.error_message = Some(message);
        self.close(CloseReason::Error, settings)
    }

    /// Spends a retry of the mission, or fails it; says whether it goes on.
    fn retry_or_fail(&mut self, code: ErrorCode, message: &str, settings: &Settings) -> bool {
        let Some((_, mission)) = &mut self.mission else { return false };
        mission.worker_job_id = None;
        mission.error_code = Some(code);
        mission.error_message = Some(message.to_owned());
        if code.is_retried() && mission.retry_count < settings.adjustable.max_retries {
            mission.retry_count += 1;
            mission.waiting = Some(Waiting::Session);
            let attempt = mission.retry_count;
            self.log(
                EventKind::RetryTriggered,
                json!({ "attempt": attempt, "error_code": code, "phase": code.phase() }),
            );
            return true;
        }
        let last = if code.is_retried() { code.when_exhausted() } else { code };
        mission.error_code = Some(last);
        let retries = mission.retry_count;
        super::mission::end(mission, MissionStatus::Failed, self.now);
        self.log(
            EventKind::MissionFailed,
            json!({
                "error_code": last, "error_message": message, "retry_count": retries,
                "cause": code, "worker_id": self.worker.id,
            }),
        );
        self.worker.current_mission_id = None;
        false
    }

    // --- ends that nobody wished for -----------------------------------------------------------

    /// A job that was told to stop: by a person, by `stop`, or because it took too long.
    fn stopping_job_is(
        self,
        job: &JobReport,
        session: Session,
        settings: &Settings,
    ) -> Option<Step> {
        match job.status {
            JobStatus::Pending | JobStatus::Queued | JobStatus::Running | JobStatus::Other(_) => {
                None
            }
            JobStatus::Paused
            | JobStatus::Completed
            | JobStatus::Empty
            | JobStatus::Failed
            | JobStatus::Cancelled => Some(self.stopped(session, settings)),
        }
    }

    fn stopping(mut self, settings: &Settings) -> Step {
        self.worker.stop_by = Some(later(self.now, settings.timing.stop_patience));
        self.waits_for(Waiting::JobStop);
        self.done()
    }

    fn stopped(mut self, session: Session, settings: &Settings) -> Step {
        self.worker.stop_by = None;
        if self.has_timed_out(settings) {
            let message = format!("not done within {:?}", settings.timing.timeout_job);
            return self.scrape_failed(ErrorCode::Error202, message, settings, session);
        }
        if self.mission.is_some() {
            // `stop`: the mission goes back, and the session is closed next.
            self.put_back();
        }
        self.worker.status = WorkerStatus::Ready;
        self.worker.current_mission_id = None;
        self.worker.waiting = Some(Waiting::Mission);
        self.done()
    }

    /// The job that was told to stop has not: its session ends it.
    fn gave_up(mut self, message: String, settings: &Settings) -> Step {
        if self.has_timed_out(settings) {
            return self.scrape_failed(ErrorCode::Error202, message, settings, Session::Lost);
        }
        self.worker.error_message = Some(message);
        self.close(CloseReason::Error, settings)
    }

    fn has_timed_out(&self, settings: &Settings) -> bool {
        let started = self.mission.as_ref().and_then(|(_, mission)| mission.phase_started_at);
        started.is_some_and(|time| self.now >= later(time, settings.timing.timeout_job))
    }

    /// The worker does not know the job: the mission goes back to the queue when the session, which
    /// may have another, is closed.
    fn job_vanished(mut self, view: &View, settings: &Settings) -> Step {
        if self.mission.is_none() || self.worker.stop_by.is_some() {
            return self.stopped(Session::Lost, settings);
        }
        let job_id = view.mission.as_ref().and_then(|mission| mission.worker_job_id.clone());
        self.worker.error_message = job_id.map(|id| format!("it does not know the job {id}"));
        self.close(CloseReason::Error, settings)
    }

    fn worker_gone(mut self, message: &str, settings: &Settings) -> Step {
        self.worker.error_code = Some(ErrorCode::Error502);
        self.worker.error_message = Some(message.to_owned());
        self.log(
            EventKind::SessionFailed,
            json!({
                "worker_id": self.worker.id, "error_code": ErrorCode::Error502,
                "error_message": message, "blame": Blame::Worker, "proxy_name": self.proxy_name(),
            }),
        );
        self.worker.session_errors += 1;
        let wait = settings.timing.backoff_after(self.worker.session_errors);
        self.worker.next_attempt_at = Some(later(self.now, wait));
        self.close(CloseReason::Error, settings)
    }

    fn requeue(mut self) -> Step {
        self.put_back();
        self.done()
    }

    fn drop_mission(mut self) -> Step {
        self.worker.current_mission_id = None;
        self.done()
    }

    /// The mission goes back to where it was in the queue.
    fn put_back(&mut self) {
        if let Some((_, mission)) = &mut self.mission {
            super::mission::back_to_the_queue(mission);
            self.worker.current_mission_id = None;
            self.log(EventKind::MissionQueued, json!({ "queued_by": "system" }));
        }
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
