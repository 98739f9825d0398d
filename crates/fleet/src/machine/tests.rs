//! Every row of the seed's tables, every code, and every decision, by its name. The rows go through
//! a store in memory, so that what is asserted is what would be stored.

#![expect(clippy::needless_pass_by_value, reason = "answers read better as they are written")]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lavra_tasks::model::ProcessId;
use serde_json::json;
use uuid::Uuid;

use super::worker::{Ask, Todo, View};
use super::{mission_may, worker, worker_may, writer};
use crate::api::{JobReport, JobStatus, Reply, SessionStatus, Trouble, WriteReport, WriteStatus};
use crate::code::{Blame, ErrorCode, Phase};
use crate::machine::mission::{Wish, refusal};
use crate::memory::Memory;
use crate::model::{
    Checkpoint, CloseReason, EventKind, LogEntry, MediaType, Mission, MissionId, MissionStatus,
    Mode, Proxy, SessionId, Waiting, Worker, WorkerId, WorkerStatus, Writer,
};
use crate::settings::{Adjustable, ProxyFailures, Settings};
use crate::store::{
    Assigned, Control, Edit, Filter, NewMission, NewProxy, NewWorker, NewWriter, Opened, Opening,
    Store, Thing,
};

const W: &str = "W1";

/// One worker with its rows, a clock that is turned by hand, and what it is asked.
struct Scene {
    memory: Memory,
    settings: Settings,
    now: Timestamp,
    token: i64,
    mission: MissionId,
    /// Questions of the machine, in their order.
    asked: Vec<Ask>,
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

impl Scene {
    /// A worker, three proxies, a writer and a mission in the queue, with a run.
    fn new() -> Self {
        let now: Timestamp = "2025-01-15T10:00:01Z".parse().unwrap();
        let memory = Memory::new(now);
        let mission = MissionId::from("m1");
        ready(async {
            let worker = NewWorker {
                id: W.into(),
                name: "worker-1".into(),
                url: "http://w".into(),
                api_key: "k".into(),
                storage_domain: Some("storage.meusite.com".into()),
                active: true,
            };
            memory.add_worker(worker).await.unwrap();
            for name in ["proxy-br-1", "proxy-br-2", "proxy-br-3"] {
                let proxy = NewProxy {
                    id: name.into(),
                    name: name.into(),
                    host: "p".into(),
                    port: Some(8080),
                    username: None,
                    password: None,
                    active: true,
                };
                memory.add_proxy(proxy).await.unwrap();
            }
            let writer = NewWriter {
                id: "writer-1".into(),
                name: "writer-1".into(),
                url: "http://wr".into(),
                api_key: "k".into(),
                active: true,
            };
            memory.add_writer(writer).await.unwrap();
            let new = NewMission {
                id: mission.clone(),
                date_start: "2025-01-15".parse().unwrap(),
                date_end: "2025-01-15".parse().unwrap(),
                media_type: MediaType::Video,
                languages: vec!["pt".into()],
            };
            memory.add_missions(vec![new], false).await.unwrap();
            memory.wish(&Filter::default(), Wish::Queue, "user").await.unwrap();
            memory.set_control(Control { mode: Mode::Run, task_id: None }).await.unwrap();
        });
        let mut scene =
            Self { memory, settings: Settings::default(), now, token: 0, mission, asked: vec![] };
        scene.lease();
        scene
    }

    fn lease(&mut self) {
        let process = ProcessId(Uuid::from_u128(u128::from(self.token.unsigned_abs()) + 1));
        // Whoever had it before is dead.
        ready(self.memory.leave(ProcessId(Uuid::from_u128(1)))).unwrap();
        let leased = ready(self.memory.lease(process, Duration::ZERO)).unwrap();
        self.token = leased.workers[0].1;
    }

    fn view(&self) -> View {
        ready(self.memory.view(&W.into(), self.token)).unwrap().unwrap()
    }

    fn worker(&self) -> Worker {
        self.view().worker
    }

    fn mission(&self) -> Mission {
        self.memory.tables().missions[&self.mission].clone()
    }

    fn proxy(&self, name: &str) -> Proxy {
        self.memory.tables().proxies[&name.into()].clone()
    }

    fn used(&self) -> Option<Proxy> {
        let tables = self.memory.tables();
        tables.proxies.values().find(|proxy| proxy.in_use_by_worker_id.is_some()).cloned()
    }

    fn log(&self) -> Vec<LogEntry> {
        self.memory.tables().logs.clone()
    }

    fn events(&self) -> Vec<EventKind> {
        self.log().iter().map(|entry| entry.event).collect()
    }

    fn last(&self, event: EventKind) -> LogEntry {
        let log = self.log();
        let found = log.iter().rev().find(|entry| entry.event == event);
        found.unwrap_or_else(|| panic!("no {event} in {:?}", self.events())).clone()
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
        self.memory.clock().set(self.now);
    }

    fn mode(&self, mode: Mode) {
        ready(self.memory.set_control(Control { mode, task_id: None })).unwrap();
    }

    fn wish(&self, wish: Wish) -> usize {
        ready(self.memory.wish(&Filter::default(), wish, "user")).unwrap().len()
    }

    fn todo(&self) -> Todo {
        worker::todo(&self.view(), &self.settings, self.now)
    }

    /// Writes a step; every transition in it must be one that the tables allow.
    fn write(&self, step: super::Step) {
        let (worker, mission) = (self.view().worker, self.mission());
        let after = step.worker.as_ref().map(|(_, worker)| worker.status);
        if let Some(status) = after.filter(|status| *status != worker.status) {
            assert!(worker_may(worker.status, status), "{} → {status}", worker.status);
        }
        let after = step.mission.as_ref().map(|(_, mission)| mission.status);
        if let Some(status) = after {
            assert!(mission_may(mission.status, status), "{} → {status}", mission.status);
        }
        assert_eq!(ready(self.memory.apply(vec![step])).unwrap(), [true]);
    }

    /// Goes on until the worker is to be asked something, or has nothing to do.
    fn settle(&mut self) -> Todo {
        for _ in 0..20 {
            match self.todo() {
                Todo::Write(step) => self.write(*step),
                Todo::Open => {
                    let session = SessionId(format!("s{}", self.log().len()));
                    let opening = Opening { worker: W.into(), token: self.token, session, luck: 0 };
                    if !matches!(ready(self.memory.open(opening)).unwrap(), Opened::With(_)) {
                        return Todo::Open;
                    }
                }
                Todo::Assign => {
                    let assigned = ready(self.memory.assign(&W.into(), self.token)).unwrap();
                    assert!(matches!(assigned, Assigned::With(_)), "{assigned:?}");
                }
                other => return other,
            }
        }
        panic!("it never settles: {:?}", self.todo());
    }

    /// The next question, whatever it is, is answered so.
    fn answer(&mut self, reply: Reply) -> &mut Self {
        let ask = match self.settle() {
            Todo::Ask(ask, _) => ask,
            other => panic!("nothing is asked: {other:?}"),
        };
        self.asked.push(ask);
        if let Some(step) = worker::after(&self.view(), ask, &reply, &self.settings, self.now) {
            self.write(step);
        }
        self
    }

    fn session(&mut self, status: SessionStatus) -> &mut Self {
        self.answer(Reply::Session(status))
    }

    /// A session that stands, with the mission assigned and its job under way.
    fn scraping() -> Self {
        let mut scene = Self::new();
        scene.goes_scraping();
        scene
    }

    fn goes_scraping(&mut self) {
        self.pass(4);
        self.answer(Reply::Done);
        self.pass(40);
        self.session(SessionStatus::Ready);
        self.pass(1);
        self.settle();
        self.pass(1);
        self.answer(Reply::Started { job_id: "scrape_abc123".into() });
        assert_eq!(self.worker().status, WorkerStatus::Scraping);
    }

    fn job(&mut self, status: JobStatus, session: SessionStatus) -> &mut Self {
        let job = JobReport { ads_count: Some(1500), ..report(status) };
        self.answer(Reply::Job { job, session: Some(session) })
    }

    /// The data is there, and the mission is leased to be stored.
    fn storing() -> Self {
        let mut scene = Self::scraping();
        scene.pass(883);
        scene.job(JobStatus::Completed, SessionStatus::Ready);
        scene.lease();
        scene
    }

    fn writers(&self) -> Vec<Writer> {
        ready(self.memory.writers()).unwrap()
    }

    fn write_todo(&self) -> writer::Todo {
        writer::todo(&self.mission(), &self.writers(), "550e8400", &self.settings, self.now)
    }

    fn write_settled(&mut self) -> writer::Todo {
        for _ in 0..10 {
            match self.write_todo() {
                writer::Todo::Write(step) => self.write(*step),
                other => return other,
            }
        }
        panic!("it never settles");
    }

    fn write_answer(&mut self, reply: Reply) -> writer::Ask {
        let ask = match self.write_settled() {
            writer::Todo::Ask(ask, ..) => ask,
            other => panic!("nothing is asked: {other:?}"),
        };
        if let Some(step) = writer::after(&self.mission(), ask, &reply, &self.settings, self.now) {
            self.write(step);
        }
        ask
    }

    fn accepted(&mut self) {
        assert_eq!(self.write_answer(Reply::Accepted { job_id: None }), writer::Ask::Process);
    }
}

fn report(status: JobStatus) -> JobReport {
    JobReport {
        status,
        ads_count: None,
        progress_pct: None,
        error_code: None,
        blame: None,
        message: None,
    }
}

fn written(status: WriteStatus, processed: i64) -> Reply {
    Reply::Write(WriteReport {
        status,
        total: Some(1500),
        processed: Some(processed),
        success_count: Some(1487),
        failed_count: Some(13),
        failed_items: (0..200).map(|index| json!({ "index": index })).collect(),
        error_code: None,
        message: None,
    })
}

fn away() -> Reply {
    let (code, message) = (ErrorCode::Error502, "connection refused".into());
    Reply::Trouble(Trouble::Away { code, message })
}

// --- 4.1: the mission -----------------------------------------------------------------------------

#[test]
fn mission_novo_to_queued() {
    let scene = Scene::new();
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Queued, Some(Checkpoint::Atribuido))
    );
    assert!(mission.queued_at.is_some());
    assert_eq!(scene.events(), [EventKind::MissionQueued]);
    assert_eq!(scene.log()[0].details["queued_by"], "user");
}

#[test]
fn mission_queued_to_running() {
    let scene = Scene::scraping();
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Running, Some(Checkpoint::Extracao))
    );
    assert_eq!(mission.worker_id, Some(W.into()));
    assert!(mission.started_at.is_some());
    assert_eq!(mission.worker_job_id.as_deref(), Some("scrape_abc123"));
    assert_eq!(scene.worker().current_mission_id, Some(scene.mission.clone()));
}

#[test]
fn mission_running_to_running_when_the_writer_begins() {
    let scene = Scene::storing();
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Running, Some(Checkpoint::Armazenamento))
    );
    assert_eq!(
        mission.worker_data_url.as_deref(),
        Some("https://storage.meusite.com/scrape_abc123/scrape_abc123_results.json")
    );
    assert_eq!(mission.ads_count, Some(1500));
}

#[test]
fn mission_running_to_completed() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.write_answer(written(WriteStatus::Completed, 1500));
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Completed, Some(Checkpoint::Finalizado))
    );
    assert!(mission.finished_at.is_some() && mission.token.is_none());
}

#[test]
fn mission_running_to_failed() {
    let mut scene = Scene::scraping();
    for _ in 0..3 {
        scene.job(JobStatus::Failed, SessionStatus::Ready);
        if scene.mission().status == MissionStatus::Running {
            scene.answer(Reply::Started { job_id: "again".into() });
        }
    }
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Failed);
    assert_eq!(mission.error_code, Some(ErrorCode::Error203));
    assert_eq!(mission.retry_count, 2);
    assert!(mission.finished_at.is_some() && mission.error_message.is_some());
    let failed = scene.last(EventKind::MissionFailed);
    assert_eq!(failed.details["error_code"], "ERROR203");
    assert_eq!(failed.details["retry_count"], 2);
}

#[test]
fn mission_running_to_running_by_a_retry() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Failed, SessionStatus::Ready);
    let mission = scene.mission();
    assert_eq!((mission.status, mission.retry_count), (MissionStatus::Running, 1));
    let retry = scene.last(EventKind::RetryTriggered);
    assert_eq!(retry.details["attempt"], 1);
    assert_eq!(retry.details["phase"], "scrape");
    assert_eq!(retry.details["error_code"], "ERROR200");
}

#[test]
fn mission_queued_to_canceled() {
    let scene = Scene::new();
    assert_eq!(scene.wish(Wish::Cancel), 1);
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Canceled);
    assert!(mission.finished_at.is_some());
    let canceled = scene.last(EventKind::MissionCanceled);
    assert_eq!(canceled.details["canceled_by"], "user");
    assert_eq!(canceled.details["previous_checkpoint"], "atribuido");
}

#[test]
fn mission_running_to_canceled_and_the_job_is_told() {
    let mut scene = Scene::scraping();
    scene.wish(Wish::Cancel);
    assert_eq!(scene.mission().status, MissionStatus::Canceled);
    assert_eq!(scene.worker().status, WorkerStatus::Scraping);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CancelJob));
    scene.job(JobStatus::Cancelled, SessionStatus::Ready);
    let worker = scene.worker();
    assert_eq!((worker.status, worker.session_count), (WorkerStatus::Ready, 0));
    assert_eq!(worker.current_mission_id, None);
}

#[test]
fn mission_transitions_are_those_of_the_tables_and_no_other() {
    use MissionStatus::{Canceled, Completed, Failed, Queued, Running};
    let allowed = [
        (Queued, Running),
        (Queued, Canceled),
        (Running, Running),
        (Running, Completed),
        (Running, Failed),
        (Running, Canceled),
        (Running, Queued),
        (Failed, Queued),
    ];
    for from in MissionStatus::ALL {
        for to in MissionStatus::ALL {
            assert_eq!(mission_may(*from, *to), allowed.contains(&(*from, *to)), "{from} → {to}");
        }
    }
}

// --- 4.2: the worker ------------------------------------------------------------------------------

#[test]
fn worker_idle_to_initializing() {
    let mut scene = Scene::new();
    assert!(matches!(scene.settle(), Todo::Ask(Ask::OpenSession, _)));
    let worker = scene.worker();
    assert_eq!(worker.status, WorkerStatus::Initializing);
    assert!(scene.used().is_some());
    let started = scene.last(EventKind::SessionStarted);
    assert_eq!(started.details["worker_id"], W);
    assert!(started.details.contains_key("proxy_id") && started.details.contains_key("proxy_name"));
}

#[test]
fn worker_initializing_to_ready() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done);
    for status in [
        SessionStatus::Initializing,
        SessionStatus::Connecting,
        SessionStatus::Authenticating,
        SessionStatus::WarmingUp,
    ] {
        scene.pass(10);
        scene.session(status);
        assert_eq!(scene.worker().status, WorkerStatus::Initializing);
    }
    scene.session(SessionStatus::Ready);
    assert_eq!(scene.worker().status, WorkerStatus::Ready);
    assert_eq!(scene.last(EventKind::SessionReady).details["duration_ms"], 40_000);
}

#[test]
fn worker_initializing_to_error() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Stuck);
    let worker = scene.worker();
    assert_eq!(
        (worker.status, worker.close_reason),
        (WorkerStatus::Error, Some(CloseReason::Error))
    );
    assert_eq!(scene.used().unwrap().fail_count, 1);
}

#[test]
fn worker_ready_goes_scraping() {
    let scene = Scene::scraping();
    assert_eq!(scene.worker().status, WorkerStatus::Scraping);
    assert_eq!(scene.last(EventKind::MissionAssigned).details["worker_name"], "worker-1");
}

#[test]
fn worker_scraping_to_ready() {
    let scene = Scene::storing();
    let worker = scene.worker();
    assert_eq!((worker.status, worker.session_count), (WorkerStatus::Ready, 1));
    assert_eq!(worker.current_mission_id, None);
}

#[test]
fn worker_scraping_to_error() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Failed, SessionStatus::Disconnected);
    assert_eq!(scene.worker().status, WorkerStatus::Error);
}

#[test]
fn worker_ready_to_idle_at_the_session_limit() {
    let mut scene = Scene::storing();
    scene.settings.adjustable.session_limit = 1;
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    let worker = scene.worker();
    assert_eq!((worker.status, worker.session_count), (WorkerStatus::Idle, 0));
    assert!(scene.used().is_none());
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "session_limit");
}

#[test]
fn worker_error_to_idle() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Stuck).answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
    assert!(scene.used().is_none());
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "error");
}

#[test]
fn worker_any_to_idle_when_the_orchestrator_ends() {
    let mut scene = Scene::storing();
    scene.mode(Mode::Off);
    scene.answer(Reply::Done);
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "shutdown");
}

#[test]
fn worker_transitions_are_those_of_the_tables_and_no_other() {
    use WorkerStatus::{Error, Idle, Initializing, Ready, Scraping};
    let allowed = [
        (Idle, Initializing),
        (Initializing, Ready),
        (Initializing, Error),
        (Ready, Scraping),
        (Scraping, Ready),
        (Scraping, Error),
        (Ready, Error),
    ];
    for from in WorkerStatus::ALL {
        for to in WorkerStatus::ALL {
            let is_allowed = *to == Idle || allowed.contains(&(*from, *to));
            assert_eq!(worker_may(*from, *to), is_allowed, "{from} → {to}");
        }
    }
}

// --- 4.3: the proxy -------------------------------------------------------------------------------

#[test]
fn proxy_is_deactivated_at_the_third_failure() {
    let mut scene = Scene::new();
    ready(async {
        for name in ["proxy-br-2", "proxy-br-3"] {
            scene.memory.remove(&Thing::Proxy(name.into())).await.unwrap();
        }
    });
    for failures in 1..=3 {
        scene.answer(Reply::Done).session(SessionStatus::Stuck).answer(Reply::Done);
        assert_eq!(scene.proxy("proxy-br-1").fail_count, failures);
        scene.pass(600);
    }
    assert!(!scene.proxy("proxy-br-1").active);
}

#[test]
fn proxy_is_reactivated_by_hand_with_no_failures() {
    let scene = Scene::new();
    let thing = Thing::Proxy("proxy-br-1".into());
    let edit = |active| Edit { active: Some(active), ..Edit::default() };
    ready(scene.memory.edit(&thing, edit(false))).unwrap();
    scene.memory.tables().proxies.get_mut(&"proxy-br-1".into()).unwrap().fail_count = 3;
    ready(scene.memory.edit(&thing, edit(true))).unwrap();
    let proxy = scene.proxy("proxy-br-1");
    assert!(proxy.active && proxy.fail_count == 0);
}

#[test]
fn proxy_rotation_is_obligatory() {
    let mut scene = Scene::new();
    scene.settle();
    let first = scene.used().unwrap().id;
    scene.answer(Reply::Done).session(SessionStatus::Stuck).answer(Reply::Done);
    scene.settle();
    let second = scene.used().unwrap().id;
    assert_ne!(first, second);
    let rotated = scene.last(EventKind::ProxyRotated);
    assert_eq!(rotated.details["old_proxy"], json!(first));
    assert_eq!(rotated.details["new_proxy"], json!(second));
    assert_eq!(rotated.details["reason"], "ERROR102");
    assert_eq!(rotated.details["proxy_name"], json!(first));
}

// --- 7: error codes -------------------------------------------------------------------------------

#[test]
fn error100_terminated_blames_nobody() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Terminated);
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR100");
    assert_eq!(scene.used().unwrap().fail_count, 0);
}

#[test]
fn error101_not_ready_in_180_seconds_blames_the_proxy() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done);
    scene.pass(179);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::SessionStatus, _)));
    scene.pass(2);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR101");
    assert_eq!(scene.used().unwrap().fail_count, 1);
}

#[test]
fn error102_stuck_while_scraping_takes_a_new_proxy_session_and_job() {
    let mut scene = Scene::scraping();
    let first = scene.used().unwrap().id;
    scene.job(JobStatus::Running, SessionStatus::Stuck);
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR102");
    assert_eq!(scene.last(EventKind::RetryTriggered).details["phase"], "session");
    assert_eq!(scene.mission().retry_count, 1);
    scene.answer(Reply::Done).answer(Reply::Done).session(SessionStatus::Ready);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    assert_ne!(scene.used().unwrap().id, first);
    let mission = scene.mission();
    assert_eq!((mission.attempts, mission.worker_job_id), (2, None));
}

#[test]
fn error103_disconnected() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Running, SessionStatus::Disconnected);
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR103");
    assert_eq!(scene.used().unwrap().fail_count, 1);
}

#[test]
fn error104_session_retries_of_a_mission_are_used_up() {
    let mut scene = Scene::scraping();
    for _ in 0..2 {
        scene.job(JobStatus::Running, SessionStatus::Stuck);
        scene.answer(Reply::Done).answer(Reply::Done).session(SessionStatus::Ready);
        scene.answer(Reply::Started { job_id: "again".into() });
    }
    scene.job(JobStatus::Running, SessionStatus::Stuck);
    assert_eq!(scene.mission().status, MissionStatus::Failed);
    assert_eq!(scene.mission().error_code, Some(ErrorCode::Error104));
}

#[test]
fn error104_without_a_mission_is_counted_on_the_worker_and_tried_later() {
    let mut scene = Scene::new();
    for _ in 0..3 {
        scene.answer(Reply::Done).session(SessionStatus::Stuck).answer(Reply::Done);
    }
    let worker = scene.worker();
    assert_eq!(worker.error_code, Some(ErrorCode::Error104));
    let failed = scene.last(EventKind::SessionFailed);
    assert_eq!(
        (failed.mission_id, failed.details["error_code"].as_str()),
        (None, Some("ERROR104"))
    );
    assert!(matches!(scene.settle(), Todo::Until(_, Waiting::Retry)));
    assert_eq!(scene.mission().status, MissionStatus::Queued);
    scene.pass(3600);
    assert!(matches!(scene.settle(), Todo::Open | Todo::Ask(Ask::OpenSession, _)));
}

#[test]
fn error200_a_failed_job_is_sent_again_on_the_session_that_stands() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Failed, SessionStatus::Ready);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    assert_eq!(scene.worker().status, WorkerStatus::Scraping);
    assert_eq!(scene.mission().attempts, 2);
    assert_eq!(scene.last(EventKind::ScrapeFailed).details["error_code"], "ERROR200");
}

#[test]
fn error201_cancelled_by_someone_else() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Cancelled, SessionStatus::Ready);
    assert_eq!(scene.last(EventKind::ScrapeFailed).details["error_code"], "ERROR201");
    assert_eq!(scene.mission().retry_count, 1);
}

#[test]
fn error202_a_job_of_100_minutes_is_cancelled_before_another_starts() {
    let mut scene = Scene::scraping();
    scene.pass(100 * 60);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CancelJob));
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    assert!(!scene.events().contains(&EventKind::ScrapeFailed), "it still runs");
    scene.job(JobStatus::Cancelled, SessionStatus::Ready);
    assert_eq!(scene.last(EventKind::ScrapeFailed).details["error_code"], "ERROR202");
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
}

#[test]
fn error203_is_covered_by_mission_running_to_failed() {
    assert_eq!(ErrorCode::Error200.when_exhausted(), ErrorCode::Error203);
    assert_eq!(ErrorCode::Error201.when_exhausted(), ErrorCode::Error203);
    assert_eq!(ErrorCode::Error202.when_exhausted(), ErrorCode::Error203);
}

#[test]
fn error300_a_failed_writer_job_is_sent_once_more_with_another_id() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.write_answer(written(WriteStatus::Failed, 10));
    let mission = scene.mission();
    assert_eq!((mission.retry_count, mission.writer_job_id), (1, None));
    assert_eq!(scene.last(EventKind::RetryTriggered).details["phase"], "writer");
    assert_eq!(scene.last(EventKind::WriterFailed).details["error_code"], "ERROR300");
}

#[test]
fn error301_and_error302_before_it_accepts_are_a_wait_that_spends_nothing() {
    for code in [ErrorCode::Error301, ErrorCode::Error302] {
        let mut scene = Scene::storing();
        let trouble = Trouble::Away { code, message: "no".into() };
        // An hour of it.
        for _ in 0..30 {
            scene.write_answer(Reply::Trouble(trouble.clone()));
            assert!(matches!(scene.write_settled(), writer::Todo::Until(_, Waiting::Writer)));
            scene.pass(300);
        }
        let mission = scene.mission();
        assert_eq!((mission.status, mission.retry_count), (MissionStatus::Running, 0));
        assert_eq!(mission.error_code, Some(code));
        let told = scene.events().iter().filter(|e| **e == EventKind::WriterFailed).count();
        assert_eq!(told, 1, "once, not thirty times");
        assert_eq!(scene.write_answer(Reply::Unknown), writer::Ask::Status);
        scene.accepted();
        assert_eq!(scene.mission().error_code, None);
    }
}

#[test]
fn a_job_whose_acceptance_was_not_heard_is_asked_for_before_it_is_sent_again() {
    let mut scene = Scene::storing();
    assert_eq!(scene.write_answer(away()), writer::Ask::Process);
    scene.pass(300);
    let heard = scene.write_answer(written(WriteStatus::Completed, 1500));
    assert_eq!(heard, writer::Ask::Status);
    assert_eq!(scene.mission().error_code, None);
    assert_eq!(scene.write_answer(written(WriteStatus::Completed, 1500)), writer::Ask::Status);
    assert_eq!(scene.mission().status, MissionStatus::Completed);
    let begun = scene.events().iter().filter(|e| **e == EventKind::WriterStarted).count();
    assert_eq!(begun, 1);
}

#[test]
fn error302_a_writer_that_does_not_move_for_ten_minutes() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.pass(30);
    scene.write_answer(written(WriteStatus::Processing, 10));
    scene.pass(599);
    scene.write_answer(written(WriteStatus::Processing, 10));
    assert_eq!(scene.mission().retry_count, 0);
    scene.pass(1);
    scene.write_settled();
    assert_eq!(scene.last(EventKind::WriterFailed).details["error_code"], "ERROR302");
    assert_eq!(scene.mission().retry_count, 1);
}

#[test]
fn a_writer_that_is_away_for_an_hour_is_not_silent() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.write_answer(written(WriteStatus::Processing, 10));
    for _ in 0..12 {
        scene.write_answer(Reply::Trouble(Trouble::Away {
            code: ErrorCode::Error301,
            message: "connection refused".into(),
        }));
        scene.pass(300);
    }
    scene.write_answer(written(WriteStatus::Processing, 10));
    scene.pass(599);
    scene.write_answer(written(WriteStatus::Completed, 1500));
    assert_eq!(scene.mission().status, MissionStatus::Completed);
    assert_eq!(scene.mission().retry_count, 0);
}

#[test]
fn error303_fails_at_once() {
    let mut scene = Scene::storing();
    scene.write_answer(Reply::Trouble(Trouble::Refused { message: "422: no column".into() }));
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Failed);
    assert_eq!(mission.error_code, Some(ErrorCode::Error303));
    assert_eq!(mission.error_message.as_deref(), Some("422: no column"));
}

#[test]
fn error304_after_the_one_retry() {
    let mut scene = Scene::storing();
    for _ in 0..2 {
        scene.accepted();
        scene.write_answer(written(WriteStatus::Failed, 10));
    }
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Failed);
    assert_eq!(mission.error_code, Some(ErrorCode::Error304));
}

#[test]
fn error400_and_error401_fail_and_a_person_retries_from_the_write() {
    for code in [ErrorCode::Error400, ErrorCode::Error401] {
        let mut scene = Scene::storing();
        scene.accepted();
        let Reply::Write(failed) = written(WriteStatus::Failed, 0) else { unreachable!() };
        scene.write_answer(Reply::Write(WriteReport { error_code: Some(code), ..failed }));
        assert_eq!(scene.mission().status, MissionStatus::Failed);
        assert_eq!(scene.mission().error_code, Some(code));
        assert_eq!(scene.wish(Wish::Retry { from_scrape: false }), 1);
        scene.lease();
        let mission = scene.mission();
        assert_eq!(mission.status, MissionStatus::Running);
        assert_eq!(mission.checkpoint, Some(Checkpoint::Armazenamento));
    }
}

#[test]
fn error500_a_request_that_is_refused_fails_the_mission() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Ready);
    scene.answer(Reply::Trouble(Trouble::Refused { message: "422: languages".into() }));
    let mission = scene.mission();
    assert_eq!(mission.status, MissionStatus::Failed);
    assert_eq!(mission.error_code, Some(ErrorCode::Error500));
    scene.answer(Reply::Done);
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
}

#[test]
fn error501_is_a_named_wait_logged_once_without_mission() {
    let mut scene = Scene::new();
    ready(async {
        for name in ["proxy-br-1", "proxy-br-2", "proxy-br-3"] {
            scene.memory.remove(&Thing::Proxy(name.into())).await.unwrap();
        }
    });
    for _ in 0..5 {
        assert_eq!(scene.settle(), Todo::Open);
        scene.pass(5);
    }
    assert_eq!(scene.worker().waiting, Some(Waiting::Proxy));
    let log = scene.log();
    let told: Vec<_> = log.iter().filter(|e| e.event == EventKind::SessionFailed).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].details["error_code"], "ERROR501");
    assert_eq!(told[0].mission_id, None);
}

#[test]
fn error502_a_worker_that_cannot_be_reached_blames_no_proxy() {
    let mut scene = Scene::new();
    scene.answer(away());
    assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], "ERROR502");
    assert_eq!(scene.worker().status, WorkerStatus::Error);
    assert_eq!(scene.used().unwrap().fail_count, 0);
    assert!(scene.worker().next_attempt_at.is_some());
}

#[test]
fn error502_its_mission_is_back_in_the_queue_after_five_minutes() {
    let mut scene = Scene::scraping();
    let queued_at = scene.mission().queued_at;
    scene.answer(away());
    assert_eq!(scene.worker().status, WorkerStatus::Scraping, "it may come back");
    assert_eq!(scene.mission().waiting, Some(Waiting::Worker));
    scene.pass(299);
    scene.answer(away());
    assert_eq!(scene.mission().status, MissionStatus::Running);
    scene.pass(1);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
    assert_eq!(scene.worker().status, WorkerStatus::Error);
    assert_eq!(scene.mission().status, MissionStatus::Running, "its job may still run there");
    scene.pass(60);
    scene.settle();
    let mission = scene.mission();
    assert_eq!((mission.status, mission.queued_at), (MissionStatus::Queued, queued_at));
    assert_eq!(mission.checkpoint, Some(Checkpoint::Atribuido));
    assert_eq!((mission.worker_id, mission.worker_job_id, mission.proxy_used), (None, None, None));
    assert_eq!(mission.started_at, None);
    assert_eq!(scene.last(EventKind::MissionQueued).details["queued_by"], "system");
}

#[test]
fn error502_a_mission_that_waits_for_a_new_session_goes_back_to_the_queue() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Running, SessionStatus::Stuck);
    scene.answer(Reply::Done);
    scene.answer(away());
    assert_eq!(scene.asked.last(), Some(&Ask::OpenSession));
    assert_eq!(scene.mission().status, MissionStatus::Queued);
    assert_eq!(scene.worker().status, WorkerStatus::Error);
    assert_eq!(scene.worker().current_mission_id, None);
}

#[test]
fn error502_a_worker_that_comes_back_in_time_is_followed_on() {
    let mut scene = Scene::scraping();
    scene.answer(away());
    scene.pass(200);
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    assert_eq!(scene.worker().unreachable_since, None);
    scene.pass(200);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    assert_eq!(scene.mission().checkpoint, Some(Checkpoint::Armazenamento));
}

#[test]
fn retry_policy_is_the_seeds() {
    let retried = ["100", "101", "102", "103", "200", "201", "202", "300", "301", "302"];
    for code in ErrorCode::ALL {
        let is_retried = retried.iter().any(|number| code.as_str().ends_with(number));
        assert_eq!(code.is_retried(), is_retried, "{code}");
        assert!(!code.says().is_empty());
    }
    assert_eq!(ErrorCode::Error101.phase(), Phase::Session);
    assert_eq!(ErrorCode::Error302.phase(), Phase::Writer);
    for code in [ErrorCode::Error100, ErrorCode::Error101, ErrorCode::Error102, ErrorCode::Error103]
    {
        assert_eq!(code.blame(), Blame::Proxy);
    }
}

// --- the decisions --------------------------------------------------------------------------------

#[test]
fn drain_finishes_what_runs_and_takes_nothing_new() {
    let mut scene = Scene::scraping();
    scene.mode(Mode::Drain);
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
    assert_eq!(scene.settle(), Todo::Rest(Waiting::Orchestrator));
}

#[test]
fn stop_cancels_the_job_requeues_the_mission_and_closes_the_session() {
    let mut scene = Scene::scraping();
    scene.mode(Mode::Stop);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CancelJob));
    scene.job(JobStatus::Cancelled, SessionStatus::Ready);
    assert_eq!(scene.mission().status, MissionStatus::Queued);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
}

#[test]
fn idempotency_key_is_mission_and_attempts_and_never_goes_back() {
    let mut scene = Scene::scraping();
    assert_eq!(scene.mission().idempotency_key(), "m1:1");
    scene.job(JobStatus::Failed, SessionStatus::Ready);
    assert_eq!(scene.mission().idempotency_key(), "m1:2");
    scene.mode(Mode::Stop);
    scene.settle();
    scene.answer(Reply::Done);
    assert_eq!(scene.mission().status, MissionStatus::Queued);
    assert_eq!(scene.mission().attempts, 2);
}

#[test]
fn blame_of_an_answer_refines_the_code() {
    let mut scene = Scene::scraping();
    let job = JobReport { blame: Some(Blame::Proxy), ..report(JobStatus::Failed) };
    scene.answer(Reply::Job { job, session: Some(SessionStatus::Ready) });
    assert_eq!(scene.used().unwrap().fail_count, 1);
}

#[test]
fn previous_proxy_is_taken_again_only_if_it_is_the_only_one() {
    let mut scene = Scene::new();
    ready(async {
        for name in ["proxy-br-2", "proxy-br-3"] {
            scene.memory.remove(&Thing::Proxy(name.into())).await.unwrap();
        }
    });
    scene.answer(Reply::Done).session(SessionStatus::Terminated).answer(Reply::Done);
    scene.pass(60);
    scene.settle();
    assert_eq!(scene.used().unwrap().id, "proxy-br-1".into());
}

#[test]
fn sessions_are_opened_only_while_the_queue_is_longer_than_those_that_wait() {
    let mut scene = Scene::new();
    scene.wish(Wish::Cancel);
    assert_eq!(scene.settle(), Todo::Rest(Waiting::Mission));
}

#[test]
fn session_events_before_a_mission_become_its_own() {
    let scene = Scene::scraping();
    let of_mission: Vec<EventKind> = scene
        .log()
        .iter()
        .filter(|entry| entry.mission_id.as_ref() == Some(&scene.mission))
        .map(|entry| entry.event)
        .collect();
    assert_eq!(
        of_mission,
        [
            EventKind::MissionQueued,
            EventKind::SessionStarted,
            EventKind::SessionReady,
            EventKind::MissionAssigned,
            EventKind::ScrapeStarted
        ]
    );
}

#[test]
fn event_fields_are_the_union_of_the_table_and_the_flows() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.pass(44);
    scene.write_answer(written(WriteStatus::Partial, 1500));
    let has = |event: EventKind, fields: &[&str]| {
        let entry = scene.last(event);
        for field in fields {
            assert!(
                entry.details.contains_key(*field),
                "{event} has no {field}: {:?}",
                entry.details
            );
        }
    };
    has(EventKind::MissionAssigned, &["worker_id", "worker_name", "proxy_name", "mission_id"]);
    has(EventKind::SessionStarted, &["worker_id", "proxy_id", "proxy_name"]);
    has(EventKind::SessionReady, &["worker_id", "duration_ms"]);
    has(EventKind::ScrapeStarted, &["worker_job_id", "mission_config", "mission_id", "worker_id"]);
    has(EventKind::ScrapeCompleted, &["worker_job_id", "ads_count", "duration_ms", "worker_id"]);
    has(EventKind::WriterStarted, &["writer_job_id", "data_url"]);
    has(
        EventKind::WriterCompleted,
        &["writer_job_id", "success_count", "failed_count", "duration_ms"],
    );
    has(
        EventKind::MissionCompleted,
        &["total_duration_ms", "ads_count", "success_count", "failed_count"],
    );
}

#[test]
fn the_example_of_10_2_comes_out_event_for_event() {
    let mut scene = Scene::new();
    scene.goes_scraping();
    scene.pass(883);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    scene.pass(1);
    scene.lease();
    scene.accepted();
    scene.pass(44);
    scene.write_answer(written(WriteStatus::Completed, 1500));
    let told: Vec<(String, EventKind)> = scene
        .log()
        .iter()
        .map(|entry| (entry.timestamp.strftime("%H:%M:%S").to_string(), entry.event))
        .collect();
    let expected = [
        ("10:00:01", EventKind::MissionQueued),
        ("10:00:05", EventKind::SessionStarted),
        ("10:00:45", EventKind::SessionReady),
        ("10:00:46", EventKind::MissionAssigned),
        ("10:00:47", EventKind::ScrapeStarted),
        ("10:15:30", EventKind::ScrapeCompleted),
        ("10:15:31", EventKind::WriterStarted),
        ("10:16:15", EventKind::WriterCompleted),
        ("10:16:15", EventKind::MissionCompleted),
    ];
    let expected: Vec<_> = expected.iter().map(|(at, event)| ((*at).to_owned(), *event)).collect();
    assert_eq!(told, expected);
    assert_eq!(scene.last(EventKind::SessionReady).details["duration_ms"], 40_000);
    assert_eq!(scene.last(EventKind::MissionCompleted).details["total_duration_ms"], 974_000);
}

#[test]
fn durations_are_from_each_ones_own_start() {
    let mut scene = Scene::storing();
    scene.pass(30);
    scene.accepted();
    scene.pass(44);
    scene.write_answer(written(WriteStatus::Completed, 1500));
    let took = |event, field: &str| scene.last(event).details[field].as_i64().unwrap();
    assert_eq!(took(EventKind::SessionReady, "duration_ms"), 40_000);
    assert_eq!(took(EventKind::ScrapeCompleted, "duration_ms"), 883_000);
    // Without the wait for a writer.
    assert_eq!(took(EventKind::WriterCompleted, "duration_ms"), 44_000);
    let mission = scene.mission();
    let total = mission.finished_at.unwrap().duration_since(mission.queued_at.unwrap());
    let told = took(EventKind::MissionCompleted, "total_duration_ms");
    assert!((told - total.as_millis() as i64).abs() <= 1, "{told} {total:?}");
}

#[test]
fn session_count_grows_with_what_is_done_and_ends_with_the_session() {
    let mut scene = Scene::scraping();
    assert_eq!(scene.worker().session_count, 0);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    assert_eq!(scene.worker().session_count, 1);
    scene.mode(Mode::Off);
    scene.answer(Reply::Done);
    scene.settle();
    assert_eq!((scene.worker().status, scene.worker().session_count), (WorkerStatus::Idle, 0));
}

#[test]
fn progress_is_told_on_change_and_at_most_once_a_minute() {
    let mut scene = Scene::scraping();
    let running = |count| Reply::Job {
        job: JobReport { ads_count: Some(count), ..report(JobStatus::Running) },
        session: Some(SessionStatus::Scraping),
    };
    for count in [10, 20, 20, 30, 40] {
        scene.answer(running(count));
        scene.pass(30);
    }
    let log = scene.log();
    let told: Vec<_> = log.iter().filter(|e| e.event == EventKind::ScrapeProgress).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0].details["progress_pct"], json!(null));
}

#[test]
fn empty_is_completed_without_a_writer() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Empty, SessionStatus::Ready);
    let mission = scene.mission();
    assert_eq!(
        (mission.status, mission.checkpoint),
        (MissionStatus::Completed, Some(Checkpoint::Finalizado))
    );
    assert_eq!((mission.ads_count, mission.worker_data_url), (Some(0), None));
    assert_eq!(scene.worker().session_count, 1);
    let events = scene.events();
    assert_eq!(events[events.len() - 2..], [EventKind::ScrapeEmpty, EventKind::MissionCompleted]);
}

#[test]
fn paused_is_a_failure_and_its_session_is_closed_before_another_job() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Paused, SessionStatus::Ready);
    assert_eq!(scene.last(EventKind::ScrapeFailed).details["error_code"], "ERROR200");
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
}

#[test]
fn timeouts_go_on_from_the_stored_start_after_a_crash() {
    let mut scene = Scene::scraping();
    scene.pass(99 * 60);
    scene.lease();
    assert!(matches!(scene.settle(), Todo::Ask(Ask::Job, _)));
    scene.pass(60);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CancelJob, _)));
}

#[test]
fn recovery_takes_each_session_status_as_decided() {
    let cases = [
        (SessionStatus::Initializing, WorkerStatus::Initializing, None),
        (SessionStatus::Connecting, WorkerStatus::Initializing, None),
        (SessionStatus::Authenticating, WorkerStatus::Initializing, None),
        (SessionStatus::WarmingUp, WorkerStatus::Initializing, None),
        (SessionStatus::Ready, WorkerStatus::Ready, None),
        (SessionStatus::Scraping, WorkerStatus::Error, None),
        (SessionStatus::Stuck, WorkerStatus::Error, Some("ERROR102")),
        (SessionStatus::Disconnected, WorkerStatus::Error, Some("ERROR103")),
        (SessionStatus::Terminated, WorkerStatus::Error, Some("ERROR100")),
        (SessionStatus::Other("napping".into()), WorkerStatus::Initializing, None),
    ];
    for (status, expected, code) in cases {
        let mut scene = Scene::new();
        scene.answer(Reply::Done);
        scene.lease();
        scene.session(status.clone());
        assert_eq!(scene.worker().status, expected, "{status:?}");
        if let Some(code) = code {
            assert_eq!(scene.last(EventKind::SessionFailed).details["error_code"], code);
        }
    }
}

#[test]
fn recovery_of_a_mission_in_extracao_follows_its_job() {
    for (status, checkpoint, mission_status) in [
        (JobStatus::Completed, Checkpoint::Armazenamento, MissionStatus::Running),
        (JobStatus::Running, Checkpoint::Extracao, MissionStatus::Running),
        (JobStatus::Failed, Checkpoint::Extracao, MissionStatus::Running),
    ] {
        let mut scene = Scene::scraping();
        scene.lease();
        scene.job(status.clone(), SessionStatus::Ready);
        assert_eq!(scene.asked.last(), Some(&Ask::Job), "asked, not started again");
        let mission = scene.mission();
        assert_eq!((mission.checkpoint, mission.status), (Some(checkpoint), mission_status));
    }
}

#[test]
fn job_id_unknown_puts_the_mission_back_and_closes_the_session() {
    let mut scene = Scene::scraping();
    scene.lease();
    scene.answer(Reply::Unknown);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
    assert_eq!(scene.mission().status, MissionStatus::Running);
    scene.answer(Reply::Done);
    assert_eq!(scene.mission().status, MissionStatus::Queued);
}

#[test]
fn a_scrape_that_is_refused_because_the_session_broke_does_not_fail_the_mission() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Ready);
    scene.session(SessionStatus::Disconnected);
    assert_eq!(scene.asked.last(), Some(&Ask::StartScrape));
    assert_eq!(scene.mission().status, MissionStatus::Running);
    assert_eq!(scene.mission().retry_count, 1);
    assert_eq!(scene.worker().status, WorkerStatus::Error);
}

#[test]
fn an_intent_without_an_answer_is_sent_again_under_the_same_key() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Ready);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    let key = scene.mission().idempotency_key();
    scene.lease();
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    assert_eq!(scene.mission().idempotency_key(), key);
}

#[test]
fn the_writer_is_the_oldest_active_one_and_none_is_a_named_wait() {
    let mut scene = Scene::storing();
    let edit = |active| Edit { active: Some(active), ..Edit::default() };
    ready(scene.memory.edit(&Thing::Writer("writer-1".into()), edit(false))).unwrap();
    assert_eq!(scene.write_settled(), writer::Todo::Rest(Waiting::ActiveWriter));
    assert_eq!(scene.mission().waiting, Some(Waiting::ActiveWriter));
    ready(scene.memory.edit(&Thing::Writer("writer-1".into()), edit(true))).unwrap();
    assert!(matches!(scene.write_settled(), writer::Todo::Ask(writer::Ask::Process, ..)));
    assert_eq!(scene.mission().writer_id, Some("writer-1".into()));
}

#[test]
fn writer_job_id_is_stored_before_the_call_and_404_sends_the_same_again() {
    let mut scene = Scene::storing();
    scene.write_settled();
    let id = scene.mission().writer_job_id;
    assert_eq!(id.as_deref(), Some("550e8400"));
    scene.accepted();
    scene.write_answer(Reply::Unknown);
    assert_eq!(scene.mission().writer_accepted_at, None);
    assert_eq!(scene.mission().writer_job_id, id);
    scene.accepted();
    assert_eq!(scene.mission().retry_count, 0);
}

#[test]
fn completed_with_failures_is_logged_as_partial_with_at_most_100_items() {
    let mut scene = Scene::storing();
    scene.accepted();
    scene.write_answer(written(WriteStatus::Completed, 1500));
    let completed = scene.last(EventKind::WriterCompleted);
    assert_eq!(completed.details["status"], "partial");
    assert_eq!(completed.details["failed_items"].as_array().unwrap().len(), 100);
    assert_eq!(scene.mission().status, MissionStatus::Completed);
}

#[test]
fn a_persons_retry_writes_again_or_scrapes_again() {
    for (from_scrape, keeps) in [(false, true), (true, false)] {
        let mut scene = Scene::storing();
        scene.write_answer(Reply::Trouble(Trouble::Refused { message: "no".into() }));
        assert_eq!(scene.wish(Wish::Retry { from_scrape }), 1);
        let mission = scene.mission();
        assert_eq!(mission.status, MissionStatus::Queued);
        assert_eq!(mission.worker_data_url.is_some(), keeps);
        assert_eq!((mission.error_code, mission.finished_at, mission.retry_count), (None, None, 0));
        assert_eq!(mission.writer_job_id, None);
    }
}

#[test]
fn cancel_while_scraping_that_is_never_confirmed_ends_with_the_session() {
    let mut scene = Scene::scraping();
    scene.wish(Wish::Cancel);
    scene.answer(Reply::Done);
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    scene.pass(60);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CloseSession, _)));
    assert_eq!(scene.worker().status, WorkerStatus::Error);
    scene.answer(Reply::Done);
    assert_eq!(scene.worker().status, WorkerStatus::Idle);
    assert_eq!(scene.mission().status, MissionStatus::Canceled);
}

#[test]
fn cancel_works_with_no_orchestrator_and_recovery_finishes_it() {
    let mut scene = Scene::scraping();
    scene.wish(Wish::Cancel);
    scene.lease();
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CancelJob));
    scene.answer(Reply::Unknown);
    assert_eq!(scene.worker().status, WorkerStatus::Ready);
}

#[test]
fn cancel_before_the_job_id_is_known_closes_the_session() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Ready);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::StartScrape, _)));
    scene.wish(Wish::Cancel);
    scene.answer(Reply::Done);
    assert_eq!(scene.asked.last(), Some(&Ask::CloseSession));
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "canceled");
}

#[test]
fn proxy_is_released_only_when_the_end_of_the_session_is_confirmed_or_its_time_is_up() {
    let mut scene = Scene::new();
    scene.answer(Reply::Done).session(SessionStatus::Stuck);
    for _ in 0..5 {
        scene.answer(away());
        assert!(scene.used().is_some(), "the session may still use it");
        scene.pass(10);
    }
    scene.pass(10);
    scene.settle();
    assert!(scene.used().is_none());
    assert_eq!(scene.last(EventKind::SessionTerminated).details["confirmed"], false);
    // What was not confirmed is remembered, and asked for until it is.
    assert!(scene.worker().unclosed);
    scene.answer(away());
    assert!(scene.worker().unclosed);
    scene.answer(Reply::Done);
    assert!(!scene.worker().unclosed);
}

#[test]
fn deactivating_a_worker_drains_it_and_then_closes() {
    let mut scene = Scene::scraping();
    let edit = Edit { active: Some(false), ..Edit::default() };
    ready(scene.memory.edit(&Thing::Worker(W.into()), edit)).unwrap();
    scene.job(JobStatus::Running, SessionStatus::Scraping);
    scene.job(JobStatus::Completed, SessionStatus::Ready);
    scene.answer(Reply::Done);
    assert_eq!(scene.last(EventKind::SessionTerminated).details["reason"], "deactivated");
    assert_eq!(scene.settle(), Todo::Leave);
}

#[test]
fn storage_domain_keeps_its_scheme() {
    let url = worker::data_url("http://127.0.0.1:9000/w1/", "j");
    assert_eq!(url, "http://127.0.0.1:9000/w1/j/j_results.json");
}

#[test]
fn queueing_an_ended_mission_is_refused() {
    let mut scene = Scene::scraping();
    scene.job(JobStatus::Empty, SessionStatus::Ready);
    assert_eq!(scene.wish(Wish::Queue), 0);
    assert!(refusal(&scene.mission(), Wish::Queue).unwrap().contains("copy"));
    assert_eq!(scene.wish(Wish::Cancel), 0);
    assert_eq!(scene.wish(Wish::Retry { from_scrape: true }), 0);
}

#[test]
fn signed_data_urls_are_cut_in_the_log() {
    let mut scene = Scene::storing();
    let url = "https://bucket/x.json?X-Amz-Signature=abc";
    let mission = scene.mission.clone();
    scene.memory.tables().missions.get_mut(&mission).unwrap().worker_data_url = Some(url.into());
    scene.accepted();
    assert_eq!(scene.last(EventKind::WriterStarted).details["data_url"], "https://bucket/x.json");
}

#[test]
fn http_429_is_a_wait_and_changes_nothing() {
    let mut scene = Scene::scraping();
    let before = scene.mission();
    let after = Some(Duration::from_secs(7));
    scene.answer(Reply::Trouble(Trouble::Busy { after }));
    assert_eq!(scene.worker().waiting, Some(Waiting::WorkerBusy));
    assert_eq!((scene.mission().status, scene.mission().retry_count), (before.status, 0));
}

#[test]
fn a_status_that_nobody_knows_waits_until_the_timeout() {
    let mut scene = Scene::scraping();
    for _ in 0..5 {
        scene.pass(1000);
        scene.job(JobStatus::Other("dreaming".into()), SessionStatus::Other("?".into()));
        assert_eq!(scene.mission().status, MissionStatus::Running);
    }
    scene.pass(1000);
    assert!(matches!(scene.settle(), Todo::Ask(Ask::CancelJob, _)));
}

#[test]
fn failures_in_a_row_are_forgotten_by_a_success_where_that_is_set() {
    for (failures, left) in [(ProxyFailures::Total, 2), (ProxyFailures::Consecutive, 0)] {
        let mut scene = Scene::scraping();
        scene.settings.adjustable =
            Adjustable { proxy_failures: failures, ..Adjustable::default() };
        let used = scene.used().unwrap().id;
        scene.memory.tables().proxies.get_mut(&used).unwrap().fail_count = 2;
        scene.job(JobStatus::Completed, SessionStatus::Ready);
        assert_eq!(scene.used().unwrap().fail_count, left);
    }
}

#[test]
fn a_step_of_one_who_was_replaced_writes_nothing() {
    let mut scene = Scene::scraping();
    let view = scene.view();
    let old = scene.token;
    scene.lease();
    assert_ne!(old, scene.token);
    let reply = Reply::Job {
        job: JobReport { ads_count: Some(1), ..report(JobStatus::Completed) },
        session: None,
    };
    let step = worker::after(&view, Ask::Job, &reply, &scene.settings, scene.now).unwrap();
    let before = (scene.mission(), scene.worker(), scene.log().len());
    assert_eq!(ready(scene.memory.apply(vec![step])).unwrap(), [false]);
    assert_eq!((scene.mission(), scene.worker(), scene.log().len()), before);
}

#[test]
fn a_step_whose_answer_was_lost_is_not_written_twice() {
    let mut scene = Scene::scraping();
    let reply = Reply::Job { job: report(JobStatus::Running), session: Some(SessionStatus::Stuck) };
    let step = worker::after(&scene.view(), Ask::Job, &reply, &scene.settings, scene.now).unwrap();
    assert_eq!(ready(scene.memory.apply(vec![step.clone()])).unwrap(), [true]);
    let (failures, entries) = (scene.used().unwrap().fail_count, scene.log().len());
    assert_eq!(ready(scene.memory.apply(vec![step])).unwrap(), [false]);
    assert_eq!((scene.used().unwrap().fail_count, scene.log().len()), (failures, entries));
    scene.settle();
}

#[test]
fn entries_of_a_mission_are_strictly_later_than_the_last() {
    let mut scene = Scene::scraping();
    // All at the same moment.
    scene.job(JobStatus::Failed, SessionStatus::Ready);
    scene.answer(Reply::Started { job_id: "b".into() });
    scene.job(JobStatus::Empty, SessionStatus::Ready);
    let mut times: Vec<Timestamp> = Vec::new();
    for entry in scene.log().iter().filter(|e| e.mission_id.is_some()) {
        times.push(entry.timestamp);
    }
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
}

#[test]
fn a_worker_id_is_text() {
    assert_eq!(WorkerId::from("W1").to_string(), "W1");
}
