//! The processes: a world, two servers, two runners, three workers and a writer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::outside;
use crate::torture::processes::Processes;
use crate::workspace::Workspace;
use crate::{exec, http, ports};

const SERVERS: usize = 2;
const RUNNERS: usize = 2;
pub(super) const WORKERS: usize = 3;
pub(super) const PROXIES: u16 = 4;
pub(super) const WORKER_KEY: &str = "worker-key";
pub(super) const WRITER_KEY: &str = "writer-key";
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a process may take to stop.
const GRACE: Duration = Duration::from_secs(30);

/// Short intervals, so that minutes hold many takeovers.
const SETTINGS: &str = "
[runner]
heartbeat_ms = 500
poll_ms = 500
grace_seconds = 2

[tasks]
stale_ms = 2500
backoff_first_ms = 50
backoff_longest_ms = 500

[fleet]
polling_session_ms = 150
polling_job_ms = 200
polling_queue_ms = 500
close_patience_ms = 3000
stop_patience_ms = 3000
worker_patience_ms = 15000
backoff_first_ms = 200
backoff_longest_ms = 1000
heartbeat_ms = 500
stale_ms = 2500

[worker]
session_seconds = 10
backoff_first_ms = 100
backoff_longest_ms = 1000
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    World,
    Server,
    Runner,
    Worker,
    Writer,
}

/// `lavra` on the database, with everything that it needs to know.
#[derive(Clone)]
struct Lavra {
    program: PathBuf,
    directory: PathBuf,
    secret_key: String,
    database: String,
}

pub(super) struct Parts {
    pub(super) processes: Processes,
    lavra: Lavra,
    /// What is in which place, and its port; a runner listens nowhere.
    places: Vec<(Kind, u16)>,
    /// Where the ad library is.
    pub(super) ads: u16,
    pub(super) first_proxy: u16,
}

impl Parts {
    /// All of them, not begun yet.
    pub(super) fn new(
        workspace: &Workspace,
        database: &str,
        broker: &str,
        seed: u64,
    ) -> Result<Self> {
        let program = workspace.target().join("debug/lavra");
        let secret_key = exec::capture(Command::new(&program).args(["secret", "generate-key"]))?;
        let processes = Processes::new(SETTINGS)?;
        let lavra = Lavra {
            program,
            directory: processes.path().to_owned(),
            secret_key: secret_key.trim().to_owned(),
            database: database.to_owned(),
        };
        let (ads, first_proxy) = (ports::free()?, ports::row(PROXIES)?);
        let mut parts = Self { processes, lavra, places: Vec::new(), ads, first_proxy };
        parts.add(Kind::World, "world", &outside::world(ads, first_proxy, seed))?;
        let broker = format!("--broker={broker}");
        for number in 1..=SERVERS {
            parts.add(Kind::Server, &format!("server-{number}"), &[&broker, "serve"])?;
        }
        for number in 1..=RUNNERS {
            let arguments = [&broker, "runner", "--allow-private"];
            parts.add(Kind::Runner, &format!("runner-{number}"), &arguments)?;
        }
        let base = format!("http://127.0.0.1:{ads}/v1");
        for number in 1..=WORKERS {
            let name = format!("worker-{number}");
            parts.add(Kind::Worker, &name, &["worker", "--base-url", &base, "--data", &name])?;
        }
        parts.add(Kind::Writer, "writer-1", &["writer", "--allow-private", "127.0.0.0/8"])?;
        Ok(parts)
    }

    fn add(&mut self, kind: Kind, name: &str, arguments: &[impl AsRef<str>]) -> Result<()> {
        let port = ports::free()?;
        let mut arguments: Vec<String> =
            arguments.iter().map(|one| one.as_ref().to_owned()).collect();
        if kind != Kind::Runner {
            arguments.push(format!("--listen=127.0.0.1:{port}"));
        }
        let lavra = self.lavra.clone();
        self.places.push((kind, port));
        self.processes.add(name, move || {
            let mut command = lavra.command();
            command.args(&arguments);
            command
        });
        Ok(())
    }

    /// Until every one of them answers.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.processes.restart()?;
        for (place, (kind, port)) in self.places.iter().enumerate() {
            let path = match kind {
                Kind::World => "/_world/stats",
                Kind::Server => "/readyz",
                Kind::Worker | Kind::Writer => "/health",
                Kind::Runner => continue,
            };
            self.processes.wait(place, PATIENCE, || {
                http::send(*port, "GET", path, &[], "").is_ok_and(|(status, _)| status == 200)
            })?;
        }
        Ok(())
    }

    pub(super) fn stop(&mut self) -> Result<()> {
        self.processes.stop(GRACE)
    }

    /// Another process in the place of each writer: it clears away what its dead left behind.
    pub(super) fn replace_writers(&mut self) -> Result<()> {
        let is_writer =
            |(place, (kind, _)): (usize, &(Kind, u16))| (*kind == Kind::Writer).then_some(place);
        let places: Vec<usize> = self.places.iter().enumerate().filter_map(is_writer).collect();
        places.into_iter().try_for_each(|place| self.processes.replace(place))
    }

    fn ports(&self, wanted: Kind) -> Vec<u16> {
        self.places.iter().filter(|(kind, _)| *kind == wanted).map(|(_, port)| *port).collect()
    }

    pub(super) fn servers(&self) -> Vec<u16> {
        self.ports(Kind::Server)
    }

    pub(super) fn workers(&self) -> Vec<u16> {
        self.ports(Kind::Worker)
    }

    pub(super) fn writers(&self) -> Vec<u16> {
        self.ports(Kind::Writer)
    }

    /// Where the PNCP API is.
    pub(super) fn world(&self) -> u16 {
        self.ports(Kind::World).first().copied().unwrap_or_default()
    }

    pub(super) fn path(&self) -> &Path {
        self.processes.path()
    }

    pub(super) fn lavra(&self) -> Command {
        self.lavra.command()
    }
}

impl Lavra {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.directory)
            .env("LAVRA_SECRET_KEY", &self.secret_key)
            .env("LAVRA_WORKER_API_KEY", WORKER_KEY)
            .env("LAVRA_WRITER_API_KEY", WRITER_KEY)
            .args(["--database", &self.database]);
        command
    }
}
