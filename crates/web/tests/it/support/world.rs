//! The store of keys and sessions, on one of the engines, for its contract.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use lavra_db::{Database, Migration, Schema, Target, migrate};
use lavra_testkit::{PGBOUNCER, POSTGRES, Server, prove_sessions};
use lavra_web::access::{Store, store};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct World {
    store: Arc<dyn Store>,
    pub(crate) database: Database,
    place: Place,
}

enum Place {
    File(TempDir),
    Server(Server),
}

fn migrations() -> Vec<Migration> {
    [lavra_tasks::MIGRATIONS, lavra_web::MIGRATIONS].concat()
}

impl Deref for World {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl World {
    pub(crate) async fn on_duckdb() -> Self {
        Self::open(Place::File(tempfile::tempdir().unwrap())).await
    }

    pub(crate) async fn on_postgres() -> Self {
        let world = Self::open(Place::Server(Server::create(POSTGRES, &migrations()).await)).await;
        prove_sessions(&world.database).await;
        world
    }

    pub(crate) async fn behind_pgbouncer() -> Self {
        Self::open(Place::Server(Server::create(PGBOUNCER, &migrations()).await)).await
    }

    async fn open(place: Place) -> Self {
        let target = match &place {
            Place::File(directory) => Target::File(directory.path().join("lavra.duckdb")),
            Place::Server(server) => server.target(),
        };
        let database = Database::open(&target, Schema::default(), PATIENCE).await.unwrap();
        migrate(&database, &migrations()).await.unwrap();
        Self { store: store(&database), database, place }
    }

    /// Closes the database and opens it again, as the next process would.
    pub(crate) async fn reopened(self) -> Self {
        let Self { store, database, place } = self;
        drop((store, database));
        Self::open(place).await
    }
}
