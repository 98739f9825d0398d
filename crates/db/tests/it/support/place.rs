//! Places where a database can be: a file, a server, a server behind a pooler. A behaviour that
//! all of them share is written once, as a function of a [`Place`], and run on each by
//! [`on_each_engine`].

use std::path::PathBuf;
use std::time::Duration;

use lavra_db::{Database, Duck, DuckOptions, GROUND, Migration, Pg, Schema, Target, migrate};
use secrecy::SecretString;
use tempfile::TempDir;
use tokio_postgres::NoTls;
use url::Url;
use uuid::Uuid;

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Makes a test of each behaviour on each engine: `on_duckdb::…`, `on_postgres::…`,
/// `behind_pgbouncer::…`.
macro_rules! on_each_engine {
    ($($behaviour:ident),* $(,)?) => {
        mod on_duckdb {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour($crate::support::place::Place::file()).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour($crate::support::place::Place::server().await).await;
            })*
        }
        mod behind_pgbouncer {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour($crate::support::place::Place::pooled().await).await;
            })*
        }
    };
}
pub(crate) use on_each_engine;

pub(crate) enum Place {
    File(TempDir),
    Server(Server),
}

/// A database of its own on the test server, dropped at the end.
pub(crate) struct Server {
    name: String,
    through: Url,
}

impl Place {
    pub(crate) fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    pub(crate) async fn server() -> Self {
        Self::Server(Server::create("LAVRA_TEST_POSTGRES").await)
    }

    pub(crate) async fn pooled() -> Self {
        Self::Server(Server::create("LAVRA_TEST_PGBOUNCER").await)
    }

    pub(crate) async fn open(&self, schema: Schema) -> Database {
        Database::open(&self.target(), schema, PATIENCE).await.unwrap()
    }

    pub(crate) fn target(&self) -> Target {
        match self {
            Self::File(directory) => Target::File(directory.path().join("lavra.duckdb")),
            Self::Server(server) => Target::Postgres(server.url()),
        }
    }

    /// Opened and migrated to [`GROUND`].
    pub(crate) async fn ground(&self) -> Database {
        const ONLY: &[Migration] = &[GROUND];
        let database = self.open(Schema::default()).await;
        migrate(&database, ONLY).await.unwrap();
        database
    }
}

impl Server {
    pub(crate) async fn direct() -> Self {
        Self::create("LAVRA_TEST_POSTGRES").await
    }

    pub(crate) async fn pooled() -> Self {
        Self::create("LAVRA_TEST_PGBOUNCER").await
    }

    async fn create(variable: &str) -> Self {
        let (name, through) = (format!("test_{}", Uuid::new_v4().simple()), url(variable));
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        as_superuser("postgres", &create).await.unwrap();
        Self { name, through }
    }

    pub(crate) fn url(&self) -> SecretString {
        self.url_of(&self.name)
    }

    /// The same server with another database.
    pub(crate) fn url_of(&self, database: &str) -> SecretString {
        let mut url = self.through.clone();
        url.set_path(database);
        String::from(url).into()
    }

    pub(crate) async fn connect(&self) -> Pg {
        Pg::connect(&self.url(), Schema::default(), PATIENCE).await.unwrap()
    }

    /// Runs SQL in this database, past any pooler.
    pub(crate) async fn execute(&self, sql: &str) {
        as_superuser(&self.name, sql).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let _best_effort = runtime.block_on(as_superuser("postgres", &drop));
            std::io::Result::Ok(())
        });
        let _best_effort = dropped.join();
    }
}

fn url(variable: &str) -> Url {
    let text = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: run it by cargo xtask test"));
    text.parse().unwrap()
}

async fn as_superuser(database: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let mut url = url("LAVRA_TEST_POSTGRES");
    url.set_path(database);
    let (client, connection) = tokio_postgres::connect(url.as_str(), NoTls).await?;
    let connection = tokio::spawn(connection);
    let result = client.batch_execute(sql).await;
    connection.abort();
    result
}

/// A DuckDB file in a directory of its own.
pub(crate) struct File(TempDir);

impl File {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("lavra.duckdb")
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    pub(crate) fn open(&self) -> Duck {
        open(&self.path())
    }
}

pub(crate) fn open(path: &std::path::Path) -> Duck {
    Duck::open(path, Schema::default(), DuckOptions::default()).unwrap()
}
