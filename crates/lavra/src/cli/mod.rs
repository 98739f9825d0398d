//! What can be typed: here the commands and what all of them take, in a file each what is its own.

mod dead_letter;
mod demo;
mod extract;
mod fleet;
mod key;
mod migrate;
mod mission;
mod schedule;
mod secret;
mod serve;
mod simulate;
mod sql;
mod task;
mod value;
mod webhook;
mod worker;
mod world;
mod writer;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use self::dead_letter::DeadLetter;
pub(crate) use self::demo::Demo;
pub(crate) use self::extract::{
    ExportFormat, Extract, ExtractAudit, ExtractExport, ExtractRetry, ExtractRun, ExtractStatus,
    ScopeArgs, SourceArgs,
};
pub(crate) use self::fleet::{Fleet, FleetLog, ProxyAdd, Things, WorkerAdd, WriterAdd};
pub(crate) use self::key::Key;
pub(crate) use self::migrate::Migrate;
pub(crate) use self::mission::{
    Mission, MissionAdd, MissionChoice, MissionFilter, MissionList, Phase,
};
pub(crate) use self::schedule::Schedule;
pub(crate) use self::secret::Secret;
pub(crate) use self::serve::{RunnerArgs, Serve};
pub(crate) use self::simulate::Simulate;
pub(crate) use self::sql::Sql;
pub(crate) use self::task::{Task, TaskCreate, TaskList};
pub(crate) use self::webhook::{Webhook, WebhookChange};
pub(crate) use self::worker::WorkerArgs;
pub(crate) use self::world::World;
pub(crate) use self::writer::Writer;
use crate::logging::Format;

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
