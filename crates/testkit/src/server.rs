//! A database of its own for each test: a copy of a template that was migrated once.
//!
//! Tests are processes. The first one to come makes the template, under an advisory lock that
//! the others wait for; its name carries a hash of the migrations, so that a changed schema is
//! another template.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use lavra_db::tokio_postgres::error::SqlState;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::tokio_postgres::{self, Client, NoTls};
use lavra_db::{Database, Migration, Schema, Target, migrate};
use uuid::Uuid;

pub const POSTGRES: &str = "LAVRA_TEST_POSTGRES";
pub const PGBOUNCER: &str = "LAVRA_TEST_PGBOUNCER";
const PATIENCE: Duration = Duration::from_secs(10);
const TEMPLATE_LOCK: i64 = 0x6c61_7672_6174;

/// A database on the test server, dropped at the end.
#[derive(Debug)]
pub struct Server {
    name: String,
    variable: &'static str,
}

impl Server {
    /// A database with these migrations, or an empty one where there are none.
    pub async fn create(variable: &'static str, migrations: &[Migration]) -> Self {
        // Both, so that the message is the same whatever is missing.
        let (_, _) = (url(POSTGRES, ""), url(variable, ""));
        let template = match migrations {
            [] => "template0".to_owned(),
            migrations => template(migrations).await,
        };
        let name = format!("test_{}", Uuid::new_v4().simple());
        let client = connect("postgres").await;
        patiently(&client, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        Self { name, variable }
    }

    /// An empty database beside this one.
    pub async fn another(&self) -> Self {
        Self::create(self.variable, &[]).await
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the server itself listens.
    pub fn address() -> std::net::SocketAddr {
        let text = url(POSTGRES, "");
        let (_, host) = text.rsplit_once('@').expect("a URL with a user");
        host.trim_end_matches('/').parse().expect("an address and a port")
    }

    pub fn target(&self) -> Target {
        Target::parse(&url(self.variable, &self.name)).unwrap()
    }

    /// A connection of its own, past any pooler.
    pub async fn client(&self) -> Client {
        connect(&self.name).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let _best_effort =
                runtime.block_on(async { connect("postgres").await.batch_execute(&drop).await });
            std::io::Result::Ok(())
        });
        let _best_effort = dropped.join();
    }
}

fn url(variable: &str, database: &str) -> String {
    let text = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: run it by cargo xtask test"));
    let (server, _) = text.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{database}")
}

async fn connect(database: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&url(POSTGRES, database), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn template(migrations: &[Migration]) -> String {
    let mut hasher = DefaultHasher::new();
    for migration in migrations {
        (&migration.id, &migration.postgres).hash(&mut hasher);
    }
    let name = format!("lavra_{:016x}", hasher.finish());
    // The lock ends with the connection.
    let client = connect("postgres").await;
    let lock = [(&TEMPLATE_LOCK as _, Type::INT8)];
    client.query_typed("SELECT pg_advisory_lock($1)", &lock).await.unwrap();
    let sql = "SELECT datistemplate FROM pg_database WHERE datname = $1";
    let found = client.query_typed(sql, &[(&name as _, Type::TEXT)]).await.unwrap();
    if !found.first().is_some_and(|row| row.get(0)) {
        // There, but no template: whoever made it died half-way.
        client
            .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
            .await
            .unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0")).await.unwrap();
        let target = Target::parse(&url(POSTGRES, &name)).unwrap();
        let database = Database::open(&target, Schema::default(), PATIENCE).await.unwrap();
        migrate(&database, migrations).await.unwrap();
        drop(database);
        client.batch_execute(&format!("ALTER DATABASE {name} IS_TEMPLATE true")).await.unwrap();
    }
    name
}

/// A template with connections cannot be copied; those of its making are about to end.
async fn patiently(client: &Client, sql: &str) {
    for _ in 0..200 {
        match client.batch_execute(sql).await {
            Err(error) if error.code() == Some(&SqlState::OBJECT_IN_USE) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            done => return done.unwrap(),
        }
    }
    panic!("{sql}: the template stays in use");
}
