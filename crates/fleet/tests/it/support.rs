//! A store of its own for each test, and a shorthand for what a fleet has.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::date;
use jiff::{Timestamp, ToSpan};
use lavra_db::{Database, Duck, Keyring, Migration, Pg, Schema, Secrets, Target, migrate};
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::machine::worker::View;
use lavra_fleet::machine::{Guard, Step};
use lavra_fleet::memory::Memory;
use lavra_fleet::model::{
    Checkpoint, LogEntry, MediaType, Mission, MissionId, MissionStatus, Proxy, ProxyId, SessionId,
    Worker, WorkerId, WorkerStatus, WriterId,
};
use lavra_fleet::settings::Timing;
use lavra_fleet::store::{
    Edited, Filter, Leased, LogFilter, NewMission, NewProxy, NewWorker, NewWriter, Opened, Opening,
    Store,
};
use lavra_fleet::{DuckDb, Fleet, Postgres};
use lavra_tasks::model::{ProcessId, Token};
use lavra_testkit::{PGBOUNCER, POSTGRES, Server, prove_sessions};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const STALE: Duration = Duration::from_secs(10);

/// Makes of each function a test on each engine, and one in memory.
macro_rules! on_each_store {
    ($($behaviour:ident),* $(,)?) => {
        lavra_testkit::on_each_engine!($($behaviour),*);

        mod memory {
            $(#[tokio::test(start_paused = true)]
            async fn $behaviour() {
                super::$behaviour(crate::support::World::in_memory()).await;
            })*
        }
    };
}
pub(crate) use on_each_store;

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    place: Place,
}

enum Place {
    Memory,
    File { duck: Duck, _directory: TempDir },
    Server { pg: Pg, _server: Server },
}

pub(crate) fn migrations() -> Vec<Migration> {
    let mut all = lavra_tasks::MIGRATIONS.to_vec();
    all.extend(lavra_fleet::MIGRATIONS.iter().cloned());
    all
}

/// Runs `job` `count` times at once, and returns what each gave.
pub(crate) async fn at_once<T, F>(count: usize, job: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let started: Vec<_> = (0..count).map(|place| tokio::spawn(job(place))).collect();
    let mut ended = Vec::with_capacity(count);
    for task in started {
        ended.push(task.await.unwrap());
    }
    ended
}

impl World {
    pub(crate) fn in_memory() -> Self {
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        Self { store: Arc::new(Memory::new(now)), place: Place::Memory }
    }

    pub(crate) async fn on_duckdb() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::File(directory.path().join("lavra.duckdb"));
        let database = Database::open(&target, Schema::default(), PATIENCE).await.unwrap();
        migrate(&database, &migrations()).await.unwrap();
        let Database::Duck(duck) = database else { panic!("a file is DuckDB") };
        let store = Arc::new(DuckDb::new(duck.clone()));
        Self { store, place: Place::File { duck, _directory: directory } }
    }

    pub(crate) async fn on_postgres() -> Self {
        Self::on(Server::create(POSTGRES, &migrations()).await, true).await
    }

    pub(crate) async fn behind_pgbouncer() -> Self {
        Self::on(Server::create(PGBOUNCER, &migrations()).await, false).await
    }

    pub(crate) async fn on(server: Server, has_sessions: bool) -> Self {
        let database = Database::open(&server.target(), Schema::default(), PATIENCE).await.unwrap();
        if has_sessions {
            prove_sessions(&database).await;
        }
        let Database::Postgres(pg) = database else { panic!("a server is PostgreSQL") };
        let store = Arc::new(Postgres::new(pg.clone()));
        Self { store, place: Place::Server { pg, _server: server } }
    }

    pub(crate) fn pg(&self) -> &Pg {
        match &self.place {
            Place::Server { pg, .. } => pg,
            Place::File { .. } | Place::Memory => panic!("it is no server"),
        }
    }

    pub(crate) fn database(&self) -> Database {
        match &self.place {
            Place::Server { pg, .. } => Database::Postgres(pg.clone()),
            Place::File { duck, .. } => Database::Duck(duck.clone()),
            Place::Memory => panic!("it is no database"),
        }
    }

    /// The fleet as people have it, with a key for secrets.
    pub(crate) fn as_people_have_it(&self, timing: &Timing) -> Fleet {
        let (database, key) = (self.database(), Keyring::generate());
        let source = move |_| {
            let keyring = Keyring::parse(&key.clone().into())?;
            Ok(Some(Secrets::new(database.clone(), keyring)))
        };
        Fleet::open(&self.database(), Box::new(source), *timing).unwrap()
    }

    pub(crate) async fn execute(&self, sql: &str) {
        match &self.place {
            Place::File { duck, .. } => {
                let sql = sql.to_owned();
                let job = move |tx: &lavra_db::duckdb::Connection| tx.execute_batch(&sql);
                duck.write("run a test's SQL", job).await.unwrap();
            }
            Place::Server { .. } | Place::Memory => {
                self.pg().query("run a test's SQL", sql, &[]).await.unwrap();
            }
        }
    }

    // --- time ----------------------------------------------------------------------------------

    /// A little later.
    pub(crate) async fn later(&self) -> Timestamp {
        if let Place::Memory = self.place {
            tokio::time::advance(Duration::from_millis(5)).await;
        }
        self.now()
    }

    pub(crate) fn now(&self) -> Timestamp {
        let now = self.store.clock().now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap()
    }

    /// The process has not said that it lives for longer than allowed.
    pub(crate) async fn falls_silent(&self, process: ProcessId) {
        match &self.place {
            Place::Memory => tokio::time::advance(STALE + Duration::from_secs(1)).await,
            Place::File { .. } | Place::Server { .. } => {
                let sql = format!(
                    "UPDATE public.fleet_processes SET seen_at = '2000-01-01T00:00:00Z'
                     WHERE id = '{process}'"
                );
                self.execute(&sql).await;
            }
        }
    }

    // --- missions ------------------------------------------------------------------------------

    pub(crate) fn new_mission(&self, day: i64) -> NewMission {
        NewMission {
            id: MissionId::new(self.store.clock()),
            date_start: date(2025, 1, 1) + day.days(),
            date_end: date(2025, 1, 2) + day.days(),
            media_type: MediaType::All,
            languages: vec!["pt".into(), "en".into()],
        }
    }

    /// So many new missions, in the bank.
    pub(crate) async fn bank(&self, count: i64) -> Vec<MissionId> {
        let new: Vec<NewMission> = (0..count).map(|day| self.new_mission(day)).collect();
        let ids: Vec<MissionId> = new.iter().map(|mission| mission.id.clone()).collect();
        assert_eq!(self.store.add_missions(new, true).await.unwrap(), ids);
        ids
    }

    /// So many new missions, in the queue.
    pub(crate) async fn queue(&self, count: i64) -> Vec<MissionId> {
        let ids = self.bank(count).await;
        let queued = self.store.wish(&these(&ids), Wish::Queue, "ana").await.unwrap();
        assert_eq!(queued, ids);
        ids
    }

    pub(crate) async fn mission(&self, id: &MissionId) -> Mission {
        let filter = these(std::slice::from_ref(id));
        self.store.missions(&filter, None, 1).await.unwrap().remove(0)
    }

    /// A mission of the bank in any state.
    pub(crate) async fn put(&self, change: impl FnOnce(&mut Mission)) -> Mission {
        let id = self.bank(1).await.remove(0);
        let mut mission = self.mission(&id).await;
        change(&mut mission);
        let step = Step { mission: Some((Guard::Queued, mission.clone())), ..Step::default() };
        assert!(self.applied(step).await);
        mission
    }

    // --- things --------------------------------------------------------------------------------

    pub(crate) async fn add_worker(&self, name: &str) -> WorkerId {
        let new = self.new_worker(name);
        let id = new.id.clone();
        assert_eq!(self.store.add_worker(new).await.unwrap(), Edited::Done);
        id
    }

    pub(crate) fn new_worker(&self, name: &str) -> NewWorker {
        NewWorker {
            id: WorkerId::new(self.store.clock()),
            name: name.into(),
            url: format!("http://{name}.example"),
            api_key: format!("key of {name}"),
            storage_domain: Some("files.example".into()),
            active: true,
        }
    }

    pub(crate) fn new_proxy(&self, name: &str) -> NewProxy {
        NewProxy {
            id: ProxyId::new(self.store.clock()),
            name: name.into(),
            host: "10.0.0.1".into(),
            port: Some(3128),
            username: Some("u".into()),
            password: Some(format!("password of {name}")),
            active: true,
        }
    }

    pub(crate) async fn add_proxy(&self, name: &str) -> ProxyId {
        let new = self.new_proxy(name);
        let id = new.id.clone();
        assert_eq!(self.store.add_proxy(new).await.unwrap(), Edited::Done);
        id
    }

    pub(crate) async fn add_writer(&self, name: &str) -> WriterId {
        let new = NewWriter {
            id: WriterId::new(self.store.clock()),
            name: name.into(),
            url: "http://writer.example".into(),
            api_key: "key".into(),
            active: true,
        };
        let id = new.id.clone();
        assert_eq!(self.store.add_writer(new).await.unwrap(), Edited::Done);
        id
    }

    pub(crate) async fn worker(&self, id: &WorkerId) -> Worker {
        let all = self.store.workers().await.unwrap();
        all.into_iter().find(|worker| worker.id == *id).unwrap()
    }

    pub(crate) async fn proxy(&self, id: &ProxyId) -> Proxy {
        let all = self.store.proxies().await.unwrap();
        all.into_iter().find(|proxy| proxy.id == *id).unwrap()
    }

    // --- orchestrators -------------------------------------------------------------------------

    #[expect(clippy::unused_self, reason = "whoever asks has a world")]
    pub(crate) fn process(&self) -> ProcessId {
        ProcessId(Uuid::new_v4())
    }

    pub(crate) async fn lease(&self, process: ProcessId) -> Leased {
        self.store.lease(process, STALE).await.unwrap()
    }

    /// So many workers, held by a new process.
    pub(crate) async fn fleet(&self, count: usize) -> (ProcessId, Vec<(WorkerId, Token)>) {
        for number in 0..count {
            self.add_worker(&format!("w{number:02}")).await;
        }
        let process = self.process();
        (process, self.lease(process).await.workers)
    }

    pub(crate) async fn view(&self, (id, token): &(WorkerId, Token)) -> View {
        self.store.view(id, *token).await.unwrap().unwrap()
    }

    pub(crate) async fn open(&self, (worker, token): &(WorkerId, Token), luck: u64) -> Opened {
        let session = SessionId::new(self.store.clock());
        let opening = Opening { worker: worker.clone(), token: *token, session, luck };
        self.store.open(opening).await.unwrap()
    }

    pub(crate) async fn applied(&self, step: Step) -> bool {
        self.store.apply(vec![step]).await.unwrap() == [true]
    }

    /// The worker as `change` makes it.
    pub(crate) async fn set_worker(
        &self,
        lease: &(WorkerId, Token),
        change: impl FnOnce(&mut Worker),
    ) {
        let mut worker = self.view(lease).await.worker;
        change(&mut worker);
        let step = Step { worker: Some((lease.1, worker)), ..Step::default() };
        assert!(self.applied(step).await);
    }

    pub(crate) async fn make_ready(&self, lease: &(WorkerId, Token)) {
        self.set_worker(lease, |worker| worker.status = WorkerStatus::Ready).await;
    }

    // --- the log -------------------------------------------------------------------------------

    pub(crate) async fn log_of(&self, id: &MissionId) -> Vec<LogEntry> {
        self.entries(LogFilter { mission: Some(id.clone()), ..LogFilter::default() }).await
    }

    /// All that match, oldest first.
    pub(crate) async fn entries(&self, filter: LogFilter) -> Vec<LogEntry> {
        let filter = LogFilter { oldest_first: true, limit: 10_000, ..filter };
        self.store.log(&filter).await.unwrap()
    }
}

pub(crate) fn these(ids: &[MissionId]) -> Filter {
    Filter { ids: ids.to_vec(), ..Filter::default() }
}

/// As it is while it is being stored.
pub(crate) fn storing(mission: &mut Mission) {
    mission.status = MissionStatus::Running;
    mission.checkpoint = Some(Checkpoint::Armazenamento);
    mission.worker_data_url = Some("https://files.example/a.json".into());
}

pub(crate) fn kinds(entries: &[LogEntry]) -> Vec<&'static str> {
    entries.iter().map(|entry| entry.event.as_str()).collect()
}
