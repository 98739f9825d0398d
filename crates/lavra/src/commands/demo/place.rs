//! Where a demonstration takes place: a fresh directory with settings of its own, and a database.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use lavra_db::Target;
use lavra_fleet::store::Filter;
use lavra_tasks::store::ListFilter;

use crate::cli::Options;
use crate::exit::BadUsage;
use crate::node::Node;
use crate::settings::Settings;

const FILE: &str = "lavra.duckdb";

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
        let directory = fresh(parent)?;
        let database = match &options.database {
            Some(text) => match Target::parse(text)? {
                Target::Postgres(_) => text.clone(),
                Target::File(path) => {
                    return Err(BadUsage(format!(
                        "--database {}: the demonstration makes a file of its own, or takes a \
                         postgres:// URL",
                        path.display()
                    ))
                    .into());
                }
            },
            None => text(&directory.join(FILE)),
        };
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
        Ok(Self { directory, settings })
    }

    pub(super) fn is_on_a_server(&self) -> bool {
        matches!(self.settings.target, Target::Postgres(_))
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
    made.with_context(|| format!("no directory {} for the demonstration", directory.display()))?;
    Ok(directory)
}

/// What is in a database before is somebody's work: the demonstration neither touches nor counts it.
pub(super) async fn is_empty(node: &Node) -> anyhow::Result<()> {
    let store = &node.fleet.store;
    let any = ListFilter { limit: 1, ..ListFilter::default() };
    let is_empty = node.tasks.store().list(any).await?.is_empty()
        && !lavra_extract::has_tables(&node.database, "pncp").await?
        && store.count(&Filter::default()).await? == 0
        && store.workers().await?.is_empty();
    if is_empty {
        return Ok(());
    }
    Err(BadUsage(
        "--database: there is work in it already (tasks, extractions, missions or workers). The \
         demonstration needs a database of its own: CREATE DATABASE lavra_demo"
            .into(),
    )
    .into())
}
