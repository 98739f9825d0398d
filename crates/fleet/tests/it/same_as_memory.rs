//! Whatever is done to both, the store on DuckDB answers as the one in memory and has the same
//! rows. Tokens differ, and are matched by when they were given out; so do the ids of log entries.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use lavra_db::{Database, Schema, Target, migrate};
use lavra_fleet::api::{
    JobReport, JobStatus, Reply, SessionStatus, Trouble, WriteReport, WriteStatus,
};
use lavra_fleet::code::{Blame, ErrorCode};
use lavra_fleet::machine::Step;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::machine::worker::{self, Ask, View};
use lavra_fleet::machine::writer;
use lavra_fleet::memory::Memory;
use lavra_fleet::model::{
    Checkpoint, EventKind, LogEntry, LogId, MediaType, Mission, MissionId, MissionStatus, Mode,
    ProxyId, SessionId, Waiting, Worker, WorkerId, WriterId,
};
use lavra_fleet::report::Window;
use lavra_fleet::settings::{Adjustable, ProxyFailures, Settings};
use lavra_fleet::store::{
    Assigned, Control, Edit, Filter, LogFilter, NewMission, NewProxy, NewWorker, NewWriter, Opened,
    Opening, Store, Thing,
};
use lavra_fleet::{DuckDb, MIGRATIONS};
use lavra_tasks::model::{ProcessId, TaskId, Token};
use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

const STALE: Duration = Duration::from_secs(10);
const LEASE: u8 = 15;
const SET_RIGHT: u8 = 36;
const SUPERVISE_ALL: u8 = 31;
/// So many workers, proxies and writers at most.
const WORKERS: u64 = 8;
/// Ahead of this machine's clock, which a file would follow otherwise.
const BEGINNING: &str = "2101-01-01T00:00:00Z";

struct Both {
    memory: Memory,
    duck: DuckDb,
    now: Timestamp,
    /// Those of DuckDB, and what they are in memory.
    tokens: BTreeMap<Token, Token>,
    processes: [ProcessId; 2],
    workers: Vec<(WorkerId, Token, Token)>,
    missions: Vec<(MissionId, Token, Token)>,
    settings: Settings,
    number: u64,
    directory: TempDir,
}

/// One number after another out of one.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's multiplier; the upper half is the better one.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.roll(of.len() as u64) as usize) }
    }
}

async fn file_in(directory: &TempDir) -> DuckDb {
    let target = Target::File(directory.path().join("lavra.duckdb"));
    let database = Database::open(&target, Schema::default(), STALE).await.unwrap();
    let mut migrations = lavra_tasks::MIGRATIONS.to_vec();
    migrations.extend(MIGRATIONS.iter().cloned());
    migrate(&database, &migrations).await.unwrap();
    let Database::Duck(duck) = database else { panic!("no file") };
    DuckDb::new(duck)
}

impl Both {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let now = BEGINNING.parse().unwrap();
        let both = Self {
            memory: Memory::new(now),
            duck: file_in(&directory).await,
            now,
            tokens: BTreeMap::new(),
            processes: [ProcessId(Uuid::from_u128(1)), ProcessId(Uuid::from_u128(2))],
            workers: Vec::new(),
            missions: Vec::new(),
            settings: Settings::default(),
            number: 0,
            directory,
        };
        both.duck.clock().set(now);
        both
    }

    /// The file is closed and opened again.
    async fn reopened(self) -> Self {
        let Self { duck, directory, .. } = self;
        drop(duck);
        let duck = file_in(&directory).await;
        duck.clock().set(self.now);
        Self { duck, directory, ..self }
    }

    fn advance(&mut self, by: SignedDuration) {
        self.now += by;
        self.memory.clock().set(self.now);
        self.duck.clock().set(self.now);
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// What `verb` answers on both, which is the same.
    async fn same<'a, T, F>(&'a self, verb: impl Fn(&'a dyn Store) -> F) -> T
    where
        T: PartialEq + std::fmt::Debug,
        F: Future<Output = lavra_fleet::Result<T>>,
    {
        let in_memory = verb(&self.memory).await.unwrap();
        let on_duckdb = verb(&self.duck).await.unwrap();
        assert_eq!(on_duckdb, in_memory);
        in_memory
    }

    fn token(&self, token: Option<Token>) -> Option<Token> {
        token.map(|token| self.tokens[&token])
    }

    fn mission(&self, mission: Mission) -> Mission {
        Mission { token: self.token(mission.token), ..mission }
    }

    fn worker(&self, worker: Worker) -> Worker {
        Worker { token: self.token(worker.token), ..worker }
    }

    fn view(&self, view: View) -> View {
        View {
            worker: self.worker(view.worker),
            mission: view.mission.map(|mission| self.mission(mission)),
            ..view
        }
    }

    async fn compare(&self) {
        let all = Filter::default();
        let missions = self.duck.missions(&all, None, usize::MAX).await.unwrap();
        let missions: Vec<_> = missions.into_iter().map(|m| self.mission(m)).collect();
        assert_eq!(missions, self.memory.missions(&all, None, usize::MAX).await.unwrap());
        let workers = self.duck.workers().await.unwrap();
        let workers: Vec<_> = workers.into_iter().map(|w| self.worker(w)).collect();
        assert_eq!(workers, self.memory.workers().await.unwrap());
        assert_eq!(self.duck.proxies().await.unwrap(), self.memory.proxies().await.unwrap());
        assert_eq!(self.duck.writers().await.unwrap(), self.memory.writers().await.unwrap());
        assert_eq!(self.duck.counts().await.unwrap(), self.memory.counts().await.unwrap());
        let filter = LogFilter { limit: usize::MAX, ..LogFilter::default() };
        self.compare_log(&filter).await;
    }

    async fn compare_log(&self, filter: &LogFilter) {
        let on_duckdb = nameless(self.duck.log(filter).await.unwrap());
        assert_eq!(on_duckdb, nameless(self.memory.log(filter).await.unwrap()), "{filter:?}");
    }

    /// The questions that change nothing.
    async fn ask(&self, dice: &mut Dice) {
        let ids: Vec<MissionId> =
            self.memory.tables().missions.keys().step_by(2).cloned().collect();
        let filters = [
            Filter { ids: ids.iter().take(1).cloned().collect(), ..Filter::default() },
            Filter { ids, ..Filter::default() },
            Filter { status: dice.pick(MissionStatus::ALL).copied(), ..Filter::default() },
            Filter { in_bank: Some(dice.roll(2) == 0), ..Filter::default() },
            Filter { checkpoint: dice.pick(Checkpoint::ALL).copied(), ..Filter::default() },
            Filter { error_code: dice.pick(ErrorCode::ALL).copied(), ..Filter::default() },
            Filter { waiting: dice.pick(Waiting::ALL).copied(), ..Filter::default() },
            Filter { search: Some("error1".into()), ..Filter::default() },
            Filter {
                media_type: Some(MediaType::All),
                language: Some("pt".into()),
                ..Filter::default()
            },
            Filter { worker: Some(worker_id(dice.roll(3))), ..Filter::default() },
            Filter {
                from: Some(date(2025, 1, 2)),
                to: Some(date(2025, 1, 4)),
                ..Filter::default()
            },
        ];
        for filter in filters {
            let before = self.memory.tables().missions.keys().next_back().cloned();
            let missions = self.duck.missions(&filter, before.clone(), 5).await.unwrap();
            let missions: Vec<_> = missions.into_iter().map(|m| self.mission(m)).collect();
            let expected = self.memory.missions(&filter, before, 5).await.unwrap();
            assert_eq!(missions, expected, "{filter:?}");
        }
        let every = LogFilter { limit: usize::MAX, ..LogFilter::default() };
        let some = self.memory.log(&every).await.unwrap();
        let middle = some.get(some.len() / 2);
        let mission = middle.and_then(|entry| entry.mission_id.clone());
        let at = middle.map(|entry| entry.timestamp);
        for filter in [
            LogFilter { mission, ..every.clone() },
            LogFilter { without_mission: true, oldest_first: true, ..every.clone() },
            LogFilter {
                events: vec![EventKind::SessionFailed, EventKind::ScrapeFailed],
                ..every.clone()
            },
            LogFilter { worker: Some(worker_id(0)), since: at, ..every.clone() },
            LogFilter { error_code: Some(ErrorCode::Error100), until: at, ..every.clone() },
            LogFilter { before: at.map(|at| (at, LogId(String::new()))), ..every.clone() },
            LogFilter { after: at.map(|at| (at, LogId("z".into()))), ..every.clone() },
            LogFilter { session: middle.and_then(|e| e.session_id.clone()), ..every.clone() },
            LogFilter { proxy: Some("p-0".into()), ..every.clone() },
        ] {
            self.compare_log(&filter).await;
        }
        let since = at.unwrap_or(self.now);
        let window = Window::since(since);
        self.same(async |store| {
            let mut failures = store.failures(window, None, 1000).await?;
            for failure in &mut failures {
                failure.log_id = LogId(String::new());
            }
            Ok(failures)
        })
        .await;
        self.same(|store| store.performance(window)).await;
        self.same(|store| store.troubled_proxies(window)).await;
        for thing in [Thing::Worker(worker_id(0)), Thing::Proxy(proxy_id(0)), writer(0)] {
            self.same(|store| store.secret(&thing)).await;
        }
        self.same(<dyn Store>::settings).await;
        self.same(<dyn Store>::control).await;
    }

    async fn lease(&mut self, process: ProcessId) {
        let in_memory = self.memory.lease(process, STALE).await.unwrap();
        let on_duckdb = self.duck.lease(process, STALE).await.unwrap();
        assert_eq!(on_duckdb.surplus, in_memory.surplus);
        let ids = |leased: &lavra_fleet::store::Leased| {
            let workers = leased.workers.iter().map(|(id, _)| id.0.clone());
            workers.chain(leased.missions.iter().map(|(id, _)| id.0.clone())).collect::<Vec<_>>()
        };
        assert_eq!(ids(&on_duckdb), ids(&in_memory));
        for ((id, on_duckdb), (_, in_memory)) in on_duckdb.workers.iter().zip(&in_memory.workers) {
            let known = self.tokens.insert(*on_duckdb, *in_memory);
            assert!(known.is_none_or(|known| known == *in_memory));
            self.workers.push((id.clone(), *on_duckdb, *in_memory));
        }
        for ((id, on_duckdb), (_, in_memory)) in on_duckdb.missions.iter().zip(&in_memory.missions)
        {
            let known = self.tokens.insert(*on_duckdb, *in_memory);
            assert!(known.is_none_or(|known| known == *in_memory));
            self.missions.push((id.clone(), *on_duckdb, *in_memory));
        }
        // Old ones now and then, to be refused.
        let keep = |len: usize| len.saturating_sub(16);
        self.workers.drain(..keep(self.workers.len()));
        self.missions.drain(..keep(self.missions.len()));
    }

    async fn apply(&self, on_duckdb: Step, in_memory: Step, dice: &mut Dice) {
        let (mut duck, mut memory) = (vec![on_duckdb.clone()], vec![in_memory.clone()]);
        if dice.roll(8) == 0 {
            duck.push(on_duckdb);
            memory.push(in_memory);
        }
        let expected = self.memory.apply(memory).await.unwrap();
        assert_eq!(self.duck.apply(duck).await.unwrap(), expected);
    }

    /// One turn of whoever looks after a worker.
    async fn supervise(&mut self, dice: &mut Dice) {
        let Some((id, on_duckdb, in_memory)) = dice.pick(&self.workers).cloned() else { return };
        let memory = self.memory.view(&id, in_memory).await.unwrap();
        let duck = self.duck.view(&id, on_duckdb).await.unwrap();
        let normal = duck.clone().map(|view| self.view(view));
        assert_eq!(normal, memory);
        let (Some(duck), Some(memory)) = (duck, memory) else { return };
        let session = SessionId(format!("ses_{:05}", self.next()));
        match (
            worker::todo(&duck, &self.settings, self.now),
            worker::todo(&memory, &self.settings, self.now),
        ) {
            (worker::Todo::Write(duck), worker::Todo::Write(memory)) => {
                self.apply(*duck, *memory, dice).await;
            }
            (worker::Todo::Ask(ask, _), worker::Todo::Ask(same, _)) => {
                assert_eq!(ask, same);
                let reply = self.worker_says(ask, dice);
                let step = |view| worker::after(view, ask, &reply, &self.settings, self.now);
                if let (Some(duck), Some(memory)) = (step(&duck), step(&memory)) {
                    self.apply(duck, memory, dice).await;
                }
            }
            (worker::Todo::Assign, worker::Todo::Assign) => {
                self.assign(&id, on_duckdb, in_memory).await;
            }
            (worker::Todo::Open, worker::Todo::Open) => self.open(&id, session, dice).await,
            _ => {}
        }
        if dice.roll(6) == 0 {
            let session = SessionId(format!("ses_{:05}", self.next()));
            self.open(&id, session, dice).await;
        }
    }

    /// Many turns at once: their steps are written together, old tokens among them.
    async fn supervise_all(&mut self, dice: &mut Dice) {
        let (mut duck, mut memory) = (Vec::new(), Vec::new());
        for (id, on_duckdb, in_memory) in self.workers.clone() {
            let (Some(a), Some(b)) = (
                self.duck.view(&id, on_duckdb).await.unwrap(),
                self.memory.view(&id, in_memory).await.unwrap(),
            ) else {
                continue;
            };
            match (
                worker::todo(&a, &self.settings, self.now),
                worker::todo(&b, &self.settings, self.now),
            ) {
                (worker::Todo::Write(a), worker::Todo::Write(b)) => {
                    duck.push(*a);
                    memory.push(*b);
                }
                (worker::Todo::Ask(ask, _), worker::Todo::Ask(..)) => {
                    let reply = self.worker_says(ask, dice);
                    let step = |view| worker::after(view, ask, &reply, &self.settings, self.now);
                    duck.extend(step(&a));
                    memory.extend(step(&b));
                }
                (worker::Todo::Open, worker::Todo::Open) => {
                    let session = SessionId(format!("ses_{:05}", self.next()));
                    self.open(&id, session, dice).await;
                }
                (worker::Todo::Assign, worker::Todo::Assign) => {
                    self.assign(&id, on_duckdb, in_memory).await;
                }
                _ => {}
            }
        }
        let writers = self.memory.writers().await.unwrap();
        for (id, on_duckdb, in_memory) in self.missions.clone() {
            let (Some(a), Some(b)) = (
                self.duck.storing(&id, on_duckdb).await.unwrap(),
                self.memory.storing(&id, in_memory).await.unwrap(),
            ) else {
                continue;
            };
            let todo = |mission| writer::todo(mission, &writers, "w", &self.settings, self.now);
            match (todo(&a), todo(&b)) {
                (writer::Todo::Write(a), writer::Todo::Write(b)) => {
                    duck.push(*a);
                    memory.push(*b);
                }
                (writer::Todo::Ask(ask, ..), writer::Todo::Ask(..)) => {
                    let reply = writer_says(ask, dice);
                    let step =
                        |mission| writer::after(mission, ask, &reply, &self.settings, self.now);
                    duck.extend(step(&a));
                    memory.extend(step(&b));
                }
                _ => {}
            }
        }
        let expected = self.memory.apply(memory).await.unwrap();
        assert_eq!(self.duck.apply(duck).await.unwrap(), expected);
    }

    async fn assign(&self, id: &WorkerId, on_duckdb: Token, in_memory: Token) {
        let memory = self.memory.assign(id, in_memory).await.unwrap();
        let duck = match self.duck.assign(id, on_duckdb).await.unwrap() {
            Assigned::With(view) => Assigned::With(Box::new(self.view(*view))),
            other => other,
        };
        assert_eq!(duck, memory);
    }

    async fn open(&self, id: &WorkerId, session: SessionId, dice: &mut Dice) {
        let Some((_, duck, memory)) = self.workers.iter().rev().find(|(w, ..)| w == id) else {
            return;
        };
        let luck = dice.roll(1000);
        let opening = |token| Opening { worker: id.clone(), token, session: session.clone(), luck };
        let expected: Opened = self.memory.open(opening(*memory)).await.unwrap();
        assert_eq!(self.duck.open(opening(*duck)).await.unwrap(), expected);
    }

    fn worker_says(&mut self, ask: Ask, dice: &mut Dice) -> Reply {
        let away = Reply::Trouble(Trouble::Away {
            code: ErrorCode::Error502,
            message: "nobody there — ação \0 \u{1f600}".into(),
        });
        let refused = Reply::Trouble(Trouble::Refused { message: "no\"'".into() });
        let job = |status, dice: &mut Dice| JobReport {
            status,
            ads_count: Some(dice.roll(50) as i32),
            progress_pct: None,
            error_code: None,
            blame: (dice.roll(2) == 0).then_some(Blame::Proxy),
            message: None,
        };
        let roll = dice.roll(12);
        match ask {
            Ask::OpenSession | Ask::CloseSession | Ask::CancelJob => match roll {
                0 => away,
                1 => refused,
                2 => Reply::Unknown,
                _ => Reply::Done,
            },
            Ask::SessionStatus => match roll {
                0 => away,
                1 => Reply::Session(SessionStatus::Stuck),
                2 => Reply::Session(SessionStatus::Disconnected),
                3 => Reply::Session(SessionStatus::Terminated),
                4 => Reply::Session(SessionStatus::WarmingUp),
                _ => Reply::Session(SessionStatus::Ready),
            },
            Ask::StartScrape => match roll {
                0 => away,
                1 => refused,
                2 => Reply::Unknown,
                _ => Reply::Started { job_id: format!("job_{}", self.next()) },
            },
            Ask::Job => {
                let session = [None, Some(SessionStatus::Ready), Some(SessionStatus::Stuck)];
                let session = session[dice.roll(3) as usize].clone();
                let status = match roll {
                    0 => return away,
                    1 => return Reply::Unknown,
                    2 => JobStatus::Failed,
                    3 | 4 => JobStatus::Empty,
                    5 => JobStatus::Cancelled,
                    6 | 7 => JobStatus::Running,
                    8 => JobStatus::Paused,
                    _ => JobStatus::Completed,
                };
                Reply::Job { job: job(status, dice), session }
            }
        }
    }

    /// One turn of whoever sees to it that a mission is stored.
    async fn store(&mut self, dice: &mut Dice) {
        let Some((id, on_duckdb, in_memory)) = dice.pick(&self.missions).cloned() else { return };
        let memory = self.memory.storing(&id, in_memory).await.unwrap();
        let duck = self.duck.storing(&id, on_duckdb).await.unwrap();
        assert_eq!(duck.clone().map(|mission| self.mission(mission)), memory);
        let (Some(duck), Some(memory)) = (duck, memory) else { return };
        let writers = self.memory.writers().await.unwrap();
        let job_id = format!("write_{}", self.next());
        let todo = |mission| writer::todo(mission, &writers, &job_id, &self.settings, self.now);
        match (todo(&duck), todo(&memory)) {
            (writer::Todo::Write(duck), writer::Todo::Write(memory)) => {
                self.apply(*duck, *memory, dice).await;
            }
            (writer::Todo::Ask(ask, ..), writer::Todo::Ask(..)) => {
                let reply = writer_says(ask, dice);
                let step = |mission| writer::after(mission, ask, &reply, &self.settings, self.now);
                if let (Some(duck), Some(memory)) = (step(&duck), step(&memory)) {
                    self.apply(duck, memory, dice).await;
                }
            }
            _ => {}
        }
    }

    fn filter(&self, dice: &mut Dice) -> Filter {
        let ids: Vec<MissionId> = self.memory.tables().missions.keys().cloned().collect();
        match dice.roll(4) {
            0 => Filter::default(),
            1 => Filter { ids: ids.into_iter().step_by(2).collect(), ..Filter::default() },
            2 => Filter { media_type: Some(MediaType::Video), ..Filter::default() },
            _ => {
                Filter { ids: dice.pick(&ids).cloned().into_iter().collect(), ..Filter::default() }
            }
        }
    }

    async fn wish(&self, wish: Wish, dice: &mut Dice) {
        let mut filter = self.filter(dice);
        if wish == Wish::Cancel && filter.ids.len() != 1 {
            filter.checkpoint = Some(Checkpoint::Atribuido);
        }
        self.same(|store| {
            let filter = filter.clone();
            async move { store.wish(&filter, wish, "Ação").await }
        })
        .await;
    }

    async fn add_missions(&mut self, dice: &mut Dice) {
        let mut missions = Vec::new();
        for _ in 0..=dice.roll(4) {
            let day = 1 + dice.roll(5) as i8;
            missions.push(NewMission {
                id: MissionId(format!("mis_{:05}", self.next())),
                date_start: date(2025, 1, day),
                date_end: date(2025, 1, day + 1),
                media_type: MediaType::ALL[dice.roll(3) as usize],
                languages: vec!["pt".into(), "en".into()][dice.roll(3) as usize..].to_vec(),
            });
        }
        let again = dice.roll(3) == 0;
        self.same(|store| store.add_missions(missions.clone(), again)).await;
    }

    async fn add_thing(&mut self, dice: &mut Dice) {
        let number = dice.roll(WORKERS);
        let is_known = {
            let known = self.memory.tables();
            [
                known.workers.contains_key(&worker_id(number)),
                known.proxies.contains_key(&proxy_id(number)),
                known.writers.contains_key(&writer_id(number)),
            ]
        };
        let name = format!("n{}", if dice.roll(5) == 0 { dice.roll(WORKERS) } else { number });
        match dice.roll(3) {
            0 if !is_known[0] => {
                let new = NewWorker {
                    id: worker_id(number),
                    name: name.clone(),
                    url: format!("http://{name}"),
                    api_key: "key".into(),
                    storage_domain: (dice.roll(6) > 0).then(|| "data.example".into()),
                    active: true,
                };
                self.same(|store| store.add_worker(new.clone())).await;
            }
            1 if !is_known[1] => {
                let new = NewProxy {
                    id: proxy_id(number),
                    name,
                    host: "proxy.example".into(),
                    port: (number > 0).then_some(3128),
                    username: None,
                    password: (number > 1).then(|| "secret".into()),
                    active: true,
                };
                self.same(|store| store.add_proxy(new.clone())).await;
            }
            _ if !is_known[2] => {
                let new = NewWriter {
                    id: writer_id(number),
                    name,
                    url: "http://writer".into(),
                    api_key: "key".into(),
                    active: dice.roll(3) > 0,
                };
                self.same(|store| store.add_writer(new.clone())).await;
            }
            _ => {}
        }
    }

    async fn change_thing(&self, dice: &mut Dice) {
        let number = dice.roll(WORKERS + 1);
        let things = [Thing::Worker(worker_id(number)), Thing::Proxy(proxy_id(number))];
        let thing = things.into_iter().chain([writer(number)]).nth(dice.roll(3) as usize).unwrap();
        let ok = dice.roll(2) == 0;
        match dice.roll(8) {
            0 => drop(self.same(|store| store.remove(&thing)).await),
            1 => self.same(|store| store.tested(&thing, ok)).await,
            _ => {
                let edit = Edit {
                    name: (dice.roll(4) == 0).then(|| format!("n{}", dice.roll(5))),
                    url: (dice.roll(4) == 0).then(|| format!("http://n{}", dice.roll(4))),
                    storage_domain: (dice.roll(4) == 0).then(|| "other.example".into()),
                    host: (dice.roll(4) == 0).then(|| "other".into()),
                    port: (dice.roll(4) == 0).then_some(8080),
                    username: (dice.roll(4) == 0).then(|| "me".into()),
                    secret: (dice.roll(4) == 0).then(|| "new".into()),
                    active: (dice.roll(2) == 0).then_some(dice.roll(5) > 0),
                };
                self.same(|store| store.edit(&thing, edit.clone())).await;
            }
        }
    }

    async fn order(&mut self, dice: &mut Dice) {
        if dice.roll(3) == 0 {
            let proxy_failures = [ProxyFailures::Total, ProxyFailures::Consecutive];
            let adjustable = Adjustable {
                session_limit: 1 + dice.roll(3) as i32,
                max_retries: dice.roll(3) as i32,
                proxy_failures: proxy_failures[dice.roll(2) as usize],
            };
            self.settings.adjustable = adjustable;
            self.same(|store| store.set_settings(adjustable)).await;
        } else {
            let mode = if dice.roll(2) == 0 { Mode::Run } else { *dice.pick(Mode::ALL).unwrap() };
            let task_id = (dice.roll(2) == 0).then_some(TaskId(Uuid::from_u128(7)));
            self.same(|store| store.set_control(Control { mode, task_id })).await;
        }
    }

    /// What an operator does now and then.
    async fn set_right(&self) {
        let edit = Edit { active: Some(true), ..Edit::default() };
        for number in 0..WORKERS {
            for thing in
                [Thing::Worker(worker_id(number)), Thing::Proxy(proxy_id(number)), writer(number)]
            {
                self.same(|store| store.edit(&thing, edit.clone())).await;
            }
        }
        let control = Control { mode: Mode::Run, task_id: None };
        self.same(|store| store.set_control(control)).await;
    }

    async fn turn(&mut self, verb: u8, dice: &mut Dice) {
        self.advance(SignedDuration::from_micros(1 + dice.roll(3_000_000) as i64));
        let process = self.processes[dice.roll(2) as usize];
        match verb {
            0..3 => self.add_missions(dice).await,
            3..7 => self.wish(Wish::Queue, dice).await,
            7 => self.wish(Wish::Cancel, dice).await,
            8 => self.wish(Wish::Retry { from_scrape: dice.roll(2) == 0 }, dice).await,
            9..13 => self.add_thing(dice).await,
            13 => self.change_thing(dice).await,
            14 => self.order(dice).await,
            SET_RIGHT => self.set_right().await,
            LEASE..20 => self.lease(process).await,
            20 => {
                let workers: Vec<WorkerId> =
                    self.workers.iter().map(|(id, ..)| id.clone()).take(2).collect();
                self.same(|store| store.release(process, workers.clone())).await;
            }
            21 => self.same(|store| store.leave(process)).await,
            22 => {
                let seconds = [20, 200, 700, 7000][dice.roll(4) as usize];
                self.advance(SignedDuration::from_secs(seconds));
            }
            23..31 => self.store(dice).await,
            SUPERVISE_ALL..36 => self.supervise_all(dice).await,
            _ => self.supervise(dice).await,
        }
        self.compare().await;
    }

    /// Enough of everything for something to happen.
    async fn begin(&mut self) {
        let control = Control { mode: Mode::Run, task_id: None };
        self.same(|store| store.set_control(control)).await;
        let mut dice = Dice(1);
        for _ in 0..60 {
            self.add_thing(&mut dice).await;
        }
        for _ in 0..6 {
            self.add_missions(&mut dice).await;
        }
        self.same(|store| async move { store.wish(&Filter::default(), Wish::Queue, "me").await })
            .await;
        self.lease(self.processes[0]).await;
        self.compare().await;
    }
}

fn writer_says(ask: writer::Ask, dice: &mut Dice) -> Reply {
    let away = Reply::Trouble(Trouble::Away {
        code: ErrorCode::Error301,
        message: "connection refused".into(),
    });
    let report = |status, dice: &mut Dice| WriteReport {
        status,
        total: Some(100),
        processed: Some(dice.roll(100) as i64),
        success_count: Some(90),
        failed_count: Some(dice.roll(2) as i64),
        failed_items: vec![serde_json::json!({ "id": 1, "reason": "bad" })],
        error_code: None,
        message: None,
    };
    let roll = dice.roll(8);
    match ask {
        writer::Ask::Process => match roll {
            0 => away,
            1 => Reply::Trouble(Trouble::Refused { message: "no".into() }),
            2 => Reply::Trouble(Trouble::Busy { after: None }),
            _ => Reply::Accepted { job_id: None },
        },
        writer::Ask::Status => match roll {
            0 => away,
            1 => Reply::Unknown,
            2 => Reply::Write(report(WriteStatus::Failed, dice)),
            3 => Reply::Write(report(WriteStatus::Processing, dice)),
            4 => Reply::Write(report(WriteStatus::Partial, dice)),
            _ => Reply::Write(report(WriteStatus::Completed, dice)),
        },
    }
}

fn worker_id(number: u64) -> WorkerId {
    WorkerId(format!("wrk_{number}"))
}

fn proxy_id(number: u64) -> ProxyId {
    ProxyId(format!("prx_{number}"))
}

fn writer_id(number: u64) -> WriterId {
    WriterId(format!("wrt_{number}"))
}

fn writer(number: u64) -> Thing {
    Thing::Writer(writer_id(number))
}

/// Without their ids, in an order of their own where times are equal.
fn nameless(entries: Vec<LogEntry>) -> Vec<String> {
    let mut entries: Vec<(Timestamp, String)> = entries
        .into_iter()
        .map(|entry| {
            let time = entry.timestamp;
            (time, format!("{:?}", LogEntry { id: LogId(String::new()), ..entry }))
        })
        .collect();
    entries.sort();
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// Does all of it, and returns what happened.
fn run(verbs: &[(u8, u64)]) -> BTreeSet<EventKind> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut both = Both::new().await;
        both.begin().await;
        for (verb, seed) in verbs {
            both.turn(*verb, &mut Dice(*seed)).await;
        }
        let both = both.reopened().await;
        both.compare().await;
        both.ask(&mut Dice(7)).await;
        both.memory.tables().logs.iter().map(|entry| entry.event).collect()
    })
}

#[test]
fn nearly_all_that_can_happen_happens_to_both() {
    let mut dice = Dice(7);
    // Mostly work: what people do undoes much of it.
    let mut verb = || match dice.roll(8) {
        0..4 => SUPERVISE_ALL,
        4 => LEASE,
        5 => SET_RIGHT,
        _ => dice.roll(60) as u8,
    };
    let verbs: Vec<u8> = (0..300).map(|_| verb()).collect();
    let verbs: Vec<(u8, u64)> = verbs.into_iter().zip(1..).collect();
    let happened = run(&verbs);
    let missing: Vec<_> = EventKind::ALL.iter().filter(|event| !happened.contains(event)).collect();
    assert!(missing.len() <= 4, "never happened: {missing:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_store_on_duckdb_answers_as_the_one_in_memory(
        verbs in prop::collection::vec((0_u8..60, any::<u64>()), 80..160)
    ) {
        run(&verbs);
    }
}
