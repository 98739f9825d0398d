//! A world of 960 pages, and a process that is killed when it has been served half of them and then started
//! again. Lavra and its peers go through the same.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::workspace::Workspace;
use crate::{http, interrupt, ports};

pub(super) const PAGES: u64 = 960;
/// How long a world may take to answer, and to be done with those who are gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long any run may take: the slowest takes half a minute.
const LONGEST: Duration = Duration::from_secs(300);

/// One list of one month, and a directory for whoever reads it.
pub(super) struct World {
    directory: TempDir,
    port: u16,
    _daemon: Daemon,
}

impl World {
    pub(super) fn start(workspace: &Workspace) -> Result<Self> {
        let (directory, port) = (tempfile::tempdir()?, ports::free()?);
        let mut command = Command::new(workspace.target().join("debug/lavra"));
        command.args(["world", "--listen", &format!("127.0.0.1:{port}"), "--pages"]);
        command.args([&PAGES.to_string(), "--page-bytes", "87000"]);
        command.args(["--fault", "latency.fixed_ms=10"]);
        let mut daemon = Daemon::start("world", command, &directory.path().join("world.log"))?;
        daemon
            .wait_until(PATIENCE, || http::send(port, "GET", "/_world/stats", &[], "").is_ok())?;
        Ok(Self { directory, port, _daemon: daemon })
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What clients put before the paths of the lists.
    pub(super) fn base(&self) -> String {
        format!("http://127.0.0.1:{}/api/consulta", self.port)
    }

    /// Starts the command and kills it (-9) at half. How many pages were served by then.
    pub(super) fn kill_at_half(&self, name: &'static str, command: Command) -> Result<u64> {
        let start = Instant::now();
        let mut process = self.begin(name, command, "first.log")?;
        while self.count("whole_pages")? < PAGES / 2 {
            ensure!(
                process.is_alive()?,
                "{name} ended before it was killed:\n{}",
                process.last_words()
            );
            ensure!(
                start.elapsed() < LONGEST,
                "{name} did not get to half:\n{}",
                process.last_words()
            );
            interrupt::sleep(Duration::from_millis(5))?;
        }
        // Dropped, it is killed and waited for. Answers on their way to it may still be counted as served.
        drop(process);
        let killed = Instant::now();
        while self.count("in_flight")? > 0 && killed.elapsed() < PATIENCE {
            interrupt::sleep(Duration::from_millis(5))?;
        }
        self.count("whole_pages")
    }

    /// Starts the command again and lets it come to its end.
    pub(super) fn start_again(&self, name: &'static str, command: Command) -> Result<ExitStatus> {
        self.begin(name, command, "second.log")?.end(LONGEST)
    }

    /// How many pages were served once more.
    pub(super) fn served_again(&self) -> Result<u64> {
        let stats = self.stats()?;
        let pages = stats["pages"].as_array().context("the world counts no pages")?;
        Ok(pages.iter().filter_map(|page| page["times"].as_u64()).map(|times| times - 1).sum())
    }

    fn begin(&self, name: &'static str, mut command: Command, log: &str) -> Result<Daemon> {
        command.current_dir(self.directory());
        Daemon::start(name, command, &self.directory().join(log))
    }

    fn count(&self, what: &str) -> Result<u64> {
        self.stats()?[what].as_u64().with_context(|| format!("the world does not count {what}"))
    }

    fn stats(&self) -> Result<Value> {
        let (_, body) = http::send(self.port, "GET", "/_world/stats", &[], "")?;
        serde_json::from_str(&body).context("the world's counts")
    }
}
