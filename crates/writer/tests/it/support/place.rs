//! A database of its own for each test, and a writer on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lavra_db::{Database, Keyring, Migration, Schema, Secrets, Target, migrate};
use lavra_testkit::{PGBOUNCER, POSTGRES, Server};
use lavra_writer::{Access, Config, Names, Service, SystemNames, Timing, router};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::line::Line;

const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const KEY: &str = "marker-api-key-0001";

pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) directory: TempDir,
    target: Target,
    _server: Option<Server>,
    running: Option<Running>,
    http: reqwest::Client,
    key: String,
    /// Whether its writers have the key.
    pub(crate) seals: bool,
}

/// A writer that can be killed with everything it has under way.
struct Running {
    base: String,
    stop: CancellationToken,
    parts: Vec<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn migrations() -> Vec<Migration> {
    [lavra_tasks::MIGRATIONS, lavra_fleet::MIGRATIONS, lavra_writer::MIGRATIONS].concat()
}

impl World {
    pub(crate) async fn on_duckdb() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::File(directory.path().join("lavra.duckdb"));
        Self::on(target, directory, None).await
    }

    pub(crate) async fn on_postgres() -> Self {
        let server = Server::create(POSTGRES, &migrations()).await;
        Self::on(server.target(), tempfile::tempdir().unwrap(), Some(server)).await
    }

    pub(crate) async fn behind_pgbouncer() -> Self {
        let server = Server::create(PGBOUNCER, &migrations()).await;
        Self::on(server.target(), tempfile::tempdir().unwrap(), Some(server)).await
    }

    async fn on(target: Target, directory: TempDir, server: Option<Server>) -> Self {
        let database = Database::open(&target, Schema::default(), PATIENCE).await.unwrap();
        if server.is_none() {
            migrate(&database, &migrations()).await.unwrap();
        }
        let http = {
            let _installed = rustls::crypto::ring::default_provider().install_default();
            reqwest::Client::builder().no_proxy().build().unwrap()
        };
        let key = Keyring::generate();
        Self { database, directory, target, _server: server, running: None, http, key, seals: true }
    }

    /// A second writer's place on the same database.
    pub(crate) fn beside(&self) -> Self {
        Self {
            database: self.database.clone(),
            directory: tempfile::tempdir().unwrap(),
            target: self.target.clone(),
            _server: None,
            running: None,
            http: self.http.clone(),
            key: self.key.clone(),
            seals: self.seals,
        }
    }

    pub(crate) fn is_duckdb(&self) -> bool {
        matches!(self.database, Database::Duck(_))
    }

    /// Quick, and with loopback sources allowed.
    pub(crate) fn config() -> Config {
        Config {
            access: Access { private: vec!["127.0.0.1".parse().unwrap()], ..Access::default() },
            timing: Timing {
                heartbeat: Duration::from_millis(100),
                stale: Duration::from_millis(800),
                poll: Duration::from_millis(100),
                backoff: Duration::from_millis(20),
                connect: Duration::from_secs(2),
                silence: Duration::from_secs(2),
                ..Timing::default()
            },
            ..Config::default()
        }
    }

    pub(crate) async fn start(&mut self) {
        self.start_with(Self::config()).await;
    }

    pub(crate) async fn start_with(&mut self, config: Config) {
        self.start_as(config, Arc::new(SystemNames), true).await;
    }

    /// The writer's connections go by a line that can be cut; those of the test do not.
    pub(crate) async fn start_through(&mut self, line: &Line) {
        let Target::Postgres(url) = &self.target else { panic!("a file has no line") };
        let there = Server::address().to_string();
        let url = url.expose_secret().replace(&there, &line.address.to_string());
        self.target = Target::parse(&url).unwrap();
        self.start().await;
    }

    pub(crate) async fn start_as(&mut self, config: Config, names: Arc<dyn Names>, runs: bool) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let keyring = self.seals.then(|| Keyring::parse(&self.key.clone().into()).unwrap());
        let (file, target) = (self.database.clone(), self.target.clone());
        let stop = CancellationToken::new();
        let told = stop.clone();
        let started = runtime.spawn(async move {
            // A file has one owner; a server is connected to anew.
            let database = match &file {
                Database::Duck(_) => file,
                Database::Postgres(_) => {
                    Database::open(&target, Schema::default(), PATIENCE).await.unwrap()
                }
            };
            let secrets = keyring.map(|keyring| Secrets::new(database.clone(), keyring));
            let service = Service::with_names(&database, config, secrets, names).unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let base = format!("http://{}", listener.local_addr().unwrap());
            let router = router(service.clone(), Some(&KEY.to_owned().into()));
            let served = axum::serve(listener, router)
                .with_graceful_shutdown(told.clone().cancelled_owned());
            let mut parts = vec![tokio::spawn(async move { served.await.unwrap() })];
            if runs {
                parts.push(tokio::spawn(async move { service.run(told).await }));
            }
            (base, parts)
        });
        let (base, parts) = started.await.unwrap();
        self.running = Some(Running { base, stop, parts, runtime: Some(runtime) });
    }

    pub(crate) fn base(&self) -> &str {
        &self.running.as_ref().unwrap().base
    }

    /// As after SIGTERM.
    pub(crate) async fn stop(&mut self) {
        let mut running = self.running.take().unwrap();
        running.stop.cancel();
        for part in std::mem::take(&mut running.parts) {
            part.await.unwrap();
        }
    }

    /// As after `kill -9`: nobody says good-bye.
    pub(crate) fn kill(&mut self) {
        drop(self.running.take().unwrap());
    }

    pub(crate) async fn execute(&self, sql: &str) {
        match &self.database {
            Database::Postgres(pg) => {
                pg.client().await.unwrap().batch_execute(sql).await.unwrap();
            }
            Database::Duck(duck) => {
                let sql = sql.to_owned();
                duck.reshape(move |connection| connection.execute_batch(&sql)).await.unwrap();
            }
        }
    }

    /// The rows of a question, as JSON text.
    pub(crate) async fn ask(&self, sql: &str) -> Vec<Vec<Value>> {
        self.database.ask(sql, 1_000_000).await.unwrap().rows
    }

    pub(crate) async fn count(&self, table: &str) -> i64 {
        self.ask(&format!("SELECT count(*) AS n FROM {table}")).await[0][0].as_i64().unwrap()
    }

    pub(crate) async fn post(&self, body: &Value) -> (u16, Value) {
        let sent =
            self.http.post(format!("{}/process", self.base())).header("x-api-key", KEY).json(body);
        answer(sent).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.http.get(format!("{}{path}", self.base())).header("x-api-key", KEY)).await
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Sends an order and waits for its end.
    pub(crate) async fn run(&self, body: &Value) -> Value {
        let (status, answer) = self.post(body).await;
        assert_eq!(status, 200, "{answer}");
        self.end_of(answer["job_id"].as_str().unwrap()).await
    }

    pub(crate) async fn end_of(&self, id: &str) -> Value {
        self.until(id, |job| job["status"] != "processing").await
    }

    pub(crate) async fn until(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let (status, job) = self.get(&format!("/status/{id}")).await;
            assert_eq!(status, 200, "{job}");
            if is_so(&job) {
                return job;
            }
            assert!(begun.elapsed() < Duration::from_secs(25), "it takes too long: {job}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Everything in the tables that a secret could have got into.
    pub(crate) async fn all_text(&self) -> String {
        let mut text = String::new();
        for table in ["writer_jobs", "writer_failed_items"] {
            for row in self.ask(&format!("SELECT * FROM kodus_workflow.{table}")).await {
                text.push_str(&Value::from(row).to_string());
            }
        }
        // Such that what is not sealed can be read in it.
        let sealed =
            if self.is_duckdb() { "CAST(sealed AS VARCHAR)" } else { "encode(sealed, 'escape')" };
        let secrets = format!("SELECT name, {sealed} AS sealed FROM lavra.secrets");
        for row in self.ask(&secrets).await {
            text.push_str(&Value::from(row).to_string());
        }
        text
    }
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// An order of inline elements.
pub(crate) fn inline(table: &str, elements: &Value) -> Value {
    json!({
        "config": { "table": table, "schema": "public", "operation": "upsert", "conflict_key": "id" },
        "source": { "type": "inline", "data": elements },
    })
}

/// An order of elements that stand in a file as they are written here.
pub(crate) fn from_file(world: &World, table: &str, elements: &str) -> Value {
    let file = world.directory.path().join("elements.json");
    std::fs::write(&file, elements).unwrap();
    let mut order = inline(table, &json!([]));
    order["source"] = json!({ "type": "file", "path": file });
    order
}

/// A writer that may read the files of its place.
pub(crate) fn with_files(world: &World) -> Config {
    let mut config = World::config();
    config.access.directories.push(world.directory.path().to_owned());
    config
}

pub(crate) fn from_url(table: &str, url: &str, path: &str) -> Value {
    json!({
        "config": { "table": table, "schema": "public", "operation": "upsert", "conflict_key": "id" },
        "source": { "type": "url", "url": url, "json_path": path },
    })
}

/// Failed items by their indices.
pub(crate) fn failed(job: &Value) -> BTreeMap<u64, Value> {
    let items = job["failed_items"].as_array().unwrap();
    items.iter().map(|item| (item["index"].as_u64().unwrap(), item.clone())).collect()
}

/// A table that does not take everything.
pub(crate) async fn things(world: &World) {
    world
        .execute(
            "CREATE TABLE public.things (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL,
                price DECIMAL(10,2), seen TIMESTAMP, note VARCHAR DEFAULT 'none',
                CHECK (price >= 0))",
        )
        .await;
}

/// Waits until a question has this answer.
pub(crate) async fn soon(world: &World, question: &str, answer: &Value) {
    let begun = Instant::now();
    loop {
        let told = json!(world.ask(question).await);
        if told == *answer {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "{question}: {told}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
