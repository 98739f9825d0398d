//! A worker, as the specification of the Worker API describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::ads::Filters;
use super::ask::FleetAnswer;
use super::job::{Job, Order, Phase};
use super::route::Route;
use super::session::{Break, Now, Session};
use super::state::{Answered, Arrival, State, WORKER, either};
use crate::dice::Dice;

#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) key: Option<String>,
    pub(super) requests: u64,
    pub(super) sessions: u64,
    pub(super) starts: u64,
    pub(super) asked_at_once: u64,
    pub(super) session: Option<Session>,
    /// The idempotency keys of all sessions that were begun.
    session_keys: BTreeSet<String>,
    /// The jobs that were begun under each key.
    job_keys: BTreeMap<String, usize>,
}

impl Worker {
    pub(super) fn new(key: Option<String>) -> Self {
        Self { key, ..Self::default() }
    }
}

/// What `POST /session` asks for.
struct Wanted {
    proxy: String,
    force_refresh: bool,
}

impl Wanted {
    fn parse(body: &Value) -> Result<Self, String> {
        let proxy = body.get("proxy").ok_or("proxy is missing")?;
        let server =
            proxy.get("server").and_then(Value::as_str).filter(|server| !server.is_empty());
        let server = server.ok_or("proxy.server is missing")?;
        let proxy = match proxy.get("username").and_then(Value::as_str) {
            Some(user) => format!("{user}@{server}"),
            None => server.to_owned(),
        };
        let force_refresh = body.get("force_refresh").and_then(Value::as_bool).unwrap_or(false);
        Ok(Self { proxy, force_refresh })
    }
}

impl State {
    pub(super) fn ask_worker(
        &mut self,
        arrival: Arrival<'_>,
        route: &Route<'_>,
        dice: &mut Dice,
    ) -> FleetAnswer {
        let key = self.workers.get(arrival.server).and_then(|worker| worker.key.as_deref());
        // The results lie on a storage that asks for no key.
        if !matches!(route, Route::Results(_))
            && let Err(refusal) = arrival.admit(key)
        {
            return refusal;
        }
        match route {
            Route::OpenSession => either(self.open_session(arrival)),
            Route::SessionStatus => self.session_status(arrival),
            Route::CloseSession => self.close_session(arrival, dice),
            Route::StartScrape => either(self.start_scrape(arrival)),
            Route::Job(id) => self.job(arrival, id),
            Route::CancelJob(id) => self.cancel_job(arrival, id),
            Route::Results(id) => self.results(arrival, id),
            Route::WrongMethod => FleetAnswer::error(405, "not by this method"),
            Route::Nowhere | Route::Process | Route::Write(_) | Route::Health => {
                FleetAnswer::error(404, "a worker has no such path")
            }
        }
    }

    fn open_session(&mut self, arrival: Arrival<'_>) -> Answered {
        let Wanted { proxy, force_refresh } = arrival.read(Wanted::parse)?;
        let Arrival { request, server, now } = arrival;
        let Some(worker) = self.workers.get_mut(server) else { return Ok(gone()) };
        if request.idempotency_key.is_some_and(|key| worker.session_keys.contains(key)) {
            return Ok(FleetAnswer::done());
        }
        if worker.session.is_some() && !force_refresh {
            return Ok(FleetAnswer::done());
        }
        worker.sessions += 1;
        let number = worker.sessions;
        worker.session_keys.extend(request.idempotency_key.map(str::to_owned));
        self.end_session(server, now);
        let proxy: Arc<str> = proxy.into();
        self.check_proxy(&proxy, server, now);
        let mut dice = Dice::of(&[self.seed, WORKER, server as u64, number, 0x5E55]);
        let warm_up = self.config.session.draw(&mut dice);
        let faults = self.faults.clone();
        let session = Session::open(proxy, now, warm_up, &faults, self.seed, &mut dice);
        if let Some(worker) = self.workers.get_mut(server) {
            worker.session = Some(session);
        }
        self.ledger.sessions += 1;
        Ok(FleetAnswer::done())
    }

    /// Notes that a worker is behind a proxy, and who else is.
    fn check_proxy(&mut self, proxy: &Arc<str>, server: usize, now: Duration) {
        let workers = &self.workers;
        let behind = self.proxies.entry(proxy.clone()).or_default();
        let session_of = |other: usize| {
            let session = workers.get(other)?.session.as_ref()?;
            Some(session).filter(|session| session.proxy == *proxy && session.is_open(now))
        };
        behind.retain(|other| *other != server && session_of(*other).is_some());
        for other in &*behind {
            let is_excused = session_of(*other).is_some_and(|session| session.close_failed);
            let what = format!(
                "a session of worker {server} was opened behind {proxy}, where one of worker {other} is open"
            );
            self.ledger.violated(now, is_excused, &what);
        }
        behind.push(server);
    }

    /// The session of a worker ends, and its job with it. Says whether there was one.
    fn end_session(&mut self, server: usize, now: Duration) -> bool {
        let Some(session) = self.workers.get_mut(server).and_then(|worker| worker.session.take())
        else {
            return false;
        };
        if let Some(behind) = self.proxies.get_mut(&session.proxy) {
            behind.retain(|other| *other != server);
        }
        if let Some(job) = session.job.and_then(|number| self.jobs.get_mut(number)) {
            job.end(now, Phase::Cancelled);
        }
        true
    }

    pub(super) fn close_failed(&mut self, server: usize) {
        let session = self.workers.get_mut(server).and_then(|worker| worker.session.as_mut());
        if let Some(session) = session {
            session.close_failed = true;
        }
    }

    /// What a worker's session says, and whether it has a job that is not over.
    pub(super) fn session_now(
        &self,
        server: usize,
        now: Duration,
    ) -> Option<(&Session, Now, bool)> {
        let session = self.workers.get(server)?.session.as_ref()?;
        let job = session.job.and_then(|number| self.jobs.get(number));
        Some((session, session.now(now), job.is_some_and(|job| !job.is_over(now))))
    }

    fn session_status(&self, arrival: Arrival<'_>) -> FleetAnswer {
        match self.session_now(arrival.server, arrival.now) {
            Some((_, now, is_scraping)) => {
                let word = now.word(is_scraping);
                FleetAnswer::json(200, format!(r#"{{"status":"{word}"}}"#))
            }
            None => FleetAnswer::error(404, "there is no session"),
        }
    }

    fn close_session(&mut self, arrival: Arrival<'_>, dice: &mut Dice) -> FleetAnswer {
        let Arrival { server, now, .. } = arrival;
        if dice.chance(self.faults.close_fails) {
            self.close_failed(server);
            return FleetAnswer::error(500, "the browser does not close");
        }
        if self.end_session(server, now) {
            return FleetAnswer::done();
        }
        FleetAnswer::error(404, "there is no session")
    }

    fn start_scrape(&mut self, arrival: Arrival<'_>) -> Answered {
        let filters = arrival.read(Filters::parse)?;
        let Arrival { request, server, now } = arrival;
        let key = request.idempotency_key;
        let Some(worker) = self.workers.get(server) else { return Ok(gone()) };
        if let Some(number) = key.and_then(|key| worker.job_keys.get(key)) {
            return Ok(self.started(*number));
        }
        self.may_start(server, now, key)?;
        let mission: Option<Arc<str>> = key.map(|key| {
            let name = key.rsplit_once(':').map_or(key, |(mission, _)| mission);
            self.ledger
                .missions
                .get_key_value(name)
                .map_or_else(|| name.into(), |(name, _)| name.clone())
        });
        if let Some(mission) = &mission {
            self.check_mission(mission, server, now);
        }
        let number = self.begin(server, now, filters, mission.clone());
        if let Some(key) = key
            && let Some(worker) = self.workers.get_mut(server)
        {
            worker.job_keys.insert(key.to_owned(), number);
        }
        if let Some(mission) = mission {
            let mission = self.ledger.missions.entry(mission).or_default();
            mission.jobs.push(number);
            mission.live.push(number);
        }
        Ok(self.started(number))
    }

    fn started(&self, number: usize) -> FleetAnswer {
        FleetAnswer::json(200, format!(r#"{{"job_id":"{}"}}"#, self.ids.id(number)))
    }

    /// Whether the worker's session can take a job. What breaks by itself is nobody's fault.
    fn may_start(
        &mut self,
        server: usize,
        now: Duration,
        key: Option<&str>,
    ) -> Result<(), FleetAnswer> {
        let unready = |reason: &str| Err(FleetAnswer::error(self.config.unready, reason));
        let key = key.unwrap_or("no key");
        let (violation, answer) = match self.session_now(server, now) {
            Some((_, Now::Ready, false)) => return Ok(()),
            Some((_, _, true)) => ("a job runs", unready("a job runs on this session")),
            Some((_, Now::Broken(_), false)) => return unready("the session is broken"),
            Some((_, Now::WarmingUp(_), false)) => {
                ("the session is not ready", unready("the session is not ready"))
            }
            None => ("there is no session", unready("there is no session")),
        };
        let is_second = violation == "a job runs";
        let what = format!("worker {server} was asked to scrape for {key} while {violation}");
        self.ledger.violated(now, false, &what);
        if is_second && let Some(worker) = self.workers.get_mut(server) {
            worker.asked_at_once = worker.asked_at_once.max(2);
        }
        answer
    }

    /// Notes where else a mission runs that is about to start.
    fn check_mission(&mut self, mission: &Arc<str>, server: usize, now: Duration) {
        let Some(mut live) =
            self.ledger.missions.get_mut(mission).map(|mission| std::mem::take(&mut mission.live))
        else {
            return;
        };
        live.retain(|number| self.jobs.get(*number).is_some_and(|job| !job.is_over(now)));
        for number in &live {
            let Some(other) = self.jobs.get(*number).map(|job| job.worker) else { continue };
            let session = self.workers.get(other).and_then(|worker| worker.session.as_ref());
            let is_excused = session.is_some_and(|session| session.close_failed);
            let id = self.ids.id(*number);
            let what = format!(
                "the mission {mission} was started on worker {server} while its job {id} runs on worker {other}"
            );
            self.ledger.violated(now, is_excused, &what);
        }
        if let Some(mission) = self.ledger.missions.get_mut(mission) {
            mission.live = live;
        }
    }

    fn begin(
        &mut self,
        server: usize,
        now: Duration,
        filters: Filters,
        mission: Option<Arc<str>>,
    ) -> usize {
        let number = self.jobs.len();
        let Some(worker) = self.workers.get_mut(server) else { return number };
        worker.starts += 1;
        worker.asked_at_once = worker.asked_at_once.max(1);
        let mut dice = Dice::of(&[self.seed, WORKER, server as u64, worker.starts, 0x10B5]);
        let length = self.config.job.draw(&mut dice);
        let count = self.library.count(&filters);
        let tells_progress = Dice::of(&[self.seed, server as u64, 0x9C7]).chance(0.5);
        let order = Order { worker: server, mission, filters, count, tells_progress };
        let mut job = Job::start(order, now, length, &self.faults, &mut dice);
        let breaks = worker.session.as_mut().and_then(|session| session.take(number, now, length));
        if let Some((at, how)) = breaks {
            job.breaks(at, how, &mut dice);
        }
        self.jobs.push(job);
        number
    }

    /// A job that this worker knows.
    fn known(&self, arrival: Arrival<'_>, id: &str) -> Option<(usize, &Job)> {
        let number = self.ids.number(id)?;
        let job = self.jobs.get(number).filter(|job| job.worker == arrival.server)?;
        (job.phase(arrival.now) != Phase::Vanished).then_some((number, job))
    }

    fn job(&self, arrival: Arrival<'_>, id: &str) -> FleetAnswer {
        let Some((_, job)) = self.known(arrival, id) else { return no_job() };
        let mut text = job.report(id, arrival.now);
        if self.config.inline_data && job.phase(arrival.now) == Phase::Completed {
            let data = serde_json::to_string(&self.library.truth(&job.filters)).unwrap_or_default();
            let _never_fails = write!(text, r#","data":{data}}}"#);
        } else {
            text.push_str(r#","data":[]}"#);
        }
        FleetAnswer::json(200, text)
    }

    fn cancel_job(&mut self, arrival: Arrival<'_>, id: &str) -> FleetAnswer {
        let Some((number, _)) = self.known(arrival, id) else { return no_job() };
        if let Some(job) = self.jobs.get_mut(number).filter(|job| !job.ignores_cancel) {
            job.end(arrival.now, Phase::Cancelled);
        }
        FleetAnswer::done()
    }

    fn results(&self, arrival: Arrival<'_>, id: &str) -> FleetAnswer {
        let job = self.known(arrival, id).map(|(_, job)| job);
        let Some(job) = job.filter(|job| job.phase(arrival.now) == Phase::Completed) else {
            return FleetAnswer::error(404, "there are no such results");
        };
        let ads = self.library.truth(&job.filters);
        let body = serde_json::to_string(&ads).unwrap_or_default();
        FleetAnswer::json(200, format!(r#"{{"ads":{body}}}"#))
    }

    /// Whether a session stands that nobody has closed.
    pub(super) fn has_open_session(&self, server: usize, now: Duration) -> bool {
        let now = self.session_now(server, now).map(|(_, now, _)| now);
        now.is_some_and(|now| now != Now::Broken(Break::Terminated))
    }
}

fn no_job() -> FleetAnswer {
    FleetAnswer::error(404, "there is no such job")
}

fn gone() -> FleetAnswer {
    FleetAnswer::error(404, "there is no such worker")
}
