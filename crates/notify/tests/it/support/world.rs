//! A database of its own for each test, with everything that something can happen to.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::date;
use lavra_db::{Database, Keyring, Migration, Schema, Secrets, Target, migrate};
use lavra_fleet::Fleet;
use lavra_fleet::machine::{Entry, Step};
use lavra_fleet::model::{EventKind, MediaType, MissionId};
use lavra_fleet::store::NewMission;
use lavra_notify::model::{Topic, Webhook};
use lavra_notify::store::Store;
use lavra_notify::{LATE, NewWebhook, POLICY, Timing, Webhooks};
use lavra_tasks::machine::Happening;
use lavra_tasks::model::{DeadLetterId, ProcessId, Status, Task, TaskId};
use lavra_tasks::store::{DeadLetter, ListFilter, Process};
use lavra_tasks::{Backoff, NewTask, Policy, Settings, Tasks};
use lavra_testkit::{PGBOUNCER, POSTGRES, Server, prove_sessions};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const SECRET: &str = "a-secret-of-the-tests";

pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) tasks: Tasks,
    pub(crate) fleet: Fleet,
    pub(crate) webhooks: Webhooks,
    place: Place,
    key: String,
}

enum Place {
    File(TempDir),
    Server(Server),
}

impl Place {
    fn target(&self) -> Target {
        match self {
            Self::File(directory) => Target::File(directory.path().join("lavra.duckdb")),
            Self::Server(server) => server.target(),
        }
    }
}

pub(crate) fn migrations() -> Vec<Migration> {
    [lavra_tasks::MIGRATIONS, lavra_fleet::MIGRATIONS, lavra_notify::MIGRATIONS].concat()
}

/// Short, so that no test waits for a retry.
pub(crate) fn timing() -> Timing {
    let first = Duration::from_millis(20);
    Timing { timeout: Duration::from_secs(2), backoff: Backoff { first, longest: first } }
}

impl World {
    pub(crate) async fn on_duckdb() -> Self {
        Self::at(Place::File(tempfile::tempdir().unwrap()), Schema::default()).await
    }

    pub(crate) async fn on_postgres() -> Self {
        let place = Place::Server(Server::create(POSTGRES, &migrations()).await);
        let world = Self::at(place, Schema::default()).await;
        prove_sessions(&world.database).await;
        world
    }

    pub(crate) async fn behind_pgbouncer() -> Self {
        let place = Place::Server(Server::create(PGBOUNCER, &migrations()).await);
        Self::at(place, Schema::default()).await
    }

    async fn at(place: Place, schema: Schema) -> Self {
        let database = Database::open(&place.target(), schema, PATIENCE).await.unwrap();
        migrate(&database, &migrations()).await.unwrap();
        Self::with(place, database, Keyring::generate(), true).await
    }

    async fn with(place: Place, database: Database, key: String, private_allowed: bool) -> Self {
        let _only_the_first_counts = rustls::crypto::ring::default_provider().install_default();
        let (of, secret) = (database.clone(), key.clone());
        let source = move |_| {
            let keyring = Keyring::parse(&secret.clone().into())?;
            Ok(Some(Secrets::new(of.clone(), keyring)))
        };
        let of_fleet = lavra_fleet::settings::Timing::default();
        let fleet = Fleet::open(&database, Box::new(source), of_fleet).unwrap();
        let first = Duration::from_millis(20);
        let settings = Settings {
            backoff: Backoff { first, longest: first },
            policies: [
                ("act", Policy::default()),
                ("extract", Policy::default()),
                ("webhook", POLICY),
            ]
            .map(|(kind, policy)| (kind.to_owned(), policy))
            .into(),
            ..Settings::default()
        };
        let tasks = Tasks::open(&database, settings).await.unwrap();
        let keys = Arc::clone(&fleet.keys);
        let webhooks = Webhooks::open(&database, keys, timing(), private_allowed).unwrap();
        Self { database, tasks, fleet, webhooks, place, key }
    }

    /// The same place for a process that may not call internal addresses.
    pub(crate) async fn without_private(self) -> Self {
        Self::with(self.place, self.database, self.key, false).await
    }

    /// Another process on the same server.
    pub(crate) async fn another(&self) -> Self {
        let Place::Server(server) = &self.place else { panic!("a file has one process") };
        let database = Database::open(&server.target(), Schema::default(), PATIENCE).await.unwrap();
        let place = Place::File(tempfile::tempdir().unwrap());
        Self::with(place, database, self.key.clone(), true).await
    }

    pub(crate) fn server(&self) -> &Server {
        match &self.place {
            Place::Server(server) => server,
            Place::File(_) => panic!("a file is no server"),
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        lavra_notify::store_of(&self.database, LATE)
    }

    /// A webhook for these events; for all if none are named.
    pub(crate) async fn webhook(&self, name: &str, url: &str, events: &[Topic]) -> Webhook {
        let events = (!events.is_empty()).then(|| events.to_vec());
        let (url, secret) = (url.to_owned().into(), SECRET.to_owned().into());
        let order = NewWebhook { name: name.into(), url, secret, events };
        self.webhooks.add(order).await.unwrap()
    }

    // ---- what happens ----

    pub(crate) async fn mission(&self) -> MissionId {
        let id = MissionId::new(self.fleet.store.clock());
        let mission = NewMission {
            id: id.clone(),
            date_start: date(2026, 3, 1),
            date_end: date(2026, 3, 1),
            media_type: MediaType::All,
            languages: vec!["pt".into()],
        };
        self.fleet.store.add_missions(vec![mission], true).await.unwrap();
        id
    }

    async fn said(&self, mission_id: Option<MissionId>, event: EventKind, details: Value) {
        let Value::Object(details) = details else { panic!("details are an object") };
        let at = self.fleet.store.clock().now();
        let entry = Entry { mission_id, session_id: None, event, details, at };
        let step = Step { logs: vec![entry], ..Step::default() };
        assert_eq!(self.fleet.store.apply(vec![step]).await.unwrap(), [true]);
    }

    pub(crate) async fn mission_fails(&self) -> MissionId {
        let id = self.mission().await;
        let details = json!({
            "error_code": "ERROR203", "error_message": "page 3 timed out", "cause": "ERROR200",
            "retry_count": 3, "worker_id": "wrk_1",
        });
        self.said(Some(id.clone()), EventKind::MissionFailed, details).await;
        id
    }

    pub(crate) async fn worker_finds_no_proxy(&self, worker: &str) {
        let details = json!({
            "error_code": "ERROR501", "error_message": "no proxy is free", "worker_id": worker,
        });
        self.said(None, EventKind::SessionFailed, details).await;
    }

    /// What is no news.
    pub(crate) async fn session_fails(&self) {
        let details = json!({ "error_code": "ERROR100", "worker_id": "wrk_1" });
        self.said(None, EventKind::SessionFailed, details).await;
    }

    /// A task of this type in the hands of a worker.
    pub(crate) async fn claimed(&self, kind: &str) -> lavra_tasks::model::Claimed {
        let new = NewTask { kind: kind.into(), payload: json!({}), ..NewTask::default() };
        let id = self.tasks.create(new).await.unwrap().id;
        let process = ProcessId(self.tasks.store().clock().new_id());
        let worker = Process { id: process, name: "test".into(), kinds: vec![kind.into()] };
        let claimed = self.tasks.claim(worker, 1000).await.unwrap();
        claimed.into_iter().find(|claimed| claimed.id == id).unwrap()
    }

    async fn report(&self, task: &lavra_tasks::model::Claimed, happening: Happening) {
        self.tasks.report(task.id, task.token, happening, None, None).await.unwrap();
    }

    pub(crate) async fn task_fails(&self, kind: &str, error: &str) -> TaskId {
        let task = self.claimed(kind).await;
        self.report(&task, Happening::Fail { error: error.into(), retry_in: None }).await;
        task.id
    }

    pub(crate) async fn task_completes(&self, kind: &str) -> TaskId {
        let task = self.claimed(kind).await;
        self.report(&task, Happening::Complete).await;
        task.id
    }

    /// As the handler of `extract` ends, with so many months that are partial.
    pub(crate) async fn run_ends(&self, partial: u64) -> TaskId {
        let task = self.claimed("extract").await;
        let summary = json!({
            "complete": 3, "partial": partial, "failed": 0, "pending": 0, "pages": 40,
            "records": 2000,
        });
        let said = json!({
            "source": "pncp", "from": "2024-01", "to": "2024-03", "endpoints": [],
            "summary": summary,
        });
        let ended = Happening::Step { progress: 99, state: "Ended".into(), detail: Some(said) };
        self.report(&task, ended).await;
        let end = if partial == 0 {
            Happening::Complete
        } else {
            Happening::Fail { error: "3 complete, some partial".into(), retry_in: None }
        };
        self.report(&task, end).await;
        task.id
    }

    pub(crate) async fn message_dies(&self) -> DeadLetterId {
        let id = DeadLetterId(self.tasks.store().clock().new_id());
        let letter = DeadLetter {
            id,
            task_id: None,
            kind: None,
            reason: "the message cannot be read".into(),
            body: Some("?".into()),
            created_at: self.tasks.now(),
        };
        self.tasks.store().bury(letter).await.unwrap();
        id
    }

    // ---- what came of it ----

    /// All deliveries, oldest first.
    pub(crate) async fn deliveries(&self) -> Vec<Task> {
        let filter =
            ListFilter { kind: Some("webhook".into()), limit: 10_000, ..Default::default() };
        let mut found = self.tasks.store().list(filter).await.unwrap();
        found.reverse();
        found
    }

    /// The type of the event and the name of the webhook of each delivery, in their order.
    pub(crate) async fn told(&self) -> Vec<(String, String)> {
        let names = self.webhooks.list().await.unwrap();
        let mut all = Vec::new();
        for task in self.deliveries().await {
            let id = task.metadata["webhook"].as_str().unwrap();
            let id: Uuid = id.parse().unwrap();
            let webhook = names.iter().find(|webhook| webhook.id.0 == id);
            let name = webhook.map_or("(gone)", |webhook| webhook.name.as_str());
            all.push((task.metadata["event"].as_str().unwrap().to_owned(), name.to_owned()));
        }
        all.sort();
        all
    }

    /// Waits until no delivery is under way.
    pub(crate) async fn settled(&self) -> Vec<Task> {
        let begun = std::time::Instant::now();
        loop {
            let all = self.deliveries().await;
            if all.iter().all(|task| task.status.is_terminal()) {
                return all;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "it never ended: {all:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn delivered(&self, count: usize) -> Vec<Task> {
        let begun = std::time::Instant::now();
        loop {
            let all = self.deliveries().await;
            let done = all.iter().filter(|task| task.status == Status::Completed).count();
            if done >= count {
                return all;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{done} of {count}: {all:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn execute(&self, sql: &str) {
        match &self.database {
            Database::Postgres(pg) => {
                pg.query("run a test's SQL", sql, &[]).await.unwrap();
            }
            Database::Duck(duck) => {
                let sql = sql.to_owned();
                duck.write("run a test's SQL", move |tx| tx.execute_batch(&sql)).await.unwrap();
            }
        }
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        match &self.database {
            Database::Postgres(pg) => {
                pg.query("run a test's SQL", sql, &[]).await.unwrap()[0].get(0)
            }
            Database::Duck(duck) => {
                let sql = sql.to_owned();
                let read = move |connection: &lavra_db::duckdb::Connection| {
                    connection.query_row(&sql, [], |row| row.get(0))
                };
                duck.read("run a test's SQL", read).await.unwrap()
            }
        }
    }
}
