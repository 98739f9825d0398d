//! A process of lavra: an open database with the parts that run on it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use lavra_db::{Database, DuckOptions, Keyring, Migration, Secrets};
use lavra_extract::task::{Exports, Extract, ExtractAudit, ExtractExport};
use lavra_fleet::keys::MayMake;
use lavra_fleet::{Fleet, FleetRun, Orchestrator};
use lavra_notify::{Delivery, Timing as WebhookTiming, Webhooks, watch};
use lavra_tasks::builtin::{Cleanup, Http};
use lavra_tasks::model::TaskId;
use lavra_tasks::{
    Artefacts, Broker, BrokerConfig, Handler, Policy, Registry, Runner, RunnerConfig, Tasks, keeper,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::count::Count;
use crate::exit::{BadUsage, CannotListen};
use crate::migrations;
use crate::settings::{DEFAULT_LISTEN, Settings, Web};
use crate::variables::Variable;
use crate::work::Work;

/// How long a PostgreSQL server that does not answer at start is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a file's holder that serves nothing is waited for: it is a command that is done in a
/// moment, or a server that is starting.
const HELD_FOR: Duration = Duration::from_secs(5);

/// What DuckDB may keep in memory while a command extracts, to begin with.
const EXTRACTION_MB: u64 = 40;

/// Webhooks that are told at once.
const DELIVERIES: usize = 8;

/// What a process does beside having the database open.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each part is there or not")]
pub(crate) struct Parts {
    pub(crate) serve: bool,
    pub(crate) work: Work,
    pub(crate) demo_types: bool,
    /// Whether `http` tasks and webhooks may call internal addresses.
    pub(crate) private_allowed: bool,
    /// Whether it listens to others than this machine.
    pub(crate) beyond_loopback: bool,
}

impl Parts {
    /// How a file is opened: who writes all the time needs no threads beside the writer, and who only
    /// extracts needs no memory for questions.
    fn options(self) -> DuckOptions {
        let usual = DuckOptions::default();
        DuckOptions {
            threads: self.work.is_any().then_some(1),
            memory_mb: if self.work == Work::EXTRACTIONS { EXTRACTION_MB } else { usual.memory_mb },
            ..usual
        }
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) database: Database,
    pub(crate) tasks: Tasks,
    pub(crate) extract: Extract,
    pub(crate) audit: ExtractAudit,
    pub(crate) fleet: Fleet,
    webhooks: Webhooks,
    orchestrator: Orchestrator,
    registry: Registry,
    /// Apart from the others: receivers that do not answer must not take the turns of all.
    deliveries: Registry,
    parts: Parts,
    /// The one task that its runner takes, and nobody else meanwhile; none are all.
    pub(crate) only: Option<TaskId>,
    /// Where it tells what it counts, if it serves nothing else.
    pub(crate) metrics: Option<TcpListener>,
    web: Web,
    runner: lavra_tasks::RunnerConfig,
    stale: Duration,
}

impl Node {
    pub(crate) async fn open(settings: &Settings, parts: Parts) -> anyhow::Result<Self> {
        Self::open_for(settings, parts, &[]).await
    }

    /// The same, for something that has tables of its own.
    pub(crate) async fn open_for(
        settings: &Settings,
        parts: Parts,
        own: &[Migration],
    ) -> anyhow::Result<Self> {
        let work = parts.work;
        if work.is_any() {
            // Measuring how fast this processor's clock is takes a moment.
            std::thread::spawn(lavra_web::warm_up);
        }
        let patience = if parts.serve || work.is_any() { PATIENCE } else { Duration::from_secs(3) };
        let database = open(settings, patience, parts.options()).await?;
        for id in migrations::apply(&database, own).await? {
            tracing::info!(id, database = %settings.target, "migrated");
        }
        let broker = broker(settings);
        let policies = policies(settings, parts);
        let service =
            lavra_tasks::Settings { broker, backoff: settings.backoff, policies: policies.clone() };
        let tasks = Tasks::open(&database, service).await?;
        let extraction = lavra_extract::Settings { stale: settings.stale, ..Default::default() };
        let extract = Extract::new(database.clone(), extraction, parts.private_allowed);
        let audit = ExtractAudit::new(database.clone(), extraction, parts.private_allowed);
        let registry = if work.tasks {
            handlers(settings, parts, &policies, &tasks)?
        } else {
            Registry::default()
        };
        let policy = policies.get(Extract::KIND).copied().unwrap_or_default();
        let registry = if work.extract { registry.with(extract.clone(), policy) } else { registry };
        let registry = if work.after_extract {
            let policy = |kind: &str| policies.get(kind).copied().unwrap_or_default();
            let exports = Exports::Below(settings.artefacts.clone());
            registry
                .with(audit.clone(), policy(ExtractAudit::KIND))
                .with(ExtractExport::new(database.clone(), exports), policy(ExtractExport::KIND))
        } else {
            registry
        };
        let fleet = fleet(&database, settings)?;
        let orchestrator = fleet.orchestrator();
        let registry = if work.fleet {
            let policy = policies.get(FleetRun::KIND).copied().unwrap_or_default();
            registry.with(FleetRun::new(orchestrator.clone()), policy)
        } else {
            registry
        };
        let (keys, timing) = (Arc::clone(&fleet.keys), WebhookTiming::default());
        let webhooks = Webhooks::open(&database, keys, timing, parts.private_allowed)?;
        let policy = policies.get(Delivery::KIND).copied().unwrap_or_default();
        let deliveries = Registry::default().with(Delivery::new(webhooks.clone(), timing), policy);
        if work.fleet || work.webhooks {
            let absorbed = fleet.keys.absorb().await?;
            if absorbed > 0 {
                tracing::info!(absorbed, "secrets that stood in columns are sealed now");
            }
        }
        if work.tasks {
            tasks.schedule_once("cleanup", "cleanup", &settings.cleanup_cron).await?;
        }
        Ok(Self {
            database,
            tasks,
            extract,
            audit,
            fleet,
            webhooks,
            orchestrator,
            registry,
            deliveries,
            parts,
            only: None,
            metrics: None,
            web: settings.web.clone(),
            runner: settings.runner.clone(),
            stale: settings.stale,
        })
    }

    pub(crate) fn router(&self) -> Router {
        lavra_web::router(self.app())
    }

    fn app(&self) -> lavra_web::App {
        let (tasks, database) = (self.tasks.clone(), self.database.clone());
        let (fleet, webhooks) = (self.fleet.clone(), self.webhooks.clone());
        lavra_web::App {
            hosts: self.web.hosts.clone(),
            require_key: self.web.needs_key(self.parts.beyond_loopback),
            public_url: self.web.public_url.clone(),
            ..lavra_web::App::new(tasks, database, fleet, webhooks)
        }
    }

    /// Runs the parts until `stop` (or until one of them ends), then all of them end in order.
    pub(crate) async fn run(
        mut self,
        listener: Option<TcpListener>,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut parts: JoinSet<anyhow::Result<()>> = JoinSet::new();
        // The runner stops first, while the others still carry its last writes.
        let last = CancellationToken::new();
        parts.spawn({
            let (tasks, last) = (self.tasks.clone(), last.clone());
            let config = keeper::Config { stale: self.stale, ..keeper::Config::default() };
            async move {
                keeper::keep(tasks, config, last).await;
                Ok(())
            }
        });
        if self.parts.work.webhooks {
            let (webhooks, tasks) = (self.webhooks.clone(), self.tasks.clone());
            let last = last.clone();
            parts.spawn(async move {
                watch::watch(&webhooks, &tasks, watch::Config::default(), last).await;
                Ok(())
            });
        }
        if let Some(broker) = self.tasks.broker().cloned() {
            let (tasks, last) = (self.tasks.clone(), last.clone());
            parts.spawn(async move {
                broker.run(tasks, last).await;
                Ok(())
            });
        }
        if let Some(listener) = listener {
            let address = own(listener.local_addr()?);
            if let Database::Duck(duck) = &self.database {
                duck.announce(&format!("http://{address}"))?;
            }
            if !address.ip().is_loopback() {
                self.web.hosts.push(host(address.ip()));
            }
            let (app, last) = (self.app(), last.clone());
            parts.spawn(async move {
                // Made here: the runner need not wait for it.
                let router = lavra_web::router(app);
                lavra_web::serve(listener, router, last).await.context("the HTTP server ended")
            });
        }
        if let Some(listener) = self.metrics.take() {
            // Handles that a runner takes before the recorder is there count nothing.
            tokio::task::spawn_blocking(lavra_web::warm_up).await?;
            parts.spawn(measure(listener, self.tasks.clone(), last.clone()));
        }
        let delivering = self.parts.work.webhooks.then(|| {
            let config = RunnerConfig {
                name: format!("{} webhooks", self.runner.name),
                concurrency: DELIVERIES,
                // Nobody waits for these.
                poll_blind: self.runner.poll,
                ..self.runner.clone()
            };
            let runner = Runner::new(self.tasks.clone(), self.deliveries, config);
            tokio::spawn(runner.run(stop.clone()))
        });
        let mut helping = None;
        let runner = self.parts.work.claims().then(|| {
            let runner =
                Runner::new(self.tasks.clone(), self.registry, self.runner).only(self.only);
            let help = (self.parts.work.extract && self.only.is_none()).then(|| {
                let (process, pulse) = (runner.process(), runner.pulse());
                self.extract.help(self.tasks.clone(), process, pulse, stop.clone())
            });
            let attend = self.parts.work.fleet.then(|| {
                let attend = self.orchestrator.attend(self.tasks.clone(), stop.clone());
                let test = self.fleet.clone().test_now_and_then(stop.clone());
                async { tokio::join!(attend, test) }
            });
            helping = Some(tokio::spawn(async {
                let help = async {
                    if let Some(help) = help {
                        help.await;
                    }
                };
                let attend = async {
                    if let Some(attend) = attend {
                        attend.await;
                    }
                };
                tokio::join!(help, attend);
            }));
            tokio::spawn(runner.run(stop.clone()))
        });
        let failed = tokio::select! {
            () = stop.cancelled() => None,
            Some(ended) = parts.join_next() => Some(ended),
        };
        stop.cancel();
        // What it holds is given back while the process still counts as alive.
        if let Some(helping) = helping {
            helping.await?;
        }
        for runner in [runner, delivering].into_iter().flatten() {
            runner.await?;
        }
        last.cancel();
        while let Some(ended) = parts.join_next().await {
            ended??;
        }
        failed.map_or(Ok(()), |ended| ended?)
    }
}

/// Only those who run or serve talk to it; others leave rows for them.
pub(crate) fn broker(settings: &Settings) -> Option<Broker> {
    let mut config = BrokerConfig::new(settings.broker.as_ref()?);
    if let Some(prefix) = &settings.broker_prefix {
        config.prefix.clone_from(prefix);
    }
    Some(Broker::new(config))
}

/// Tells what this process counts, and nothing else.
async fn measure(
    listener: TcpListener,
    tasks: Tasks,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    tracing::info!(url = %format!("http://{}/metrics", listener.local_addr()?), "counting");
    let router = lavra_web::measures(tasks);
    lavra_web::serve(listener, router, stop).await.context("the server of metrics ended")
}

/// What people do with the fleet.
fn fleet(database: &Database, settings: &Settings) -> lavra_fleet::Result<Fleet> {
    let (of, key_file) = (database.clone(), settings.key_file.clone());
    let source = move |may_make| {
        let keyring = keyring(&of, key_file.as_deref(), may_make)?;
        Ok(keyring.map(|keyring| Secrets::new(of.clone(), keyring)))
    };
    let mut fleet = Fleet::open(database, Box::new(source), settings.fleet)?;
    if let Some(url) = &settings.proxy_test_url {
        fleet.proxy_test_url = url.as_str().into();
    }
    Ok(fleet)
}

/// The keys of the environment. A file that has none gets one of its own beside it, so that a laptop
/// needs no setting up; a server's database is too far from here for that, unless `key_file` says where.
pub(crate) fn keyring(
    database: &Database,
    key_file: Option<&Path>,
    may_make: MayMake,
) -> lavra_fleet::Result<Option<Keyring>> {
    if let Some(keys) = Variable::SecretKey.read() {
        return Ok(Some(Keyring::parse(&keys.into())?));
    }
    let path = match (key_file, database) {
        (Some(path), _) => path.to_owned(),
        (None, Database::Duck(duck)) => {
            let mut path = duck.path().as_os_str().to_owned();
            path.push(".key");
            PathBuf::from(path)
        }
        (None, Database::Postgres(_)) => return Ok(None),
    };
    let wrong = |error: std::io::Error| {
        lavra_fleet::Error::Invalid(format!("the key {}: {error}", path.display()))
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if may_make == MayMake::No {
                return Ok(None);
            }
            let key = Keyring::generate();
            write_private(&path, &key).map_err(wrong)?;
            key
        }
        Err(error) => return Err(wrong(error)),
    };
    Ok(Some(Keyring::parse(&text.trim().to_owned().into())?))
}

/// A file that only its owner may read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The database as it is. A holder that serves nothing is waited for.
pub(crate) async fn open(
    settings: &Settings,
    patience: Duration,
    options: DuckOptions,
) -> lavra_db::Result<Database> {
    let deadline = Instant::now() + HELD_FOR;
    loop {
        let schema = settings.schema.clone();
        let opened = Database::open_with(&settings.target, schema, patience, options).await;
        match &opened {
            Err(lavra_db::Error::Held { holder, .. })
                if holder.url.is_none() && Instant::now() < deadline =>
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            _ => return opened,
        }
    }
}

/// Of the types that come with the program and of those in the settings, which have the last word.
fn policies(settings: &Settings, parts: Parts) -> BTreeMap<String, Policy> {
    let cleanup = Policy { may_be_idempotent: false, ..Policy::default() };
    let hour = Policy { timeout: Some(Duration::from_secs(3700)), ..Policy::default() };
    let extract = Policy { may_be_idempotent: false, ..Policy::default() };
    let after = [ExtractAudit::KIND, ExtractExport::KIND].map(|kind| (kind.to_owned(), extract));
    let mut policies = BTreeMap::from([
        ("cleanup".to_owned(), cleanup),
        ("http".to_owned(), hour),
        (Extract::KIND.to_owned(), extract),
        (FleetRun::KIND.to_owned(), extract),
        (Delivery::KIND.to_owned(), lavra_notify::POLICY),
    ]);
    policies.extend(after);
    if parts.demo_types {
        policies.insert("count".to_owned(), Policy::default());
    }
    for (kind, set) in &settings.types {
        let policy = policies.entry(kind.clone()).or_default();
        *policy = set.over(*policy);
    }
    policies
}

fn handlers(
    settings: &Settings,
    parts: Parts,
    policies: &BTreeMap<String, Policy>,
    tasks: &Tasks,
) -> anyhow::Result<Registry> {
    let artefacts = Artefacts::open(&settings.artefacts)?;
    let archive = settings.archive.as_deref().map(Artefacts::open).transpose()?;
    let policy = |kind: &str| policies.get(kind).copied().unwrap_or_default();
    let cleanup = Cleanup::new(tasks.clone(), settings.retention, artefacts.clone(), archive);
    let http = Http::new(artefacts, parts.private_allowed)?;
    let mut registry =
        Registry::default().with(cleanup, policy("cleanup")).with(http, policy("http"));
    if parts.demo_types {
        registry = registry.with(Count, policy("count"));
    }
    Ok(registry)
}

/// Where this machine reaches a listener, which may listen everywhere.
fn own(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(ip, address.port())
}

/// An address as it stands in `Host`. No name can be made to lead to it, so it needs no setting.
fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// Where `--listen`, or another flag, says.
#[derive(Debug)]
pub(crate) struct Place {
    /// What says where it is.
    flag: &'static str,
    text: String,
    addresses: Vec<SocketAddr>,
}

impl Place {
    pub(crate) async fn find(text: &str) -> anyhow::Result<Self> {
        Self::of("--listen", text).await
    }

    pub(crate) async fn of(flag: &'static str, text: &str) -> anyhow::Result<Self> {
        let wrong = |error: std::io::Error| {
            let why = match error.kind() {
                ErrorKind::InvalidInput => String::new(),
                _ => format!("{error}; "),
            };
            BadUsage(format!("{flag} {text}: {why}it is HOST:PORT, such as {DEFAULT_LISTEN}"))
        };
        let addresses = tokio::net::lookup_host(text).await.map_err(wrong)?;
        Ok(Self { flag, text: text.to_owned(), addresses: addresses.collect() })
    }

    /// An address that others than this machine may reach.
    pub(crate) fn beyond_loopback(&self) -> Option<SocketAddr> {
        self.addresses.iter().copied().find(|address| !address.ip().is_loopback())
    }

    pub(crate) async fn listen(&self) -> anyhow::Result<TcpListener> {
        let taken = |source| CannotListen { flag: self.flag, place: self.text.clone(), source };
        Ok(TcpListener::bind(self.addresses.as_slice()).await.map_err(taken)?)
    }
}

/// A listener on this machine only, on whichever port is free.
pub(crate) async fn listen_anywhere() -> anyhow::Result<TcpListener> {
    listen("--listen", "127.0.0.1:0").await
}

/// A listener on this machine only: whoever reaches it is trusted.
pub(crate) async fn listen(flag: &'static str, text: &str) -> anyhow::Result<TcpListener> {
    let place = Place::of(flag, text).await?;
    if let Some(outside) = place.beyond_loopback() {
        return Err(BadUsage(format!("{flag} {outside}: only loopback addresses")).into());
    }
    place.listen().await
}
