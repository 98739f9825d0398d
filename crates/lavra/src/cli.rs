//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::logging::Format;
use crate::work::Part;

/// What every command takes, apart from what is its own.
const GLOBAL: &str = "Options of every command";

const FIRST_STEPS: &str = "\
First steps:
  lavra demo               see it work, on loopback
  lavra serve              serve http://127.0.0.1:8080, with lavra.duckdb in this directory
  lavra COMMAND --help     what a command does, and its flags

Exit codes: 0 done, 1 error, 2 bad usage, 3 finished but work remains, 130 interrupted.";

/// Extracts data that is slow, paged, rate-limited and behind machines that fail, and never
/// loses its place.
#[derive(Debug, Parser)]
#[command(name = "lavra", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = FIRST_STEPS)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,

    /// Print JSON instead of tables.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,

    /// Log more; twice for everything.
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = GLOBAL)]
    pub(crate) verbose: u8,

    /// How the log on stderr is written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", help_heading = GLOBAL)]
    #[arg(global = true, env = "LAVRA_LOG_FORMAT", hide_env_values = true)]
    pub(crate) log_format: Format,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where everything is. Flags win over LAVRA_* variables, those over lavra.toml.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = GLOBAL)]
pub(crate) struct Options {
    /// A DuckDB file, or a postgres:// URL [default: lavra.duckdb, or what DB_* name].
    #[arg(
        long,
        value_name = "FILE|URL",
        global = true,
        env = "LAVRA_DATABASE",
        hide_env_values = true
    )]
    pub(crate) database: Option<String>,

    /// RabbitMQ: amqp://user:password@host:port/vhost.
    #[arg(long, value_name = "URL", global = true, env = "LAVRA_BROKER", hide_env_values = true)]
    pub(crate) broker: Option<String>,

    /// A lavra server to talk to, instead of opening the database: http://127.0.0.1:8080.
    #[arg(long, value_name = "URL", global = true, env = "LAVRA_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,

    /// The settings file [default: lavra.toml, if it is there].
    #[arg(long, value_name = "FILE", global = true, env = "LAVRA_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    /// A directory or s3://bucket for what tasks produce [default: lavra-artefacts].
    #[arg(
        long,
        value_name = "PLACE",
        global = true,
        env = "LAVRA_ARTEFACTS",
        hide_env_values = true
    )]
    pub(crate) artefacts: Option<String>,

    /// A directory or s3://bucket where removed tasks are archived first.
    #[arg(
        long,
        value_name = "PLACE",
        global = true,
        env = "LAVRA_ARCHIVE",
        hide_env_values = true
    )]
    pub(crate) archive: Option<String>,

    /// Attempts that run at once in this process [default: 32].
    #[arg(
        long,
        value_name = "N",
        global = true,
        env = "LAVRA_CONCURRENCY",
        hide_env_values = true
    )]
    pub(crate) concurrency: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See it work: all of it on loopback, with three months to extract and 24 missions to run; then
    /// everything that was stored is held against the world it came from.
    Demo(Demo),
    /// Serve the HTTP API and Mission Control, and run tasks.
    Serve(Serve),
    /// Run tasks and nothing else: more machines for one PostgreSQL.
    Runner(RunnerArgs),
    /// The Worker API: scrape for an orchestrator, behind the proxies it gives.
    Worker(WorkerArgs),
    /// The Writer API: JSON from a URL, a file or the request itself into tables.
    Writer(Writer),
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
    /// Tasks that failed for good: list them, put them back into the queue.
    #[command(subcommand)]
    DeadLetter(DeadLetter),
    /// Make tasks by the clock: list, set and remove schedules.
    #[command(subcommand)]
    Schedule(Schedule),
    /// Tell other programs what happened: missions that failed, extractions that ended.
    #[command(subcommand)]
    Webhook(Webhook),
    /// Keep secrets sealed in the database.
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
    /// Run a fleet that does not exist through a day in seconds, checked after every step.
    Simulate(Simulate),
    /// An outside world on loopback, made from a seed, to try everything against.
    World(World),
    /// Print the completions of a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, a file for each command.
    #[command(hide = true)]
    Man {
        /// A directory that is there.
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen [default: 127.0.0.1:8080]; beyond this machine only with an admin key, as `lavra
    /// key create` makes them.
    #[arg(long, value_name = "HOST:PORT", env = "LAVRA_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,

    /// Let tasks call addresses of the inside (loopback, private networks), also where callers need
    /// keys.
    #[arg(long, env = "LAVRA_ALLOW_PRIVATE", hide_env_values = true)]
    pub(crate) allow_private: bool,

    /// Only serve; let other processes run the tasks.
    #[arg(long)]
    pub(crate) no_runner: bool,

    /// Beside serving, run only this part of the work, and leave the rest to other processes; repeat it
    /// for more.
    #[arg(long, value_name = "PART", conflicts_with = "no_runner")]
    pub(crate) only: Vec<Part>,

    /// Also know the type `count`, which counts slowly: for demonstrations and tests.
    #[arg(long, env = "LAVRA_DEMO_TYPES", hide_env_values = true)]
    pub(crate) demo_types: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunnerArgs {
    /// Run only this part of the work, and leave the rest to other processes; repeat it for more.
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<Part>,

    /// Let tasks call addresses of the inside (loopback, private networks).
    #[arg(long, env = "LAVRA_ALLOW_PRIVATE", hide_env_values = true)]
    pub(crate) allow_private: bool,

    /// Also know the type `count`, which counts slowly: for demonstrations and tests.
    #[arg(long, env = "LAVRA_DEMO_TYPES", hide_env_values = true)]
    pub(crate) demo_types: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Where to listen [default: 127.0.0.1:8100]; beyond this machine only with a key, in
    /// LAVRA_WORKER_API_KEY.
    #[arg(long, value_name = "HOST:PORT", env = "LAVRA_WORKER_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,
    /// The directory of its jobs and results [default: lavra-worker].
    #[arg(long, value_name = "DIR", env = "LAVRA_WORKER_DATA", hide_env_values = true)]
    pub(crate) data: Option<PathBuf>,
    /// What is scraped: ads, or a source file of your own [default: ads].
    #[arg(long, value_name = "FILE", env = "LAVRA_WORKER_SOURCE", hide_env_values = true)]
    pub(crate) source: Option<String>,
    /// Where the source is.
    #[arg(long, value_name = "URL", env = "LAVRA_WORKER_BASE_URL", hide_env_values = true)]
    pub(crate) base_url: Option<String>,
    /// Which endpoint of the source is scraped [default: its first].
    #[arg(long, value_name = "NAME", env = "LAVRA_WORKER_ENDPOINT", hide_env_values = true)]
    pub(crate) endpoint: Option<String>,
    /// s3://bucket/below for results, instead of being served from the data directory.
    #[arg(long, value_name = "PLACE", env = "LAVRA_WORKER_STORAGE", hide_env_values = true)]
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
    /// Read a source file and explain its mistakes, line by line.
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
    /// Where the API is, instead of where the source says.
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
    /// Where the API is, instead of where the source says.
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
    /// What the files are.
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
    /// With a head line.
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
    /// Where the API is, instead of where the source says.
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
    /// How many seeds, from --seed on.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seeds: u64,
    /// How many workers the fleet has.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) workers: usize,
    /// How many missions it runs.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) missions: usize,
    /// How many proxies it has [default: a quarter more than workers].
    #[arg(long, value_name = "N")]
    pub(crate) proxies: Option<usize>,
    /// How many orchestrators share the workers.
    #[arg(long, value_name = "N", default_value_t = 1)]
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
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) days: u64,
    /// Print the whole log as well.
    #[arg(long)]
    pub(crate) timeline: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Writer {
    /// Where to listen; beyond this machine only with an API key [default: 127.0.0.1:8091].
    #[arg(long, value_name = "HOST:PORT", env = "LAVRA_WRITER_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,

    /// The database whose tables are filled, and where the jobs stand beside them [default: --database].
    #[arg(long, value_name = "FILE|URL", env = "LAVRA_WRITER_TARGET", hide_env_values = true)]
    pub(crate) target: Option<String>,

    /// A host that may be asked, and no others: NAME, NAME:PORT or *.NAME; may stand several times.
    #[arg(
        long,
        value_name = "HOST",
        env = "LAVRA_WRITER_ALLOW_HOSTS",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) allow_host: Vec<String>,

    /// A network of the inside that may be asked all the same, such as 10.0.0.0/8; may stand several times.
    #[arg(
        long,
        value_name = "NETWORK",
        env = "LAVRA_WRITER_ALLOW_PRIVATE",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) allow_private: Vec<String>,

    /// A directory below which files may be read; may stand several times.
    #[arg(
        long,
        value_name = "DIR",
        env = "LAVRA_WRITER_DIRECTORIES",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) directory: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct World {
    /// Where the PNCP API listens.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8090")]
    pub(crate) listen: String,
    /// Where doubles of workers and a writer listen as well; their API keys are worker-key and
    /// writer-key.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) fleet: Option<String>,
    /// How many doubles of workers there are.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) fleet_workers: usize,
    /// What goes wrong with them: all, or JSON as `PUT /_fleet/faults` of the world takes it.
    #[arg(long, value_name = "FAULTS", requires = "fleet")]
    pub(crate) fleet_faults: Option<String>,
    /// Where an ad library listens as well, for `lavra worker` to scrape.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) ads: Option<String>,
    /// Ads of one day, media type and language, on average.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) ads_per_day: u64,
    /// How many forward proxies there are, HTTP and SOCKS5 alike; the user is `user`, the password
    /// `proxy-password`.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "ads")]
    pub(crate) proxies: u16,
    /// The port of the first proxy; the others follow [default: any that are free].
    #[arg(long, value_name = "PORT", requires = "proxies")]
    pub(crate) proxy_port: Option<u16>,
    #[command(flatten)]
    pub(crate) options: lavra_world::WorldArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractStatus {
    /// The name of the source: pncp, or one of your own.
    pub(crate) name: String,
    /// The first month: 2024-01 [default: the first that is there].
    #[arg(long, value_name = "MONTH")]
    pub(crate) from: Option<String>,
    /// The last month [default: the last that is there].
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
        /// The CSV file.
        file: PathBuf,
        /// Put them into the queue at once.
        #[arg(long)]
        queue: bool,
    },
    /// List missions, newest first.
    List(MissionList),
    /// Show one mission.
    Show {
        /// The id of the mission.
        id: String,
    },
    /// The timeline of a mission.
    Log {
        /// The id of the mission.
        id: String,
    },
    /// Make a new mission like one that there was.
    Copy {
        /// The id of the mission.
        id: String,
        /// Put it into the queue at once.
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
        /// Where to begin: write, or scrape for all of it [default: write, where the data is there].
        #[arg(long, value_name = "PHASE")]
        again_from: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct MissionAdd {
    /// The first day: 2025-01-31.
    #[arg(long, value_name = "DAY")]
    pub(crate) from: String,
    /// The last day.
    #[arg(long, value_name = "DAY")]
    pub(crate) to: String,
    /// What a mission covers: a day, week or month of the range, or range for all of it.
    #[arg(long, value_name = "SPAN", default_value = "day")]
    pub(crate) every: String,
    /// A media type, all, video or image; may stand several times, for a mission each.
    #[arg(long = "media-type", value_name = "TYPE", default_value = "all")]
    pub(crate) media_types: Vec<String>,
    /// A language; may stand several times, for a mission each. `pt,en` is one mission with both.
    #[arg(long = "language", value_name = "CODE", required = true)]
    pub(crate) languages: Vec<String>,
    /// Put them into the queue at once.
    #[arg(long)]
    pub(crate) queue: bool,
}

/// Which missions; all conditions together.
#[derive(Debug, Default, Args)]
pub(crate) struct MissionFilter {
    /// Ids of missions.
    pub(crate) ids: Vec<String>,
    /// Only with this status: queued, running, completed, failed or canceled.
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Only those of the bank: never queued.
    #[arg(long)]
    pub(crate) bank: bool,
    /// Only at this checkpoint: atribuido, extracao, armazenamento or finalizado.
    #[arg(long)]
    pub(crate) checkpoint: Option<String>,
    /// Only with this error, such as ERROR203.
    #[arg(long, value_name = "CODE")]
    pub(crate) error_code: Option<String>,
    /// Only of this media type: all, video or image.
    #[arg(long, value_name = "TYPE")]
    pub(crate) media_type: Option<String>,
    /// Only of this language.
    #[arg(long, value_name = "CODE")]
    pub(crate) language: Option<String>,
    /// Only those of the worker with this id.
    #[arg(long, value_name = "ID")]
    pub(crate) worker: Option<String>,
    /// Only days at or after this one.
    #[arg(long, value_name = "DAY")]
    pub(crate) from: Option<String>,
    /// Only days up to this one.
    #[arg(long, value_name = "DAY")]
    pub(crate) to: Option<String>,
    /// All missions; needed where nothing else is said.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MissionList {
    #[command(flatten)]
    pub(crate) filter: MissionFilter,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) limit: u16,
    /// Go on where the last page ended, with what it said.
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
    Worker(Things<WorkerAdd>),
    /// Proxies, behind which workers have their sessions.
    #[command(subcommand)]
    Proxy(Things<ProxyAdd>),
    /// Writers, which store what was scraped.
    #[command(subcommand)]
    Writer(Things<WriterAdd>),
    /// Show the settings that can be changed while it runs, or change them.
    Settings {
        /// Missions per session, after which the proxy is changed.
        #[arg(long, value_name = "N")]
        session_limit: Option<i32>,
        /// Retries of a phase before a mission fails for good.
        #[arg(long, value_name = "N")]
        max_retries: Option<i32>,
        /// Which failures deactivate a proxy: total or consecutive.
        #[arg(long, value_name = "WHICH")]
        proxy_failures: Option<String>,
    },
    /// What happened in the fleet, newest first.
    Log(FleetLog),
    /// A report: failures, workers or proxies.
    Report {
        /// Which: failures, workers or proxies.
        name: String,
        /// How many hours back [default: 24 for failures, 168 otherwise].
        #[arg(long, value_name = "N")]
        hours: Option<i64>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct FleetLog {
    /// Only entries of the mission with this id.
    #[arg(long, value_name = "ID", conflicts_with = "without_mission")]
    pub(crate) mission: Option<String>,
    /// Only entries that belong to no mission.
    #[arg(long)]
    pub(crate) without_mission: bool,
    /// Only this event, such as scrape_failed.
    #[arg(long)]
    pub(crate) event: Option<String>,
    /// Only with this error, such as ERROR203.
    #[arg(long, value_name = "CODE")]
    pub(crate) error_code: Option<String>,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where the last page ended, with what it said.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

/// The same for workers, proxies and writers, which go by id or name.
#[derive(Debug, Subcommand)]
pub(crate) enum Things<A: Args> {
    /// List all of them.
    List,
    /// Add one; its API key or password is read from stdin.
    Add(A),
    /// Make one active; a proxy starts with no failure.
    Activate {
        /// Its name or its id.
        name: String,
    },
    /// Use one no more; a worker finishes what it has.
    Deactivate {
        /// Its name or its id.
        name: String,
    },
    /// Remove one that nobody uses.
    Remove {
        /// Its name or its id.
        name: String,
    },
    /// Ask one whether it is there.
    Test {
        /// Its name or its id.
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct WorkerAdd {
    /// What people call it.
    pub(crate) name: String,
    /// Where its Worker API is.
    #[arg(long)]
    pub(crate) url: String,
    /// Where its results are; without it the worker cannot be activated.
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) storage_domain: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WriterAdd {
    /// What people call it.
    pub(crate) name: String,
    /// Where its Writer API is.
    #[arg(long)]
    pub(crate) url: String,
}

#[derive(Debug, Args)]
pub(crate) struct ProxyAdd {
    /// What people call it.
    pub(crate) name: String,
    /// Its host; socks5://HOST for one that speaks SOCKS5.
    #[arg(long)]
    pub(crate) host: String,
    /// Its port.
    #[arg(long)]
    pub(crate) port: Option<i32>,
    /// Its user; the password is then read from stdin, or from LAVRA_FLEET_PASSWORD.
    #[arg(long, value_name = "USER")]
    pub(crate) username: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Create a task: `lavra task create http --payload '{"url": "https://example.org"}'`.
    Create(TaskCreate),
    /// List tasks, newest first.
    List(TaskList),
    /// Show one task.
    Show {
        /// The id of the task.
        id: String,
    },
    /// The newest events of a task.
    Events {
        /// The id of the task.
        id: String,
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 100)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
    },
    /// The result of a task.
    Result {
        /// The id of the task.
        id: String,
    },
    /// What the task was given.
    Input {
        /// The id of the task.
        id: String,
    },
    /// Put a failed or cancelled task back into the queue.
    Retry {
        /// The id of the task.
        id: String,
        /// Only if the task is still at this version.
        #[arg(long, value_name = "N")]
        if_version: Option<i32>,
    },
    /// Cancel a task; a worker that runs it is told to stop.
    Cancel {
        /// The id of the task.
        id: String,
        /// Only if the task is still at this version.
        #[arg(long, value_name = "N")]
        if_version: Option<i32>,
    },
    /// Wait until tasks have ended; exit code 3 if one did not end well.
    Wait {
        /// The ids of the tasks.
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TaskCreate {
    /// The task type: http, cleanup, extract, or one of your own workers.
    #[arg(value_name = "TYPE")]
    pub(crate) kind: String,
    /// What the task is given, as JSON; `-` reads it from stdin.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) payload: String,
    /// The highest is run first, then the oldest [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i16>,
    /// A compact JSON object that stays with the task.
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
    /// The same type and payload again answers the first task.
    #[arg(long)]
    pub(crate) idempotent: bool,
    /// How often it is tried again [default: its type's, usually 3].
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<i32>,
    /// Seconds before it may run.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) delay: Option<u64>,
    /// Wait until it has ended.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskList {
    /// Only of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Only with this status: PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED.
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Created at or after this time, such as 2025-01-31T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// Created before this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) before: Option<String>,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) limit: u16,
    /// Go on where the last page ended, with what it said.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetter {
    /// List dead letters, newest first.
    List {
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 50)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
        limit: u16,
        /// Go on where the last page ended, with what it said.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Put the task of a dead letter back into the queue.
    Redrive {
        /// The id of the dead letter.
        id: String,
    },
    /// Remove a dead letter; its task stays FAILED.
    Remove {
        /// The id of the dead letter.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    /// List schedules, and when each is next.
    List,
    /// Make or change one: `lavra schedule set nightly http '0 3 * * *' --payload '{"url": "…"}'`.
    Set {
        /// What people call it.
        name: String,
        /// The type of its tasks.
        #[arg(value_name = "TYPE")]
        kind: String,
        /// When, as a cron line in UTC: minute, hour, day, month, day of the week.
        cron: String,
        /// What its tasks are given, as JSON; `-` reads it from stdin.
        #[arg(long, value_name = "JSON", default_value = "{}")]
        payload: String,
    },
    /// Remove a schedule; tasks that it has made stay.
    Remove {
        /// The name of the schedule.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Webhook {
    /// List webhooks, and how they last answered.
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
    /// Change one: what the flags say, and nothing else.
    Change(WebhookChange),
    /// Remove one; what waits for it is not sent.
    Remove {
        /// Its name or its id.
        webhook: String,
    },
    /// Send one a ping now.
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
    /// List the names of secrets; their values are never shown.
    List,
    /// Set a secret; its value is read from stdin.
    Set {
        /// The name of the secret.
        name: String,
    },
    /// Remove a secret.
    Remove {
        /// The name of the secret.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key, which is printed this once: `lavra key create grafana --role viewer`.
    Create {
        /// What it is for.
        name: String,
        /// What it may: viewer, operator, admin, or writer for programs that work on tasks.
        #[arg(long)]
        role: String,
        /// When it ends: 90d, 12h, 1y [default: when it is revoked].
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List keys, the newest first; also those that are over.
    List,
    /// End a key, and the sessions that were opened with it.
    Revoke {
        /// The id of the key, as `lavra key list` shows it.
        id: String,
    },
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
    /// How many rows at most.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// End when the work is done, instead of staying up until Ctrl-C: 3 if some of it remains, 1 if
    /// anything is lost or wrong.
    #[arg(long)]
    pub(crate) exit: bool,
}
