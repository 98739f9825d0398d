//! Every row of the specification's tables, every code, and every decision, by its name. The rows go through
//! a store in memory, so that what is asserted is what would be stored.

#![expect(clippy::needless_pass_by_value, reason = "answers read better as they are written")]

mod codes;
mod decisions;
mod transitions;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lavra_tasks::model::ProcessId;
use serde_json::json;
use uuid::Uuid;

use super::worker::{Ask, Todo, View};
use super::{mission_may, worker, worker_may, writer};
use crate::api::{JobReport, JobStatus, Reply, SessionStatus, Trouble, WriteReport, WriteStatus};
use crate::code::ErrorCode;
use crate::machine::mission::Wish;
use crate::memory::Memory;
use crate::model::{
    EventKind, LogEntry, MediaType, Mission, MissionId, Mode, Proxy, SessionId, Worker,
    WorkerStatus, Writer,
};
use crate::settings::Settings;
use crate::store::{
    Adjusts, Assigned, Control, Filter, Leases, NewMission, NewProxy, NewWorker, NewWriter, Opened,
    Opening, Reads, Steps, Store, Supervises, Things, Wishes,
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
            memory.set_control(Control { mode: Mode::Run, task_id: None }, None).await.unwrap();
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
        ready(self.memory.set_control(Control { mode, task_id: None }, None)).unwrap();
    }

    fn wish(&self, wish: Wish) -> usize {
        ready(self.memory.wish(&Filter::default(), wish, "user")).unwrap().len()
    }

    fn todo(&self) -> Todo {
        worker::todo(&self.view(), &self.settings, self.now)
    }

    /// Writes a step; every transition in it must be one that the tables allow.
    fn write(&self, step: crate::machine::Step) {
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
