//! `lavra fleet`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use lavra_fleet::settings::ProxyFailures;

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
        /// Which failures deactivate a proxy.
        #[arg(long, value_name = "WHICH")]
        #[arg(value_parser = PossibleValuesParser::new(ProxyFailures::WORDS))]
        proxy_failures: Option<String>,
    },
    /// What happened in the fleet, newest first.
    Log(FleetLog),
    /// A report: failures, workers or proxies.
    Report {
        /// Which.
        name: Report,
        /// How many hours back [default: 24 for failures, 168 otherwise].
        #[arg(long, value_name = "N")]
        hours: Option<i64>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Report {
    /// Missions that failed, and why
    Failures,
    /// What each worker did, and how well
    Workers,
    /// What each proxy did, and how well
    Proxies,
}

impl Report {
    /// As its path has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Workers => "workers",
            Self::Proxies => "proxies",
        }
    }
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
    // Each says itself how it is added.
    Add(A),
    /// Make one active again, with no failure counted.
    Activate {
        /// Its name or its id.
        name: String,
    },
    /// Use one no more; it finishes what it has.
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

/// Add a worker; its API key is read from stdin.
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

/// Add a writer; its API key is read from stdin.
#[derive(Debug, Args)]
pub(crate) struct WriterAdd {
    /// What people call it.
    pub(crate) name: String,
    /// Where its Writer API is.
    #[arg(long)]
    pub(crate) url: String,
}

/// Add a proxy; with --username, its password is read from stdin.
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
