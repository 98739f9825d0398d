//! The processes: a world, two servers, two runners, three workers and a writer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::workspace::Workspace;
use crate::{exec, http, interrupt, ports};

const SERVERS: usize = 2;
const RUNNERS: usize = 2;
const WORKERS: usize = 3;
pub(super) const PROXIES: u16 = 4;
pub(super) const WORKER_KEY: &str = "worker-key";
pub(super) const WRITER_KEY: &str = "writer-key";
const PATIENCE: Duration = Duration::from_secs(60);

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

/// A bad day of the API, beside being killed.
const FAULTS: [&str; 8] = [
    "latency.fixed_ms=30",
    "latency.jitter_ms=60",
    "too_many=0.01",
    "server_error=0.01",
    "gateway=0.01",
    "cut_chunks=0.01",
    "html=0.005",
    "reset=0.01",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    World,
    Server,
    Runner,
    Worker,
    Writer,
}

struct Part {
    name: String,
    kind: Kind,
    /// A runner has none.
    port: u16,
    process: Option<Daemon>,
    frozen_until: Option<Instant>,
    kills: u32,
    freezes: u32,
}

pub(super) struct Parts {
    lavra: PathBuf,
    directory: TempDir,
    database: String,
    broker: String,
    secret_key: String,
    seed: u64,
    pub(super) ads: u16,
    pub(super) first_proxy: u16,
    members: Vec<Part>,
}

impl Parts {
    pub(super) fn start(
        workspace: &Workspace,
        database: &str,
        broker: &str,
        seed: u64,
    ) -> Result<Self> {
        let lavra = workspace.target().join("debug/lavra");
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("lavra.toml"), SETTINGS)?;
        let secret_key = exec::capture(Command::new(&lavra).args(["secret", "generate-key"]))?;
        let mut members = vec![Part::new("world", Kind::World, ports::free()?)];
        for (kind, name, count) in [
            (Kind::Server, "server", SERVERS),
            (Kind::Runner, "runner", RUNNERS),
            (Kind::Worker, "worker", WORKERS),
            (Kind::Writer, "writer", 1),
        ] {
            for number in 1..=count {
                members.push(Part::new(&format!("{name}-{number}"), kind, ports::free()?));
            }
        }
        let mut parts = Self {
            lavra,
            directory,
            database: database.to_owned(),
            broker: broker.to_owned(),
            secret_key: secret_key.trim().to_owned(),
            seed,
            ads: ports::free()?,
            first_proxy: ports::row(PROXIES)?,
            members,
        };
        for place in 0..parts.members.len() {
            parts.begin(place)?;
        }
        parts.wait()?;
        Ok(parts)
    }

    /// Until every one of them answers.
    fn wait(&mut self) -> Result<()> {
        for member in &mut self.members {
            let (path, port) = match member.kind {
                Kind::World => ("/_world/stats", member.port),
                Kind::Server => ("/readyz", member.port),
                Kind::Worker | Kind::Writer => ("/health", member.port),
                Kind::Runner => continue,
            };
            if let Some(process) = &mut member.process {
                process.wait_until(PATIENCE, || {
                    http::send(port, "GET", path, &[], "").is_ok_and(|(status, _)| status == 200)
                })?;
            }
        }
        Ok(())
    }

    fn ports(&self, kind: Kind) -> Vec<u16> {
        self.members.iter().filter(|part| part.kind == kind).map(|part| part.port).collect()
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

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// `kill -9`, and a new process in its place.
    pub(super) fn kill(&mut self, place: usize) -> Result<()> {
        let part = &mut self.members[place];
        // Dropped, it is killed and waited for.
        part.process = None;
        part.frozen_until = None;
        part.kills += 1;
        self.begin(place)
    }

    pub(super) fn freeze(&mut self, place: usize, length: Duration) {
        let part = &mut self.members[place];
        if let Some(process) = &part.process {
            process.signal(Signal::STOP);
            part.frozen_until = Some(Instant::now() + length);
            part.freezes += 1;
        }
    }

    /// Wakes those whose time has come.
    pub(super) fn thaw(&mut self) {
        let now = Instant::now();
        for part in &mut self.members {
            if part.frozen_until.is_some_and(|until| until <= now) {
                part.frozen_until = None;
                part.process.iter().for_each(|process| process.signal(Signal::CONT));
            }
        }
    }

    /// Those that ended by themselves are begun again.
    pub(super) fn restart(&mut self) -> Result<()> {
        for place in 0..self.members.len() {
            let process = &mut self.members[place].process;
            if process.as_mut().map(Daemon::is_alive).transpose()? != Some(true) {
                self.begin(place)?;
            }
        }
        Ok(())
    }

    /// Everyone runs, and runs unfrozen.
    pub(super) fn revive(&mut self) -> Result<()> {
        for part in &mut self.members {
            part.frozen_until = None;
            part.process.iter().for_each(|process| process.signal(Signal::CONT));
        }
        self.restart()?;
        interrupt::sleep(Duration::from_secs(1))?;
        self.restart()
    }

    pub(super) fn stop(self) -> Result<()> {
        for part in self.members {
            if let Some(process) = part.process {
                process.stop(Signal::TERM, Duration::from_secs(30))?;
            }
        }
        Ok(())
    }

    /// The directory with the logs stays; the processes do not.
    pub(super) fn keep(self) -> PathBuf {
        drop(self.members);
        self.directory.keep()
    }

    /// Who was killed and frozen how often.
    pub(super) fn toll(&self, servers: &[(&str, u32)]) -> String {
        let head = format!("{:<12}{:>7}{:>7}", "part", "killed", "frozen");
        let parts = self
            .members
            .iter()
            .map(|part| format!("{:<12}{:>7}{:>7}", part.name, part.kills, part.freezes));
        let servers = servers.iter().map(|(name, ends)| format!("{name:<12}{ends:>7}{:>7}", ""));
        std::iter::once(head).chain(parts).chain(servers).collect::<Vec<_>>().join("\n")
    }

    /// `lavra` on the database, with everything that it needs to know.
    pub(super) fn lavra(&self) -> Command {
        let mut command = Command::new(&self.lavra);
        command
            .current_dir(self.directory.path())
            .env("LAVRA_SECRET_KEY", &self.secret_key)
            .env("LAVRA_WORKER_API_KEY", WORKER_KEY)
            .env("LAVRA_WRITER_API_KEY", WRITER_KEY)
            .args(["--database", &self.database]);
        command
    }

    fn begin(&mut self, place: usize) -> Result<()> {
        let part = &self.members[place];
        let listen = format!("127.0.0.1:{}", part.port);
        let mut command = self.lavra();
        match part.kind {
            Kind::World => self.world_at(&mut command, &listen),
            Kind::Server => {
                command.args(["--broker", &self.broker, "serve", "--listen", &listen]);
            }
            Kind::Runner => {
                command.args(["--broker", &self.broker, "runner", "--allow-private"]);
            }
            Kind::Worker => {
                let base = format!("http://127.0.0.1:{}/v1", self.ads);
                command.args(["worker", "--listen", &listen, "--base-url", &base]);
                command.args(["--data", &part.name]);
            }
            Kind::Writer => {
                command.args(["writer", "--listen", &listen, "--allow-private", "127.0.0.0/8"]);
            }
        }
        let log = self.directory.path().join(format!("{}.log", part.name));
        let process = match Daemon::start("lavra", command, &log) {
            Ok(process) => process,
            Err(error) => bail!("{}: {error:#}", part.name),
        };
        self.members[place].process = Some(process);
        Ok(())
    }

    fn world_at(&self, command: &mut Command, listen: &str) {
        command.args(["world", "--listen", listen, "--seed", &self.seed.to_string()]);
        command.args(["--scale", "0.02", "--now", "2026-10-15T12:00:00Z"]);
        command.args(["--ads", &format!("127.0.0.1:{}", self.ads), "--ads-per-day", "60"]);
        command.args(["--proxies", &PROXIES.to_string()]);
        command.args(["--proxy-port", &self.first_proxy.to_string()]);
        for fault in FAULTS {
            command.args(["--fault", fault]);
        }
    }
}

impl Part {
    fn new(name: &str, kind: Kind, port: u16) -> Self {
        let name = name.to_owned();
        Self { name, kind, port, process: None, frozen_until: None, kills: 0, freezes: 0 }
    }
}
