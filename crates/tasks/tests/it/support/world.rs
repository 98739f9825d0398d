//! A store of its own for each test, on one of the engines.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use lavra_db::{Database, Schema, Target, migrate};
use lavra_tasks::MIGRATIONS;
use lavra_tasks::store::Store;
use lavra_testkit::{PGBOUNCER, POSTGRES, Server, prove_sessions};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    database: Database,
    place: Place,
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

impl Deref for World {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl World {
    pub(crate) async fn on_duckdb() -> Self {
        Self::migrated(Place::File(tempfile::tempdir().unwrap()), Schema::default()).await
    }

    /// As a process has it that listens: it knows its connections to be sessions, and prepares
    /// statements and copies on them. Behind PgBouncer it does neither.
    pub(crate) async fn on_postgres() -> Self {
        let place = Place::Server(Server::create(POSTGRES, MIGRATIONS).await);
        let world = Self::open(place, Schema::default()).await;
        prove_sessions(&world.database).await;
        world
    }

    pub(crate) async fn behind_pgbouncer() -> Self {
        Self::open(Place::Server(Server::create(PGBOUNCER, MIGRATIONS).await), Schema::default())
            .await
    }

    /// On the same engine, another database with another schema name.
    pub(crate) async fn with_schema(self, name: &str) -> Self {
        let schema = Schema::parse(name).unwrap();
        let place = match self.place {
            Place::File(_) => Place::File(tempfile::tempdir().unwrap()),
            Place::Server(server) => Place::Server(server.another().await),
        };
        Self::migrated(place, schema).await
    }

    async fn migrated(place: Place, schema: Schema) -> Self {
        let database = Database::open(&place.target(), schema, PATIENCE).await.unwrap();
        migrate(&database, MIGRATIONS).await.unwrap();
        Self::with(place, database).await
    }

    async fn open(place: Place, schema: Schema) -> Self {
        let database = Database::open(&place.target(), schema, PATIENCE).await.unwrap();
        Self::with(place, database).await
    }

    async fn with(place: Place, database: Database) -> Self {
        let store = lavra_tasks::store(&database).await.unwrap();
        Self { store, database, place }
    }

    /// Closes the database and opens it again, as the next process would.
    pub(crate) async fn reopened(self) -> Self {
        let Self { store, database, place } = self;
        let schema = database.schema().clone();
        drop((store, database));
        Self::open(place, schema).await
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn server(&self) -> &Server {
        match &self.place {
            Place::File(_) => panic!("a file is no server"),
            Place::Server(server) => server,
        }
    }

    /// Runs SQL that both engines understand: what time or a person would have done.
    pub(crate) async fn execute(&self, sql: &str) {
        match &self.database {
            Database::Postgres(pg) => {
                pg.query("run a test's SQL", sql, &[]).await.unwrap();
            }
            Database::Duck(duck) => {
                let sql = duck.schema().apply(sql).into_owned();
                duck.write("run a test's SQL", move |tx| tx.execute_batch(&sql)).await.unwrap();
            }
        }
    }

    /// The one number that `sql` selects.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        match &self.database {
            Database::Postgres(pg) => {
                pg.query("run a test's SQL", sql, &[]).await.unwrap()[0].get(0)
            }
            Database::Duck(duck) => {
                let sql = duck.schema().apply(sql).into_owned();
                let read = move |connection: &lavra_db::duckdb::Connection| {
                    connection.query_row(&sql, [], |row| row.get(0))
                };
                duck.read("run a test's SQL", read).await.unwrap()
            }
        }
    }
}
