//! Where a demonstration takes place: a fresh directory with settings of its own, and a database.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use lavra_db::{DuckOptions, Target};
use serde_json::Value;

use crate::cli::Options;
use crate::exit::{BadUsage, BrokerUnreachable};
use crate::node::{self, PATIENCE};
use crate::settings::Settings;

const FILE: &str = "lavra.duckdb";

/// How long a broker has to answer.
const BROKER_PATIENCE: Duration = Duration::from_secs(10);

/// More than anybody has.
const MOST_TABLES: usize = 100_000;

/// What a demonstration's queues begin with: it takes no message of anybody else's.
const BROKER_PREFIX: &str = "lavra.demo";

/// Tables whose rows are somebody's work, beside the tasks and all of extractions.
const WORK: [(&str, &str); 8] = [
    ("lavra", "api_keys"),
    ("lavra", "secrets"),
    ("lavra", "webhooks"),
    ("public", "ads"),
    ("public", "missions"),
    ("public", "proxies"),
    ("public", "workers"),
    ("public", "writers"),
];

/// Workers that really scrape are looked at every 10 and 30 seconds; these answer at once.
const SETTINGS: &str = "\
# Of a demonstration: everything is looked at often, because it answers at once.
[fleet]
polling_session_ms = 150
polling_job_ms = 200
polling_queue_ms = 500
close_patience_ms = 5000
stop_patience_ms = 5000
backoff_first_ms = 300
backoff_longest_ms = 2000
progress_every_ms = 1000
";

pub(super) struct Place {
    pub(super) directory: PathBuf,
    pub(super) settings: Settings,
}

impl Place {
    /// `options` may name a PostgreSQL server and a broker; everything else is here. Proxies are tested
    /// by asking `test_url` through them.
    pub(super) fn new(options: &Options, test_url: &str) -> anyhow::Result<Self> {
        Self::within(&std::env::temp_dir(), options, test_url)
    }

    /// The same below another directory than that for temporary files.
    pub(super) fn within(parent: &Path, options: &Options, test_url: &str) -> anyhow::Result<Self> {
        let server = server(options)?;
        let directory = fresh(parent)?;
        let database = server.unwrap_or_else(|| text(&directory.join(FILE)));
        let config = directory.join("lavra.toml");
        std::fs::write(&config, format!("{SETTINGS}proxy_test_url = {test_url:?}\n"))
            .with_context(|| format!("cannot write {}", config.display()))?;
        let options = Options {
            database: Some(database),
            broker: options.broker.clone(),
            artefacts: Some(text(&directory.join("artefacts"))),
            config: Some(config),
            ..Options::default()
        };
        let mut settings = Settings::load(&options)?;
        // A server's database has no place beside it for a key.
        settings.key_file = Some(directory.join("lavra.key"));
        settings.broker_prefix = Some(BROKER_PREFIX.to_owned());
        Ok(Self { directory, settings })
    }

    pub(super) fn is_on_a_server(&self) -> bool {
        matches!(self.settings.target, Target::Postgres(_))
    }

    /// Whether the servers that were named are there and nobody works with the database. It looks before
    /// anything is migrated, and leaves nothing behind if it may not be here.
    pub(super) async fn is_ready(&self) -> anyhow::Result<()> {
        let ready = async {
            self.has_its_broker().await?;
            self.is_unused().await
        };
        let ready = ready.await;
        if ready.is_err()
            && let Err(error) = std::fs::remove_dir_all(&self.directory)
        {
            tracing::warn!(%error, directory = %self.directory.display(), "it stays");
        }
        ready
    }

    /// A service would wait for a broker that is away, and poll. Here someone wants to see it work.
    async fn has_its_broker(&self) -> anyhow::Result<()> {
        let Some(broker) = node::broker(&self.settings) else { return Ok(()) };
        let health = broker.look(BROKER_PATIENCE).await;
        if health.connected {
            return Ok(());
        }
        let reason = health.trouble.unwrap_or_else(|| "no answer in time".into());
        Err(BrokerUnreachable { place: broker.place(), reason }.into())
    }

    /// What is in a database before is somebody's work: the demonstration neither touches nor counts it.
    async fn is_unused(&self) -> anyhow::Result<()> {
        if !self.is_on_a_server() {
            return Ok(());
        }
        let Some(table) = self.somebodys().await? else { return Ok(()) };
        Err(BadUsage(format!(
            "--database: there are rows in {table} already. The demonstration needs a database of its \
             own: CREATE DATABASE lavra_demo"
        ))
        .into())
    }

    /// A table of the server that somebody works with.
    async fn somebodys(&self) -> anyhow::Result<Option<String>> {
        let database = node::open(&self.settings, PATIENCE, DuckOptions::default()).await?;
        let tables = "SELECT schemaname, tablename FROM pg_catalog.pg_tables";
        let tables = database.ask(tables, MOST_TABLES).await?;
        for row in &tables.rows {
            let [Value::String(schema), Value::String(table)] = row.as_slice() else { continue };
            let is_task = *schema == self.settings.schema.name() && table == "tasks";
            let is_work =
                is_task || schema == "psa" || WORK.contains(&(schema.as_str(), table.as_str()));
            let rows = format!("SELECT true AS found FROM \"{schema}\".\"{table}\"");
            if is_work && !database.ask(&rows, 1).await?.rows.is_empty() {
                return Ok(Some(format!("{schema}.{table}")));
            }
        }
        Ok(None)
    }
}

/// The PostgreSQL server that was named, if one was; before anything is made.
fn server(options: &Options) -> anyhow::Result<Option<String>> {
    let Some(text) = &options.database else { return Ok(None) };
    match Target::parse(text)? {
        Target::Postgres(_) => Ok(Some(text.clone())),
        Target::File(path) => Err(BadUsage(format!(
            "--database (or LAVRA_DATABASE) {}: the demonstration makes a file of its own, or takes a postgres:// URL",
            path.display()
        ))
        .into()),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A directory that nobody else can read.
fn fresh(parent: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("lavra-demo-{}", uuid::Uuid::new_v4().simple());
    let name: String = name.chars().take("lavra-demo-".len() + 8).collect();
    let directory = parent.join(name);
    let made = std::fs::DirBuilder::new().mode(0o700).create(&directory);
    made.map_err(|error| {
        let (directory, parent) = (directory.display(), parent.display());
        BadUsage(format!(
            "no directory {directory} for the demonstration: {error}; it needs room in {parent}, and TMPDIR \
             names another place"
        ))
    })?;
    Ok(directory)
}
