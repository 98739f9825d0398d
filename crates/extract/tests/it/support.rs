//! A store of its own for each test: on one of the engines, or in memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::civil::date;
use lavra_db::{Database, Migration, Schema, Target, migrate};
use lavra_extract::Memory;
use lavra_extract::machine::{Happening, next};
use lavra_extract::model::{Extraction, ExtractionId, Totals, Window};
use lavra_extract::store::{
    Arrival, Change, Done, Held, Outcome, Planned, Scope, Store, Want, Write, Written,
};
use lavra_tasks::model::ProcessId;
use lavra_tasks::store::Process;
use lavra_testkit::{PGBOUNCER, POSTGRES, Server, prove_sessions};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const STALE: Duration = Duration::from_secs(10);
pub(crate) const NAME: &str = "contratos_publicacao";

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    kept: Kept,
}

/// Where the store is.
enum Kept {
    Database { database: Database, tasks: Arc<dyn lavra_tasks::store::Store>, _place: Place },
    Memory(Memory),
}

enum Place {
    File { _directory: TempDir },
    Server { _server: Server },
}

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

pub(crate) fn migrations() -> Vec<Migration> {
    let mut all = lavra_tasks::MIGRATIONS.to_vec();
    all.extend(lavra_extract::migrations("pncp"));
    all
}

impl World {
    pub(crate) async fn on_duckdb() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::File(directory.path().join("lavra.duckdb"));
        Self::open(&target, Place::File { _directory: directory }).await
    }

    pub(crate) async fn on_postgres() -> Self {
        let server = Server::create(POSTGRES, &migrations()).await;
        let world = Self::open(&server.target(), Place::Server { _server: server }).await;
        prove_sessions(world.database()).await;
        world
    }

    pub(crate) async fn behind_pgbouncer() -> Self {
        let server = Server::create(PGBOUNCER, &migrations()).await;
        Self::open(&server.target(), Place::Server { _server: server }).await
    }

    async fn open(target: &Target, place: Place) -> Self {
        let database = Database::open(target, Schema::default(), PATIENCE).await.unwrap();
        migrate(&database, &migrations()).await.unwrap();
        let tasks = lavra_tasks::store(&database).await.unwrap();
        let store = lavra_extract::store_of(&database, "pncp");
        Self { store, kept: Kept::Database { database, tasks, _place: place } }
    }

    pub(crate) fn in_memory() -> Self {
        let memory = Memory::new("2026-11-16T10:00:00Z".parse().unwrap());
        Self { store: Arc::new(memory.clone()), kept: Kept::Memory(memory) }
    }

    pub(crate) fn database(&self) -> &Database {
        match &self.kept {
            Kept::Database { database, .. } => database,
            Kept::Memory(_) => panic!("there is no database in memory"),
        }
    }

    /// What a database answers to `sql`, or a store in memory to `look`.
    pub(crate) async fn look(
        &self,
        sql: &'static str,
        look: impl FnOnce(&Memory) -> String,
    ) -> String {
        match &self.kept {
            Kept::Database { .. } => self.ask(sql).await,
            Kept::Memory(memory) => look(memory),
        }
    }

    /// The first column of the first row, as text.
    pub(crate) async fn ask(&self, sql: &'static str) -> String {
        match self.database() {
            Database::Duck(duck) => {
                let read = move |connection: &lavra_db::duckdb::Connection| {
                    let sql = format!("SELECT x::VARCHAR FROM ({sql}) q(x)");
                    connection.query_row(&sql, [], |row| row.get(0))
                };
                duck.read("ask", read).await.unwrap()
            }
            Database::Postgres(pg) => {
                let sql = format!("SELECT x::text FROM ({sql}) q(x)");
                pg.query("ask", &sql, &[]).await.unwrap()[0].get(0)
            }
        }
    }

    /// Changes what is stored, behind everyone's back.
    pub(crate) async fn meddle(&self, sql: &'static str) {
        match self.database() {
            Database::Duck(duck) => {
                let job = move |tx: &lavra_db::duckdb::Connection| tx.execute_batch(sql);
                duck.write("meddle", job).await.unwrap();
            }
            Database::Postgres(pg) => pg.client().await.unwrap().batch_execute(sql).await.unwrap(),
        }
    }

    /// The bodies of a task's pages, as far as they count.
    pub(crate) async fn bodies(&self, task: &ExtractionId) -> Vec<String> {
        let sql = "SELECT r.response_content FROM psa.pncp_pages p
                   JOIN psa.pncp_raw_responses r ON r.id = p.response_id
                   JOIN psa.pncp_extraction_windows w ON w.task_id = p.task_id
                   WHERE p.task_id = $1 AND p.page > w.base AND p.page <= w.base + w.total_pages
                   ORDER BY p.page";
        match self.database() {
            Database::Duck(duck) => {
                let id = task.0.clone();
                let read = move |connection: &lavra_db::duckdb::Connection| {
                    let mut statement = connection.prepare(sql)?;
                    statement.query_map([id], |row| row.get(0))?.collect()
                };
                duck.read("read bodies", read).await.unwrap()
            }
            Database::Postgres(pg) => {
                let params = [(&task.0 as _, lavra_db::tokio_postgres::types::Type::TEXT)];
                let rows = pg.query("read bodies", sql, &params).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }

    /// A process that lives.
    pub(crate) async fn process(&self) -> ProcessId {
        let id = ProcessId(self.store.clock().new_id());
        match &self.kept {
            Kept::Database { tasks, .. } => {
                let process = Process { id, name: "test".into(), kinds: Vec::new() };
                tasks.beat(process, Vec::new()).await.unwrap();
            }
            Kept::Memory(memory) => memory.beat(id),
        }
        id
    }

    pub(crate) async fn retire(&self, process: ProcessId) {
        match &self.kept {
            Kept::Database { tasks, .. } => tasks.retire(process).await.unwrap(),
            Kept::Memory(memory) => memory.retire(process),
        }
    }

    pub(crate) async fn plan(&self, months: i8) {
        let tasks = (1..=months).map(|month| {
            let data_date = date(2024, month, 1);
            let task_id = ExtractionId::new(NAME, data_date);
            Planned { task_id, endpoint_name: NAME.into(), data_date }
        });
        assert_eq!(self.store.plan(tasks.collect()).await.unwrap(), months as usize);
    }

    pub(crate) async fn candidates(&self, want: Want) -> Vec<Extraction> {
        self.store.candidates(&scope(), want, STALE, 10).await.unwrap()
    }

    pub(crate) async fn task(&self, month: i8) -> Extraction {
        let id = ExtractionId::new(NAME, date(2024, month, 1));
        self.store.task(&id).await.unwrap().unwrap()
    }

    pub(crate) async fn write(&self, write: Write) -> Written {
        self.store.write(vec![write]).await.unwrap()[0]
    }

    /// What happens to a task, as whoever holds it would write it.
    pub(crate) fn change(&self, task: &Extraction, happening: Happening, held: Held) -> Write {
        let next = next(task, happening, self.store.clock().now()).unwrap();
        let change = Change { next, held, totals: None, windows: None, missing: None };
        Write {
            task: task.task_id.clone(),
            token: task.token,
            change: Some(change),
            arrivals: Vec::new(),
        }
    }

    /// A task that `by` is at work on, with three pages of ten announced.
    pub(crate) async fn fetching(&self, by: ProcessId) -> Extraction {
        self.plan(1).await;
        let held = Held::Claimed { by, begun: false };
        self.write(self.change(&self.task(1).await, Happening::ClaimedToDiscover, held)).await;
        let task = self.task(1).await;
        let mut found = self.change(
            &task,
            Happening::Discovered { is_over: true },
            Held::Claimed { by, begun: true },
        );
        let change = found.change.as_mut().unwrap();
        change.totals = Some(Totals::of(25, 10));
        change.windows = Some(vec![window(1, Some(Totals::of(25, 10)))]);
        found.arrivals = vec![self.arrival(1, "one", 10)];
        assert!(matches!(self.write(found).await, Written::Applied { .. }));
        self.task(1).await
    }

    pub(crate) fn arrival(&self, page: i64, content: &str, records: i64) -> Arrival {
        let done = Done {
            records,
            total_records: 25,
            generation: 1,
            body_hash: format!("body of {content}"),
            content_hash: content.into(),
        };
        Arrival {
            id: self.store.clock().new_id(),
            at: self.store.clock().now(),
            url: "http://127.0.0.1/v1/contratos".into(),
            endpoint_name: NAME.into(),
            data_date: date(2024, 1, 1),
            run: "a run".into(),
            parameters: r#"{"pagina":"1"}"#.into(),
            code: 200,
            headers: r#"{"content-type":"application/json"}"#.into(),
            body: Some(Bytes::from(format!(r#"{{"content":"{content} — São"}}"#))),
            current_page: page,
            page,
            page_size: 10,
            total_records: Some(25),
            total_pages: Some(3),
            elapsed: Duration::from_millis(7),
            outcome: Outcome::Done(done),
        }
    }
}

pub(crate) fn scope() -> Scope {
    Scope { endpoints: vec![NAME.into()], from: date(2024, 1, 1), to: date(2024, 12, 31) }
}

pub(crate) fn window(number: i32, totals: Option<Totals>) -> Window {
    let (first_day, last_day) = (date(2024, 1, 1), date(2024, 1, 31));
    Window { number, first_day, last_day, base: 0, totals }
}
