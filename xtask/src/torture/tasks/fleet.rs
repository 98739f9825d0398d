//! The processes of lavra that are tortured: two servers and three runners.

use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::interrupt;
use crate::ports;
use crate::workspace::Workspace;

const SERVERS: usize = 2;
const RUNNERS: usize = 3;

/// Short intervals, so that two minutes hold many takeovers.
const SETTINGS: &str = "
[runner]
heartbeat_ms = 500
poll_ms = 500
concurrency = 16
grace_seconds = 2

[tasks]
stale_ms = 2500
backoff_first_ms = 50
backoff_longest_ms = 500
";

pub(super) struct Fleet {
    lavra: PathBuf,
    directory: TempDir,
    database: String,
    broker: String,
    members: Vec<Member>,
}

struct Member {
    /// A server's port; a runner has none.
    port: Option<u16>,
    process: Option<Daemon>,
    frozen_until: Option<Instant>,
}

impl Fleet {
    pub(super) fn start(workspace: &Workspace, database: &str, broker: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("lavra.toml"), SETTINGS)?;
        let mut members = Vec::new();
        for place in 0..SERVERS + RUNNERS {
            let port = if place < SERVERS { Some(ports::free()?) } else { None };
            members.push(Member { port, process: None, frozen_until: None });
        }
        let mut fleet = Self {
            lavra: workspace.target().join("debug/lavra"),
            directory,
            database: database.to_owned(),
            broker: broker.to_owned(),
            members,
        };
        fleet.revive()?;
        fleet.wait()?;
        Ok(fleet)
    }

    pub(super) fn servers(&self) -> Vec<u16> {
        self.members.iter().filter_map(|member| member.port).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// `kill -9`, and a new process in its place.
    pub(super) fn kill(&mut self, place: usize) -> Result<()> {
        // Dropped, it is killed and waited for.
        self.members[place].process = None;
        self.members[place].frozen_until = None;
        self.begin(place)
    }

    pub(super) fn freeze(&mut self, place: usize, length: Duration) {
        if let Some(process) = &self.members[place].process {
            process.signal(Signal::STOP);
            self.members[place].frozen_until = Some(Instant::now() + length);
        }
    }

    /// Wakes those whose time has come.
    pub(super) fn thaw(&mut self) {
        let now = Instant::now();
        for member in &mut self.members {
            if member.frozen_until.is_some_and(|until| until <= now) {
                member.frozen_until = None;
                if let Some(process) = &member.process {
                    process.signal(Signal::CONT);
                }
            }
        }
    }

    /// Everyone runs, and runs unfrozen; one that ended by itself is started again.
    pub(super) fn revive(&mut self) -> Result<()> {
        for place in 0..self.members.len() {
            self.members[place].frozen_until = None;
            let is_alive = match &mut self.members[place].process {
                Some(process) => process.is_alive()?,
                None => false,
            };
            match &self.members[place].process {
                Some(process) if is_alive => process.signal(Signal::CONT),
                Some(_) | None => self.begin(place)?,
            }
        }
        Ok(())
    }

    pub(super) fn stop(self) -> Result<()> {
        for member in self.members {
            if let Some(process) = member.process {
                process.stop(Signal::TERM, Duration::from_secs(20))?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, place: usize) -> Result<()> {
        let mut command = std::process::Command::new(&self.lavra);
        command.current_dir(self.directory.path()).args([
            "--database",
            &self.database,
            "--broker",
            &self.broker,
        ]);
        match self.members[place].port {
            Some(port) => {
                command.args(["serve", "--demo-types", "--listen"]).arg(format!("127.0.0.1:{port}"))
            }
            None => command.args(["runner", "--demo-types"]),
        };
        // One server also runs tasks, the other only serves.
        if place == 0 {
            command.arg("--no-runner");
        }
        let log = self.directory.path().join(format!("{place}.log"));
        self.members[place].process = Some(Daemon::start("lavra", command, &log)?);
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let start = Instant::now();
        for port in self.servers() {
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                if start.elapsed() > Duration::from_secs(30) {
                    let log = std::fs::read_to_string(self.directory.path().join("0.log"));
                    bail!("the servers do not start:\n{}", log.unwrap_or_default());
                }
                interrupt::sleep(Duration::from_millis(50))?;
            }
        }
        Ok(())
    }
}
