//! A private PostgreSQL: `initdb` in a temporary directory, trust on loopback, gone at the end.
//! It can be stopped, killed and started again on the same port and data, for tests that do just that.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::apt::Package;
use crate::daemon::Daemon;
use crate::scratch::Scratch;
use crate::user::{DeathSignal, User};
use crate::{exec, ports};

const PATIENCE: Duration = Duration::from_secs(60);

/// What the server is for, which decides what it may risk for speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tuning {
    /// Nothing outlives the run, so nothing is flushed.
    Tests,
    /// As a careful operator would run it: every commit is on disk.
    Bench,
    /// Processes die, the machine does not: the page cache is as good as the disk.
    Torture,
}

/// How a server is asked to stop, in PostgreSQL's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopMode {
    /// Clients are cut off, everything is written.
    Fast,
    /// At once, as in a crash; the next start recovers.
    Immediate,
}

/// The server, running or stopped.
#[derive(Debug)]
pub(crate) struct Postgres {
    daemon: Option<Daemon>,
    port: u16,
    programs: PathBuf,
    user: User,
    scratch: Scratch,
}

impl Postgres {
    pub(crate) fn start(tuning: Tuning) -> Result<Self> {
        let programs = Package::PostgreSql.path()?;
        let user = User::of_service("postgres")?;
        let scratch = Scratch::new("postgres", &user)?;
        let mut server = Self { daemon: None, port: ports::free()?, programs, user, scratch };
        server.initialise(tuning).context("cannot set up a private PostgreSQL")?;
        server.resume()?;
        Ok(server)
    }

    fn initialise(&self, tuning: Tuning) -> Result<()> {
        let mut initdb = self.command("initdb", None);
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"]);
        initdb.args(["--no-sync", "--no-instructions", "--pgdata"]).arg(self.data());
        exec::capture(&mut initdb)?;
        let settings =
            settings(tuning, self.port, self.scratch.path(), self.has_statement_statistics()?);
        let file = self.data().join("postgresql.conf");
        std::fs::write(&file, settings).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Starts it again after [`Self::stop`] or [`Self::kill`].
    pub(crate) fn resume(&mut self) -> Result<()> {
        let mut command = self.command("postgres", Some(DeathSignal::Interrupt));
        command.arg("-D").arg(self.data());
        let mut daemon = Daemon::start("PostgreSQL", command, &self.log())?;
        daemon.wait_until(PATIENCE, || exec::succeeds(&mut self.is_ready()))?;
        self.daemon = Some(daemon);
        Ok(())
    }

    pub(crate) fn stop(&mut self, mode: StopMode) -> Result<()> {
        let signal = match mode {
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        };
        self.daemon.take().map_or(Ok(()), |daemon| daemon.stop(signal, PATIENCE))
    }

    /// `kill -9` of the server process; the ones it had started for its clients notice and end too.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.daemon.take().map_or(Ok(()), |daemon| daemon.stop(Signal::KILL, PATIENCE))
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.scratch.join("postgres.log")
    }

    /// Runs SQL by psql and gives what it printed, without decoration.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> Result<String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
        ]);
        Ok(exec::capture(psql.arg(self.url(database)).args(["--command", sql]))?.trim().to_owned())
    }

    fn is_ready(&self) -> Command {
        let mut command = Command::new(self.programs.join("pg_isready"));
        command.args([
            "--quiet",
            "--host=127.0.0.1",
            "--username=postgres",
            "--port",
            &self.port.to_string(),
        ]);
        command
    }

    fn command(&self, program: &str, death: Option<DeathSignal>) -> Command {
        let mut command = self.user.command(&self.programs.join(program), death);
        // Nothing of our environment: PGDATA, PGHOST or a locale would change what is started.
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TZ", "UTC")
            .current_dir(self.scratch.path());
        command
    }

    fn data(&self) -> PathBuf {
        self.scratch.join("data")
    }

    fn has_statement_statistics(&self) -> Result<bool> {
        let libraries =
            exec::capture(Command::new(self.programs.join("pg_config")).arg("--pkglibdir"))?;
        Ok(Path::new(libraries.trim()).join("pg_stat_statements.so").exists())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The data goes anyway, so there is nothing to write.
        let _ = self.stop(StopMode::Immediate);
    }
}

fn settings(tuning: Tuning, port: u16, sockets: &Path, statistics: bool) -> String {
    let durability = match tuning {
        Tuning::Tests | Tuning::Torture => {
            "fsync = off\nfull_page_writes = off\nshared_buffers = 256MB\n"
        }
        Tuning::Bench => {
            "fsync = on\nfull_page_writes = on\nshared_buffers = 1GB\nmax_wal_size = 4GB\ncheckpoint_timeout = 15min\n"
        }
    };
    let preload = if statistics { "shared_preload_libraries = 'pg_stat_statements'\n" } else { "" };
    let sockets = sockets.display();
    format!(
        "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{sockets}'\nmax_connections = 300\n\
         synchronous_commit = on\n{durability}{preload}timezone = 'UTC'\nlc_messages = 'C.UTF-8'\n"
    )
}
