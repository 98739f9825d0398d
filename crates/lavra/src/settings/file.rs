//! `lavra.toml`. Settings that no flag explains are explained here, and the tables of
//! `docs/configuration.md` are made of it: `UPDATE_DOCS=1 cargo xtask test -E 'test(documented)'`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lavra_tasks::Policy;
use lavra_tasks::builtin::Retention;
use serde::Deserialize;

use super::millis;

/// `lavra.toml`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(crate) database: Option<String>,
    pub(crate) schema: Option<String>,
    pub(crate) broker: Option<String>,
    pub(crate) broker_prefix: Option<String>,
    pub(crate) listen: Option<String>,
    pub(crate) artefacts: Option<String>,
    pub(crate) archive: Option<String>,
    pub(crate) runner: RunnerFile,
    pub(crate) tasks: TasksFile,
    pub(crate) retention: Retention,
    pub(crate) fleet: FleetFile,
    pub(crate) writer: WriterFile,
    pub(crate) worker: WorkerFile,
    pub(crate) web: WebFile,
}

/// How others than this machine reach the interface.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WebFile {
    /// Names, besides `localhost`, under which the server is reached: `["lavra.internal"]`; any other is
    /// refused [default: none]
    pub(crate) hosts: Vec<String>,
    /// Where people reach it through a proxy; its name counts as one of `hosts`, and with https cookies are
    /// `Secure` [default: none]
    pub(crate) public_url: Option<String>,
    /// Whether callers on this machine need a key as well [default: yes if it listens beyond this machine,
    /// or one of the two above is set]
    pub(crate) require_key: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunnerFile {
    pub(crate) concurrency: Option<usize>,
    /// Time between renewals of the process's row [default: 3000]
    pub(crate) heartbeat_ms: Option<u64>,
    /// Time between polls of the database when no wake-up comes; where none can come, as behind PgBouncer
    /// without a broker, it is 40 ms at most [default: 1000]
    pub(crate) poll_ms: Option<u64>,
    /// How long running attempts have after a shutdown is requested [default: 10]
    pub(crate) grace_seconds: Option<u64>,
    pub(crate) metrics: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TasksFile {
    /// A process that has not renewed its row for this long is dead [default: 10000]
    pub(crate) stale_ms: Option<u64>,
    /// The wait before the first retry; doubled for each further one [default: 2000]
    pub(crate) backoff_first_ms: Option<u64>,
    /// No wait is longer [default: 600000]
    pub(crate) backoff_longest_ms: Option<u64>,
    /// When `cleanup` runs (UTC); a schedule that exists is left alone [default: `17 3 * * *`]
    pub(crate) cleanup_cron: Option<String>,
    pub(crate) types: BTreeMap<String, TypeFile>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TypeFile {
    /// For tasks of this type; a request may set its own [default: 3; `webhook` 7]
    pub(crate) max_retries: Option<i32>,
    /// An attempt that runs longer fails [default: none; `http` 3700, `webhook` 60]
    pub(crate) timeout_seconds: Option<u64>,
}

impl TypeFile {
    /// The policy with what the file says otherwise.
    pub(crate) fn over(&self, policy: Policy) -> Policy {
        Policy {
            max_retries: self.max_retries.unwrap_or(policy.max_retries),
            timeout: self.timeout_seconds.map(Duration::from_secs).or(policy.timeout),
            ..policy
        }
    }
}

/// The times of the fleet; people change `session_limit` and `max_retries` while it runs.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FleetFile {
    /// A session that is not ready by then has failed (ERROR101) [default: 180000]
    pub(crate) timeout_session_ms: Option<u64>,
    /// A scrape job that is not done by then is cancelled (ERROR202) [default: 6000000]
    pub(crate) timeout_job_ms: Option<u64>,
    /// Time between polls of a session [default: 10000]
    pub(crate) polling_session_ms: Option<u64>,
    /// Time between polls of a scrape or writer job [default: 30000]
    pub(crate) polling_job_ms: Option<u64>,
    /// Time between polls for work that nobody announced [default: 5000]
    pub(crate) polling_queue_ms: Option<u64>,
    /// The number of failures that deactivates a proxy [default: 3]
    pub(crate) max_proxy_failures: Option<i32>,
    /// How long to wait for the end of a session [default: 60000]
    pub(crate) close_patience_ms: Option<u64>,
    /// How long a job has to stop after it is told to [default: 60000]
    pub(crate) stop_patience_ms: Option<u64>,
    /// A worker that does not answer for this long loses its mission (ERROR502) [default: 300000]
    pub(crate) worker_patience_ms: Option<u64>,
    /// A writer job that answers but makes no progress for this long has failed (ERROR302) [default:
    /// 600000]
    pub(crate) writer_silence_ms: Option<u64>,
    /// The wait before a worker or writer that failed is tried again; doubled for each further one
    /// [default: 10000]
    pub(crate) backoff_first_ms: Option<u64>,
    /// No wait is longer [default: 300000]
    pub(crate) backoff_longest_ms: Option<u64>,
    /// At most one entry of progress per job in this time [default: 60000]
    pub(crate) progress_every_ms: Option<u64>,
    /// Time between renewals of an orchestrator's row [default: 3000]
    pub(crate) heartbeat_ms: Option<u64>,
    /// An orchestrator that has not renewed its row for this long is dead [default: 10000]
    pub(crate) stale_ms: Option<u64>,
    /// How long one call to a worker or writer may take [default: 30000]
    pub(crate) call_ms: Option<u64>,
    /// Time between tests of all active workers, proxies and writers [default: 300000]
    pub(crate) test_every_ms: Option<u64>,
    /// What is requested through a proxy to test it [default: `http://www.gstatic.com/generate_204`]
    pub(crate) proxy_test_url: Option<String>,
}

/// What a writer may read and write, and how much of it.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WriterFile {
    pub(crate) listen: Option<String>,
    pub(crate) target: Option<String>,
    /// The name of a secret (`lavra secret set`) that is the writer's API key [default: none]
    pub(crate) api_key_secret: Option<String>,
    pub(crate) allow_hosts: Vec<String>,
    pub(crate) allow_private: Vec<String>,
    pub(crate) directories: Vec<String>,
    /// The only tables that it writes: `schema.table` [default: all that are not lavra's own]
    pub(crate) tables: Vec<String>,
    /// Jobs that run at once in this process [default: 4]
    pub(crate) running: Option<usize>,
    /// Jobs that may wait; more are answered 429 with `Retry-After` [default: 1000]
    pub(crate) waiting: Option<usize>,
    /// The most rows that are written together [default: 20000]
    pub(crate) batch_rows: Option<usize>,
    /// The most bytes that are written together [default: 4194304]
    pub(crate) batch_bytes: Option<usize>,
    /// The longest source, as it is sent [default: 4294967296]
    pub(crate) max_bytes: Option<u64>,
    /// The longest source, unpacked [default: 17179869184]
    pub(crate) max_unpacked_bytes: Option<u64>,
    /// The most elements of a source [default: 50000000]
    pub(crate) max_rows: Option<u64>,
    /// A longer element is a failed item [default: 1048576]
    pub(crate) max_row_bytes: Option<usize>,
    /// The longest request, including inline data (413) [default: 33554432]
    pub(crate) max_request_bytes: Option<usize>,
}

/// What `lavra worker` does; its key is only in the environment.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorkerFile {
    pub(crate) listen: Option<String>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) source: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) storage: Option<String>,
    /// A session that is not ready by then is stuck; less than `fleet.timeout_session_ms` [default: 150]
    pub(crate) session_seconds: Option<u64>,
    /// A session that nobody asks about for this long ends by itself [default: 3600]
    pub(crate) idle_seconds: Option<u64>,
    /// How often a page is requested before the job fails [default: 6]
    pub(crate) attempts: Option<u32>,
    /// The wait before the second try; doubled for each further one [default: 500]
    pub(crate) backoff_first_ms: Option<u64>,
    /// No wait is longer [default: 30000]
    pub(crate) backoff_longest_ms: Option<u64>,
    /// How long finished jobs and their results are kept [default: 7]
    pub(crate) keep_days: Option<u64>,
}

impl WorkerFile {
    pub(crate) fn timing(&self) -> lavra_worker::Timing {
        let usual = lavra_worker::Timing::default();
        lavra_worker::Timing {
            session: self.session_seconds.map_or(usual.session, Duration::from_secs),
            idle: self.idle_seconds.map_or(usual.idle, Duration::from_secs),
            attempts: self.attempts.unwrap_or(usual.attempts).max(1),
            backoff: (
                millis(self.backoff_first_ms, usual.backoff.0),
                millis(self.backoff_longest_ms, usual.backoff.1),
            ),
            keep: self
                .keep_days
                .map_or(usual.keep, |days| Duration::from_secs(days.saturating_mul(86_400))),
        }
    }
}
