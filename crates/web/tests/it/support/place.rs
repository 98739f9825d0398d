//! Places where a database can be: a file, or a database of its own on the test server.

use std::time::Duration;

use lavra_db::{Database, Schema, Target, tokio_postgres};
use tempfile::TempDir;
use url::Url;
use uuid::Uuid;

use super::until;

const PATIENCE: Duration = Duration::from_secs(10);

/// Makes a test of each behaviour on each engine: `on_duckdb::…`, `on_postgres::…`.
macro_rules! on_each_engine {
    ($($behaviour:ident),* $(,)?) => {
        mod on_duckdb {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour($crate::support::Place::file()).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour($crate::support::Place::server().await).await;
            })*
        }
    };
}
pub(crate) use on_each_engine;

pub(crate) enum Place {
    File(TempDir),
    Server(OwnDatabase),
}

impl Place {
    pub(crate) fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    pub(crate) async fn server() -> Self {
        Self::Server(OwnDatabase::create().await)
    }

    pub(crate) async fn open(&self) -> Database {
        // A file whose server has just ended may be held for a moment more.
        until("the database", PATIENCE, || async {
            match Database::open(&self.target(), Schema::default(), PATIENCE).await {
                Ok(database) => Some(database),
                Err(lavra_db::Error::Held { .. }) => None,
                Err(error) => panic!("{error}"),
            }
        })
        .await
    }

    fn target(&self) -> Target {
        match self {
            Self::File(directory) => Target::File(directory.path().join("lavra.duckdb")),
            Self::Server(own) => Target::parse(own.url.as_str()).unwrap(),
        }
    }
}

/// Dropped at the end.
pub(crate) struct OwnDatabase {
    name: String,
    pub(crate) url: Url,
}

impl OwnDatabase {
    pub(crate) async fn create() -> Self {
        let name = format!("test_{}", Uuid::new_v4().simple());
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        as_superuser("postgres", &create).await.unwrap();
        let mut url = server_url();
        url.set_path(&name);
        Self { name, url }
    }

    /// Runs SQL in it.
    pub(crate) async fn execute(&self, sql: &str) {
        as_superuser(&self.name, sql).await.unwrap();
    }
}

impl Drop for OwnDatabase {
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

fn server_url() -> Url {
    let text = std::env::var("LAVRA_TEST_POSTGRES")
        .unwrap_or_else(|_| panic!("LAVRA_TEST_POSTGRES is not set: run it by cargo xtask test"));
    text.parse().unwrap()
}

async fn as_superuser(database: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let mut url = server_url();
    url.set_path(database);
    let (client, connection) = tokio_postgres::connect(url.as_str(), tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    let result = client.batch_execute(sql).await;
    connection.abort();
    result
}
