//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::logging::Format;

/// Extracts data that is slow, paged, rate-limited and behind machines that fail, and never
/// loses its place.
#[derive(Debug, Parser)]
#[command(name = "lavra", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,

    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Log more; twice for everything.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[arg(long, value_enum, default_value = "text", global = true, env = "LAVRA_LOG_FORMAT")]
    pub(crate) log_format: Format,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where everything is. Flags win over LAVRA_* variables, those over lavra.toml.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Options {
    /// A DuckDB file, or a postgres:// URL [default: lavra.duckdb, or what DB_* name].
    #[arg(long, global = true, env = "LAVRA_DATABASE", hide_env_values = true)]
    pub(crate) database: Option<String>,

    /// RabbitMQ: amqp://user:password@host:port/vhost.
    #[arg(long, global = true, env = "LAVRA_BROKER", hide_env_values = true)]
    pub(crate) broker: Option<String>,

    /// A lavra server to talk to, instead of opening the database.
    #[arg(long, global = true, env = "LAVRA_SERVER")]
    pub(crate) server: Option<String>,

    /// The settings file [default: lavra.toml, if it is there].
    #[arg(long, global = true, env = "LAVRA_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// A directory or s3://bucket for what tasks produce [default: lavra-artefacts].
    #[arg(long, global = true, env = "LAVRA_ARTEFACTS")]
    pub(crate) artefacts: Option<String>,

    /// A directory or s3://bucket where removed tasks are archived first.
    #[arg(long, global = true, env = "LAVRA_ARCHIVE")]
    pub(crate) archive: Option<String>,

    /// Attempts that run at once in this process [default: 32].
    #[arg(long, global = true, env = "LAVRA_CONCURRENCY")]
    pub(crate) concurrency: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the HTTP API and run tasks.
    Serve(Serve),
    /// Run tasks, for more machines.
    Runner(RunnerArgs),
    /// Scrape for an orchestrator: the Worker API, behind the proxies it is given.
    Worker(WorkerArgs),
    /// Extract paged APIs: plan, discover, fetch, reconcile; resumable at any moment.
    #[command(subcommand)]
    Extract(Extract),
    /// Missions: make them, queue them, see what became of them.
    #[command(subcommand)]
    Mission(Mission),
    /// The fleet that runs missions: workers, proxies, writers, and the run itself.
    #[command(subcommand)]
    Fleet(Fleet),
    /// Create, watch, cancel and retry tasks.
    #[command(subcommand)]
    Task(Task),
    /// What failed for good: list it, drive it again.
    #[command(subcommand)]
    DeadLetter(DeadLetter),
    /// Tasks by the clock.
    #[command(subcommand)]
    Schedule(Schedule),
    /// Tell other programs what happened: missions that failed, extractions that ended.
    #[command(subcommand)]
    Webhook(Webhook),
    /// Secrets, sealed in the database.
    #[command(subcommand)]
    Secret(Secret),
    /// API keys: who may call a server, and as what.
    #[command(subcommand)]
    Key(Key),
    /// Bring the database's schema up to date, or print it.
    Migrate(Migrate),
    /// Ask the database a question (read-only), also while a server holds the file.
    Sql(Sql),
    /// Look at the database and the broker, and say what is not as it should be.
    Doctor,
    /// See it work: all of it on loopback, with three months to extract and 24 missions to run; then
    /// everything that was stored is held against the world it came from.
    Demo(Demo),
    /// Run a fleet that does not exist through a day in seconds, and check it after every step.
    Simulate(Simulate),
    /// Write JSON from a URL, a file or the request itself into tables: the Writer API.
    Writer(Writer),
    /// An outside world on loopback, to try everything against: the PNCP API, made from a seed.
    World(World),
    /// Completions for a shell.
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen [default: 127.0.0.1:8080]; beyond this machine only with an admin key, as `lavra
    /// key create` makes them.
    #[arg(long, env = "LAVRA_LISTEN")]
    pub(crate) listen: Option<String>,

    /// Let tasks call addresses of the inside (loopback, private networks), also where callers need
    /// keys.
    #[arg(long, env = "LAVRA_ALLOW_PRIVATE")]
    pub(crate) allow_private: bool,

    /// Only serve; let other processes run the tasks.
    #[arg(long)]
    pub(crate) no_runner: bool,

    /// Also know the type `count`, which counts slowly: for demonstrations and tests.
    #[arg(long, env = "LAVRA_DEMO_TYPES")]
    pub(crate) demo_types: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunnerArgs {
    /// Let `http` tasks and webhooks call addresses of the inside (loopback, private networks).
    #[arg(long, env = "LAVRA_ALLOW_PRIVATE")]
    pub(crate) allow_private: bool,

    #[arg(long, env = "LAVRA_DEMO_TYPES")]
    pub(crate) demo_types: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Where to listen [default: 127.0.0.1:8100]; beyond this machine only with a key, in
    /// LAVRA_WORKER_API_KEY.
    #[arg(long, env = "LAVRA_WORKER_LISTEN")]
    pub(crate) listen: Option<String>,
    /// The directory of its jobs and results [default: lavra-worker].
    #[arg(long, value_name = "DIR", env = "LAVRA_WORKER_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// What is scraped: ads, or a source file of your own [default: ads].
    #[arg(long, value_name = "FILE", env = "LAVRA_WORKER_SOURCE")]
    pub(crate) source: Option<String>,
    /// Where the source is.
    #[arg(long, value_name = "URL", env = "LAVRA_WORKER_BASE_URL")]
    pub(crate) base_url: Option<String>,
    /// Which endpoint of the source is scraped [default: its first].
    #[arg(long, value_name = "NAME", env = "LAVRA_WORKER_ENDPOINT")]
    pub(crate) endpoint: Option<String>,
    /// s3://bucket/below for results, instead of being served from the data directory.
    #[arg(long, value_name = "PLACE", env = "LAVRA_WORKER_STORAGE")]
    pub(crate) storage: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Extract {
    /// Extract months of a source: `lavra extract run pncp --from 2024-01 --to 2024-03`.
    Run(ExtractRun),
    /// How the months of a source stand, as a table of endpoints and months.
    Status(ExtractStatus),
    /// Check what is stored: every page there, as it came, with the records that were promised.
    Audit(ExtractAudit),
    /// Take up what is not complete, also what has failed, without planning anything new.
    Retry(ExtractRetry),
    /// Write records as files, one per endpoint and month: Parquet, CSV or JSON lines.
    Export(ExtractExport),
    /// Read a source file and explain its mistakes by line.
    Check {
        /// The TOML file of the source.
        file: PathBuf,
    },
}

/// Which source is meant.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// A source that is built in (pncp) [default: the one of --source].
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    pub(crate) name: Option<String>,
    /// A source file of your own.
    #[arg(long, value_name = "FILE")]
    pub(crate) source: Option<PathBuf>,
}

/// Which part of what is in the table.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// The first month: 2024-01, or any day of it [default: the first that is there].
    #[arg(long, value_name = "MONTH")]
    pub(crate) from: Option<String>,
    /// The last month [default: the last that is there].
    #[arg(long, value_name = "MONTH")]
    pub(crate) to: Option<String>,
    /// Only this endpoint, with or without the value of its fan-out; may stand several times
    /// [default: all].
    #[arg(long = "endpoint", value_name = "NAME")]
    pub(crate) endpoints: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractAudit {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Ask the source for the totals anew, and say which have moved.
    #[arg(long)]
    pub(crate) against_source: bool,
    /// Another place where the same API is.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Mark what is damaged, so that the next run fetches it again.
    #[arg(long)]
    pub(crate) repair: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractRetry {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Another place where the same API is.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractExport {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// A directory, or s3://bucket/below (with the usual `AWS_*` variables).
    #[arg(long, value_name = "PLACE")]
    pub(crate) out: String,
    #[arg(long, value_enum, default_value_t = ExportFormat::Parquet)]
    pub(crate) format: ExportFormat,
    /// Also what is there of months that are not complete.
    #[arg(long)]
    pub(crate) partial: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// Compressed with zstd; columns have their types.
    Parquet,
    Csv,
    /// The records as they came, one in a line.
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractRun {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The first month: 2024-01, or any day of it.
    #[arg(long, value_name = "MONTH")]
    pub(crate) from: String,
    /// The last month.
    #[arg(long, value_name = "MONTH")]
    pub(crate) to: String,
    /// Only this endpoint, with or without the value of its fan-out; may stand several times
    /// [default: all usual ones].
    #[arg(long = "endpoint", value_name = "NAME")]
    pub(crate) endpoints: Vec<String>,
    /// Another place where the same API is.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Fetch also what is complete.
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Print the plan and what it would cost, and ask for nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is there or not")]
pub(crate) struct Simulate {
    /// The same seed is the same simulation.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// So many seeds, from --seed on.
    #[arg(long, default_value_t = 1)]
    pub(crate) seeds: u64,
    #[arg(long, default_value_t = 10)]
    pub(crate) workers: usize,
    #[arg(long, default_value_t = 200)]
    pub(crate) missions: usize,
    /// [default: a quarter more than workers]
    #[arg(long)]
    pub(crate) proxies: Option<usize>,
    /// Processes that share the workers.
    #[arg(long, default_value_t = 1)]
    pub(crate) orchestrators: usize,
    /// What goes wrong outside: none, all, or JSON as `PUT /_fleet/faults` of the world takes it.
    #[arg(long, default_value = "all")]
    pub(crate) faults: String,
    /// Orchestrators are killed and frozen, and people cancel and retry.
    #[arg(long)]
    pub(crate) chaos: bool,
    /// Each seed has a number of workers and of orchestrators of its own, from 1 up to these.
    #[arg(long)]
    pub(crate) vary: bool,
    /// Steps are written whoever holds the rows: for the test that a simulation finds it.
    #[arg(long, hide = true)]
    pub(crate) break_the_guard: bool,
    /// Virtual days after which it has gone on for too long.
    #[arg(long, default_value_t = 60)]
    pub(crate) days: u64,
    /// Print the whole log as well.
    #[arg(long)]
    pub(crate) timeline: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Writer {
    /// Where to listen; beyond this machine only with an API key [default: 127.0.0.1:8091].
    #[arg(long, env = "LAVRA_WRITER_LISTEN")]
    pub(crate) listen: Option<String>,

    /// The database whose tables are filled, and where the jobs stand beside them [default: --database].
    #[arg(long, env = "LAVRA_WRITER_TARGET", hide_env_values = true)]
    pub(crate) target: Option<String>,

    /// A host that may be asked, and no others: NAME, NAME:PORT or *.NAME. May be repeated.
    #[arg(long, env = "LAVRA_WRITER_ALLOW_HOSTS", value_delimiter = ',')]
    pub(crate) allow_host: Vec<String>,

    /// A network of the inside that may be asked all the same, such as 10.0.0.0/8. May be repeated.
    #[arg(long, env = "LAVRA_WRITER_ALLOW_PRIVATE", value_delimiter = ',')]
    pub(crate) allow_private: Vec<String>,

    /// A directory below which files may be read. May be repeated.
    #[arg(long, env = "LAVRA_WRITER_DIRECTORIES", value_delimiter = ',')]
    pub(crate) directory: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct World {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8090")]
    pub(crate) listen: String,
    /// Where doubles of workers and a writer listen as well; their API keys are worker-key and
    /// writer-key.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) fleet: Option<String>,
    #[arg(long, default_value_t = 3)]
    pub(crate) fleet_workers: usize,
    /// What goes wrong there: all, or JSON.
    #[arg(long)]
    pub(crate) fleet_faults: Option<String>,
    /// Where an ad library listens as well, for `lavra worker` to scrape.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) ads: Option<String>,
    /// Ads of one day, media type and language, on average.
    #[arg(long, default_value_t = 200)]
    pub(crate) ads_per_day: u64,
    /// So many forward proxies, HTTP and SOCKS5 alike; the user is `user`, the password
    /// `proxy-password`.
    #[arg(long, default_value_t = 0, requires = "ads")]
    pub(crate) proxies: u16,
    /// The port of the first proxy; the others follow [default: any that are free].
    #[arg(long, value_name = "PORT", requires = "proxies")]
    pub(crate) proxy_port: Option<u16>,
    #[command(flatten)]
    pub(crate) options: lavra_world::WorldArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractStatus {
    /// The source.
    pub(crate) name: String,
    /// The first month.
    #[arg(long, value_name = "MONTH")]
    pub(crate) from: Option<String>,
    /// The last month.
    #[arg(long, value_name = "MONTH")]
    pub(crate) to: Option<String>,
    /// Only this endpoint, by its whole name.
    #[arg(long, value_name = "NAME")]
    pub(crate) endpoint: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mission {
    /// Make the bank: days × media types × languages, without what is there already.
    Add(MissionAdd),
    /// Make missions from a CSV file: date_start,date_end,media_type,languages.
    Import {
        file: PathBuf,
        /// Into the queue at once.
        #[arg(long)]
        queue: bool,
    },
    /// List missions, newest first.
    List(MissionList),
    /// Show one mission.
    Show { id: String },
    /// The timeline of a mission.
    Log { id: String },
    /// Make a new mission like one that there was.
    Copy {
        id: String,
        /// Into the queue at once.
        #[arg(long)]
        queue: bool,
    },
    /// Put missions of the bank into the queue.
    Queue(MissionFilter),
    /// Cancel missions; jobs that run are told to stop.
    Cancel(MissionFilter),
    /// Try failed missions again: only the write, where the data is there.
    Retry {
        #[command(flatten)]
        filter: MissionFilter,
        /// Where to begin: write, or scrape for all of it.
        #[arg(long, value_name = "PHASE")]
        again_from: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct MissionAdd {
    /// The first day.
    #[arg(long, value_name = "DAY")]
    pub(crate) from: String,
    /// The last day.
    #[arg(long, value_name = "DAY")]
    pub(crate) to: String,
    /// A mission for each day, week or month, or one for the whole range.
    #[arg(long, default_value = "day")]
    pub(crate) every: String,
    /// all, video or image; may stand several times.
    #[arg(long = "media-type", default_value = "all")]
    pub(crate) media_types: Vec<String>,
    /// A language; may stand several times, for a mission each. `pt,en` is one mission with both.
    #[arg(long = "language", required = true)]
    pub(crate) languages: Vec<String>,
    /// Into the queue at once.
    #[arg(long)]
    pub(crate) queue: bool,
}

/// Which missions; all conditions together.
#[derive(Debug, Default, Args)]
pub(crate) struct MissionFilter {
    pub(crate) ids: Vec<String>,
    /// queued, running, completed, failed or canceled.
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Only those of the bank: never queued.
    #[arg(long)]
    pub(crate) bank: bool,
    /// atribuido, extracao, armazenamento or finalizado.
    #[arg(long)]
    pub(crate) checkpoint: Option<String>,
    /// As ERROR203.
    #[arg(long)]
    pub(crate) error_code: Option<String>,
    #[arg(long)]
    pub(crate) media_type: Option<String>,
    #[arg(long)]
    pub(crate) language: Option<String>,
    /// The id of a worker.
    #[arg(long)]
    pub(crate) worker: Option<String>,
    /// Days at or after this one.
    #[arg(long)]
    pub(crate) from: Option<String>,
    /// Days up to this one.
    #[arg(long)]
    pub(crate) to: Option<String>,
    /// All missions, where nothing else is said.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MissionList {
    #[command(flatten)]
    pub(crate) filter: MissionFilter,
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) limit: u16,
    /// Where the last page ended.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Fleet {
    /// Start a run: it ends when nothing is queued or running.
    Start {
        /// Wait until it has ended.
        #[arg(long)]
        wait: bool,
    },
    /// Finish what runs, take nothing new, then end the run.
    Drain,
    /// Cancel jobs, put their missions back, close sessions, then end the run.
    Stop,
    /// The fleet at a glance.
    Status {
        /// Again and again, until Ctrl-C.
        #[arg(long)]
        watch: bool,
    },
    /// Workers, which scrape.
    #[command(subcommand)]
    Worker(Things),
    /// Proxies, behind which workers have their sessions.
    #[command(subcommand)]
    Proxy(Things),
    /// Writers, which store what was scraped.
    #[command(subcommand)]
    Writer(Things),
    /// Show the settings that can be changed while it runs, or change them.
    Settings {
        /// Missions per session, after which the proxy is changed.
        #[arg(long)]
        session_limit: Option<i32>,
        /// Retries of a phase before a mission fails for good.
        #[arg(long)]
        max_retries: Option<i32>,
        /// Which failures deactivate a proxy: total or consecutive.
        #[arg(long)]
        proxy_failures: Option<String>,
    },
    /// What happened, newest first.
    Log(FleetLog),
    /// A report: failures, workers or proxies.
    Report {
        name: String,
        /// How far back [default: 24 for failures, 168 otherwise].
        #[arg(long)]
        hours: Option<i64>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct FleetLog {
    #[arg(long)]
    pub(crate) mission: Option<String>,
    /// Only entries that belong to no mission.
    #[arg(long)]
    pub(crate) without_mission: bool,
    /// As scrape_failed.
    #[arg(long)]
    pub(crate) event: Option<String>,
    #[arg(long)]
    pub(crate) error_code: Option<String>,
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Where the last page ended.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

/// The same for workers, proxies and writers, which go by id or name.
#[derive(Debug, Subcommand)]
pub(crate) enum Things {
    List,
    /// Add one; the API key or password is read from stdin.
    Add {
        #[command(flatten)]
        service: ServiceAdd,
        #[command(flatten)]
        proxy: ProxyAdd,
    },
    /// Make it active; a proxy starts with no failure.
    Activate {
        name: String,
    },
    /// Use it no more; a worker finishes what it has.
    Deactivate {
        name: String,
    },
    Remove {
        name: String,
    },
    /// Ask it whether it is there.
    Test {
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ServiceAdd {
    pub(crate) name: String,
    /// Where a worker or a writer is.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Where the results of a worker are.
    #[arg(long)]
    pub(crate) storage_domain: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ProxyAdd {
    /// Of a proxy.
    #[arg(long)]
    pub(crate) host: Option<String>,
    #[arg(long)]
    pub(crate) port: Option<i32>,
    #[arg(long)]
    pub(crate) username: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Create a task: `lavra task create http --payload '{"url": "https://example.org"}'`.
    Create(TaskCreate),
    /// List tasks, newest first.
    List(TaskList),
    /// Show one task.
    Show { id: String },
    /// The newest events of a task.
    Events {
        id: String,
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
    },
    /// The result of a task.
    Result { id: String },
    /// What the task was given.
    Input { id: String },
    /// Put a failed or cancelled task back into the queue.
    Retry {
        id: String,
        /// Only if the task is still at this version.
        #[arg(long)]
        if_version: Option<i32>,
    },
    /// Cancel a task.
    Cancel {
        id: String,
        #[arg(long)]
        if_version: Option<i32>,
    },
    /// Wait until tasks have ended; exit code 3 if one did not end well.
    Wait {
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TaskCreate {
    /// The task type.
    pub(crate) kind: String,
    /// The payload as JSON; `-` reads it from stdin.
    #[arg(long, default_value = "{}")]
    pub(crate) payload: String,
    /// From high to low, then the oldest first [default: 1].
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) priority: Option<i16>,
    /// A compact JSON object that stays with the task.
    #[arg(long)]
    pub(crate) metadata: Option<String>,
    /// The same type and payload again answers the first task.
    #[arg(long)]
    pub(crate) idempotent: bool,
    #[arg(long)]
    pub(crate) max_retries: Option<i32>,
    /// Seconds before it may run.
    #[arg(long)]
    pub(crate) delay: Option<u64>,
    /// Wait until it has ended.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskList {
    #[arg(long = "type")]
    pub(crate) kind: Option<String>,
    /// PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED.
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Created at or after this time (RFC 3339).
    #[arg(long)]
    pub(crate) after: Option<String>,
    /// Created before this time.
    #[arg(long)]
    pub(crate) before: Option<String>,
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) limit: u16,
    /// Where the last page ended.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetter {
    /// List dead letters, newest first.
    List {
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
        limit: u16,
        /// Where the last page ended.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Put the task of a dead letter back into the queue.
    Redrive {
        id: String,
    },
    Remove {
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    List,
    /// `lavra schedule set nightly http '0 3 * * *' --payload '{"url": "…"}'` (UTC).
    Set {
        name: String,
        kind: String,
        cron: String,
        #[arg(long, default_value = "{}")]
        payload: String,
    },
    Remove {
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Webhook {
    /// Webhooks, and how they last answered.
    List,
    /// Add one; its secret is made and shown once, unless it comes from stdin.
    Add {
        /// What people call it.
        name: String,
        /// Where it is: http or https. Often it is a credential; the variable keeps it out of the
        /// shell's history.
        #[arg(long, env = "LAVRA_WEBHOOK_URL", hide_env_values = true)]
        url: String,
        /// What it is told of; may stand several times [default: everything].
        #[arg(long = "event", value_name = "EVENT")]
        events: Vec<String>,
        /// Take the secret from stdin.
        #[arg(long)]
        secret_from_stdin: bool,
    },
    /// Change what is said, and nothing else.
    Change(WebhookChange),
    /// Remove one; what waits for it is not sent.
    Remove {
        /// Its name or its id.
        webhook: String,
    },
    /// Send a ping now.
    Test {
        /// Its name or its id.
        webhook: String,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is there or not")]
pub(crate) struct WebhookChange {
    /// Its name or its id.
    pub(crate) webhook: String,
    /// Another name.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Another address.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// What it is told of from now on; may stand several times.
    #[arg(long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Make a new secret, and show it once.
    #[arg(long, conflicts_with = "secret_from_stdin")]
    pub(crate) new_secret: bool,
    /// Take a new secret from stdin.
    #[arg(long)]
    pub(crate) secret_from_stdin: bool,
    /// Tell it again what happens from now on.
    #[arg(long, conflicts_with = "deactivate")]
    pub(crate) activate: bool,
    /// Tell it nothing any more.
    #[arg(long)]
    pub(crate) deactivate: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Secret {
    /// Make a key for LAVRA_SECRET_KEY.
    GenerateKey,
    List,
    /// Set a secret; its value is read from stdin.
    Set {
        name: String,
    },
    Remove {
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key, which is printed this once: `lavra key create grafana --role viewer`.
    Create {
        /// What it is for.
        name: String,
        /// viewer, operator, admin, or writer for programs that work on tasks.
        #[arg(long)]
        role: String,
        /// When it ends: 90d, 12h, 1y [default: when it is revoked].
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List keys, the newest first; also those that are over.
    List,
    /// End a key, and the sessions that were opened with it.
    Revoke { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Print the PostgreSQL schema as a script instead of applying it.
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sql {
    /// One SELECT.
    pub(crate) query: String,
    /// At most this many rows.
    #[arg(long, default_value_t = 1000)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// End when the work is done, instead of staying up until Ctrl-C: 3 if some of it remains, 1 if
    /// anything is lost or wrong.
    #[arg(long)]
    pub(crate) exit: bool,
}
