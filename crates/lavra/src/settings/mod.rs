//! Settings: flags over `LAVRA_*` over `lavra.toml` over defaults. Unknown keys are errors.

mod file;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::Uri;
use axum::http::uri::Authority;
use lavra_db::{Environment, Schema, Target};
use lavra_fleet::settings::Timing;
use lavra_tasks::builtin::Retention;
use lavra_tasks::{Backoff, check_kind};

use crate::cli::Options;
use crate::exit::BadUsage;
pub(crate) use file::WriterFile;
use file::{File, FleetFile, RunnerFile, TasksFile, TypeFile, WebFile, WorkerFile};

const DEFAULT_FILE: &str = "lavra.toml";
const DEFAULT_DATABASE: &str = "lavra.duckdb";
const DEFAULT_ARTEFACTS: &str = "lavra-artefacts";
const CLEANUP_CRON: &str = "17 3 * * *";
/// A process that is silent for so long is dead.
const STALE: Duration = Duration::from_secs(10);
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// How others than this machine reach the interface, checked.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    pub(crate) hosts: Vec<String>,
    pub(crate) public_url: Option<Uri>,
    require_key: Option<bool>,
}

impl Web {
    fn check(file: WebFile) -> Result<Self, BadUsage> {
        check_hosts("[web] hosts", &file.hosts)?;
        let public_url = file.public_url.as_deref().map(|text| {
            let url = text.parse().ok().filter(|url: &Uri| {
                let scheme = url.scheme_str();
                let is_whole = url.host().is_some() && url.path() == "/" && url.query().is_none();
                (scheme == Some("https") || scheme == Some("http")) && is_whole
            });
            url.ok_or_else(|| {
                let rule = "is not an address such as https://lavra.example.com";
                BadUsage(format!("[web] public_url: {text:?} {rule}"))
            })
        });
        Ok(Self {
            public_url: public_url.transpose()?,
            hosts: file.hosts,
            require_key: file.require_key,
        })
    }

    /// The same with the names of a flag, if it names any.
    pub(crate) fn with_hosts(self, hosts: &[String]) -> Result<Self, BadUsage> {
        check_hosts("--host", hosts)?;
        Ok(if hosts.is_empty() { self } else { Self { hosts: hosts.to_vec(), ..self } })
    }

    /// Whether callers on this machine need a key as well. Where nothing is said they do as soon as one
    /// of them may be a proxy that speaks for others.
    pub(crate) fn needs_key(&self, beyond_loopback: bool) -> bool {
        let is_reached = beyond_loopback || self.public_url.is_some() || !self.hosts.is_empty();
        self.require_key.unwrap_or(is_reached)
    }
}

fn check_hosts(what: &str, hosts: &[String]) -> Result<(), BadUsage> {
    let is_name = |host: &&String| host.parse::<Authority>().is_ok_and(|name| name.host() == *host);
    match hosts.iter().find(|host| !is_name(host)) {
        Some(wrong) => Err(BadUsage(format!(
            "{what}: {wrong:?} is not a name alone, such as lavra.example.com"
        ))),
        None => Ok(()),
    }
}

/// Everything that was configured, with its defaults.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) target: Target,
    pub(crate) schema: Schema,
    /// Where the key of secrets is, instead of beside the database.
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) server: Option<String>,
    pub(crate) broker: Option<String>,
    pub(crate) broker_prefix: Option<String>,
    pub(crate) listen: String,
    pub(crate) artefacts: String,
    pub(crate) archive: Option<String>,
    pub(crate) runner: lavra_tasks::RunnerConfig,
    /// Where a runner tells what it counts.
    pub(crate) metrics: Option<String>,
    pub(crate) stale: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) cleanup_cron: String,
    /// How task types are treated, where the file says so.
    pub(crate) types: BTreeMap<String, TypeFile>,
    pub(crate) retention: Retention,
    pub(crate) fleet: Timing,
    pub(crate) proxy_test_url: Option<String>,
    pub(crate) writer: WriterFile,
    pub(crate) worker: WorkerFile,
    pub(crate) web: Web,
}

impl Settings {
    pub(crate) fn load(options: &Options) -> anyhow::Result<Self> {
        let file = match &options.config {
            Some(path) => read(path)?,
            None if Path::new(DEFAULT_FILE).exists() => read(Path::new(DEFAULT_FILE))?,
            None => File::default(),
        };
        for kind in file.tasks.types.keys() {
            check_kind(kind).map_err(|error| BadUsage(format!("[tasks.types]: {error}")))?;
        }
        let environment = Environment(|name: &str| std::env::var(name).ok());
        let target = match options.database.as_ref().or(file.database.as_ref()) {
            Some(text) => Target::parse(text)?,
            None => match environment.target()? {
                Some(target) => target,
                None => Target::File(PathBuf::from(DEFAULT_DATABASE)),
            },
        };
        let schema = match &file.schema {
            Some(name) => Schema::parse(name)?,
            None => environment.schema()?,
        };
        let stale = millis(file.tasks.stale_ms, STALE);
        Ok(Self {
            target,
            schema,
            key_file: None,
            server: options.server.as_deref().map(server).transpose()?,
            broker: options.broker.clone().or(file.broker).map(broker).transpose()?,
            broker_prefix: file.broker_prefix,
            listen: file.listen.unwrap_or_else(|| DEFAULT_LISTEN.into()),
            artefacts: options
                .artefacts
                .clone()
                .or(file.artefacts)
                .unwrap_or_else(|| DEFAULT_ARTEFACTS.into()),
            archive: options.archive.clone().or(file.archive),
            runner: runner(options, &file.runner, stale),
            metrics: file.runner.metrics,
            stale,
            backoff: backoff(&file.tasks),
            cleanup_cron: file.tasks.cleanup_cron.unwrap_or_else(|| CLEANUP_CRON.into()),
            types: file.tasks.types,
            retention: file.retention,
            fleet: timing(&file.fleet),
            proxy_test_url: file.fleet.proxy_test_url,
            writer: file.writer,
            worker: file.worker,
            web: Web::check(file.web)?,
        })
    }
}

/// Where a server is: all that is said of it, so that a slip is told before anything is asked.
fn server(text: &str) -> Result<String, BadUsage> {
    let is_url = |url: Uri| matches!(url.scheme_str(), Some("http" | "https"));
    if text.parse().is_ok_and(is_url) {
        return Ok(text.to_owned());
    }
    Err(BadUsage(format!("--server {text}: it is a URL such as http://127.0.0.1:8080")))
}

/// What was given is not repeated: a password may be in it.
fn broker(text: String) -> Result<String, BadUsage> {
    if text.starts_with("amqp://") || text.starts_with("amqps://") {
        return Ok(text);
    }
    Err(BadUsage("--broker: RabbitMQ's URL is amqp://user:password@host:port/vhost".into()))
}

fn read(path: &Path) -> anyhow::Result<File> {
    let wrong = |error: &dyn Display| {
        BadUsage(format!("{}: {}", path.display(), error.to_string().trim_end()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        BadUsage(format!("the settings file {} cannot be read: {error}", path.display()))
    })?;
    Ok(toml::from_str(&text).map_err(|error| wrong(&error))?)
}

fn millis(value: Option<u64>, default: Duration) -> Duration {
    value.map_or(default, Duration::from_millis)
}

fn runner(options: &Options, file: &RunnerFile, stale: Duration) -> lavra_tasks::RunnerConfig {
    let default = lavra_tasks::RunnerConfig::default();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    lavra_tasks::RunnerConfig {
        name: format!("{}:{}", host.trim(), std::process::id()),
        concurrency: options
            .concurrency
            .or(file.concurrency)
            .unwrap_or(default.concurrency)
            .clamp(1, 10_000),
        heartbeat: millis(file.heartbeat_ms, default.heartbeat),
        stale,
        poll: millis(file.poll_ms, default.poll),
        grace: file.grace_seconds.map_or(default.grace, Duration::from_secs),
        ..default
    }
}

fn timing(file: &FleetFile) -> Timing {
    let usual = Timing::default();
    Timing {
        timeout_session: millis(file.timeout_session_ms, usual.timeout_session),
        timeout_job: millis(file.timeout_job_ms, usual.timeout_job),
        polling_session: millis(file.polling_session_ms, usual.polling_session),
        polling_job: millis(file.polling_job_ms, usual.polling_job),
        polling_queue: millis(file.polling_queue_ms, usual.polling_queue),
        max_proxy_failures: file.max_proxy_failures.unwrap_or(usual.max_proxy_failures).max(1),
        close_patience: millis(file.close_patience_ms, usual.close_patience),
        stop_patience: millis(file.stop_patience_ms, usual.stop_patience),
        worker_patience: millis(file.worker_patience_ms, usual.worker_patience),
        writer_silence: millis(file.writer_silence_ms, usual.writer_silence),
        backoff: (
            millis(file.backoff_first_ms, usual.backoff.0),
            millis(file.backoff_longest_ms, usual.backoff.1),
        ),
        progress_every: millis(file.progress_every_ms, usual.progress_every),
        heartbeat: millis(file.heartbeat_ms, usual.heartbeat),
        stale: millis(file.stale_ms, usual.stale),
        call: millis(file.call_ms, usual.call),
        test_every: millis(file.test_every_ms, usual.test_every),
    }
}

fn backoff(file: &TasksFile) -> Backoff {
    let default = Backoff::default();
    Backoff {
        first: millis(file.backoff_first_ms, default.first),
        longest: millis(file.backoff_longest_ms, default.longest),
    }
}

/// Every key of the file, as it is documented.
#[cfg(test)]
pub(crate) fn keys() -> std::collections::BTreeSet<String> {
    fn collect(prefix: &str, value: &serde_json::Value, keys: &mut Vec<String>) {
        match value.as_object() {
            Some(fields) => fields
                .iter()
                .for_each(|(name, value)| collect(&format!("{prefix}.{name}"), value, keys)),
            None => keys.push(prefix.trim_start_matches('.').to_owned()),
        }
    }
    let types = BTreeMap::from([("NAME".to_owned(), TypeFile::default())]);
    let file = File { tasks: TasksFile { types, ..TasksFile::default() }, ..File::default() };
    let mut keys = Vec::new();
    collect("", &serde_json::to_value(file).unwrap(), &mut keys);
    keys.into_iter().collect()
}

/// What comes of a file, where it can be said by a number or a word.
#[cfg(test)]
pub(crate) fn effect(text: &str) -> String {
    use crate::commands;
    let file: File = toml::from_str(text).unwrap();
    let stale = millis(file.tasks.stale_ms, STALE);
    let mut runner = runner(&Options::default(), &file.runner, stale);
    runner.name.clear();
    let cron = file.tasks.cleanup_cron.as_deref().unwrap_or(CLEANUP_CRON).to_owned();
    let or = |set: Option<String>, usual: &str| set.unwrap_or_else(|| usual.into());
    let (worker, data) = (file.worker.clone(), Path::new(commands::worker::DATA));
    let places = [
        or(file.listen, DEFAULT_LISTEN),
        or(file.artefacts, DEFAULT_ARTEFACTS),
        or(file.broker_prefix, &lavra_tasks::BrokerConfig::new("amqp://localhost").prefix),
        or(file.fleet.proxy_test_url.clone(), lavra_fleet::PROXY_TEST_URL),
        or(file.writer.listen.clone(), commands::writer::LISTEN),
        or(worker.listen, commands::worker::LISTEN),
        or(worker.source, commands::worker::ADS),
        worker.data.as_deref().unwrap_or(data).display().to_string(),
    ];
    let limits = commands::writer::config(&crate::cli::Writer::default(), &file.writer);
    let fleet = (timing(&file.fleet), backoff(&file.tasks), file.retention);
    format!("{:?}", (places, runner, cron, fleet, file.worker.timing(), limits.unwrap().limits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_package_has_only_settings_that_there_are() {
        let packed = include_str!("../../../../packaging/config/lavra.toml");
        let is_setting = |line: &&str| !line.starts_with("# ");
        let all: Vec<&str> =
            packed.lines().filter(is_setting).map(|line| line.trim_start_matches('#')).collect();
        let file: File = toml::from_str(&all.join("\n")).unwrap();
        assert_eq!(file.listen.as_deref(), Some(DEFAULT_LISTEN));
        assert_eq!(toml::to_string(&file.retention).unwrap(), {
            toml::to_string(&Retention::default()).unwrap()
        });
        let as_packed: File = toml::from_str(packed).unwrap();
        assert_eq!(as_packed.database.as_deref(), Some("/var/lib/lavra/lavra.duckdb"));
    }

    #[test]
    fn what_the_file_of_the_package_leaves_out_is_the_default_or_said_to_be_an_example() {
        let packed = include_str!("../../../../packaging/config/lavra.toml");
        let (mut section, mut is_example) = (String::new(), false);
        for line in packed.lines() {
            if line.starts_with('[') {
                section = format!("{line}\n");
            } else if line.starts_with("# ") {
                is_example = line.contains("xample");
            } else if let Some(setting) = line.strip_prefix('#').filter(|_| !is_example) {
                assert_eq!(effect(&format!("{section}{setting}")), effect(""), "{line}");
            } else {
                is_example = false;
            }
        }
    }
}
