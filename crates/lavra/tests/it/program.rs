//! `lavra` in a directory of its own.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) database: String,
    /// Of every command here.
    pub(crate) variables: Vec<(String, String)>,
}

/// A process that is killed when the test ends.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _already_ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Place {
    pub(crate) fn on_duckdb() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            database: "lavra.duckdb".into(),
            variables: Vec::new(),
        }
    }

    /// The same through a pooler that gives a connection for a transaction only.
    pub(crate) fn behind_pgbouncer() -> Self {
        let place = Self::on_postgres();
        let url = std::env::var("LAVRA_TEST_PGBOUNCER")
            .expect("LAVRA_TEST_PGBOUNCER is not set: run it by cargo xtask test");
        let (server, _) = url.rsplit_once('/').unwrap();
        let (_, name) = place.database.rsplit_once('/').unwrap();
        let database = format!("{server}/{name}");
        Self { database, ..place }
    }

    /// A new database on the test server.
    pub(crate) fn on_postgres() -> Self {
        let url = std::env::var("LAVRA_TEST_POSTGRES")
            .expect("LAVRA_TEST_POSTGRES is not set: run it by cargo xtask test");
        let name = format!("lavra_{}", uuid::Uuid::new_v4().simple());
        let made = Command::new("psql")
            .args(["--no-psqlrc", "--quiet", "--command", &format!("CREATE DATABASE {name}"), &url])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let (server, _) = url.rsplit_once('/').unwrap();
        let database = format!("{server}/{name}");
        Self { directory: tempfile::tempdir().unwrap(), database, variables: Vec::new() }
    }

    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lavra"));
        command
            .current_dir(self.directory.path())
            .env_remove("DB_URL")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .args(["--database", &self.database])
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// The same with a small file system in the place of the directory, which only the command sees.
    pub(crate) fn command_on_a_small_disk(&self, megabytes: u32, args: &[&str]) -> Command {
        self.command_on_a_disk(&format!("size={megabytes}m"), args)
    }

    /// The same with one that nobody can write to.
    pub(crate) fn command_on_a_read_only_disk(&self, args: &[&str]) -> Command {
        self.command_on_a_disk("ro", args)
    }

    fn command_on_a_disk(&self, options: &str, args: &[&str]) -> Command {
        let script = format!("mount -t tmpfs -o {options} tmpfs . && cd \"$PWD\" && exec \"$@\"");
        let inner = self.command(args);
        let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        let mut command = Command::new("unshare");
        command
            .current_dir(self.directory.path())
            .args(if is_root { &["--mount"][..] } else { &["--map-root-user", "--mount"] })
            .args(["sh", "-c", &script, "sh"])
            .arg(inner.get_program())
            .args(inner.get_args());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The JSON that a command prints; it must end well.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_with(args, &[])
    }

    pub(crate) fn start_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Running {
        let log = self.directory.path().join(format!("{}.log", uuid::Uuid::new_v4()));
        let log = std::fs::File::create(log).unwrap();
        let mut command = self.command(args);
        command.envs(variables.iter().copied()).stdout(Stdio::null()).stderr(log);
        Running(command.spawn().unwrap())
    }

    /// Everything that the processes here have logged.
    pub(crate) fn logs(&self) -> String {
        let entries = std::fs::read_dir(self.directory.path()).unwrap().flatten();
        let logs = entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "log"));
        logs.map(|entry| std::fs::read_to_string(entry.path()).unwrap_or_default()).collect()
    }

    pub(crate) fn create(&self, payload: &str) -> String {
        let task = self.json(&["task", "create", "count", "--payload", payload]);
        task["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        self.json(&["task", "show", id])
    }

    pub(crate) fn until(
        &self,
        id: &str,
        patience: Duration,
        what: impl Fn(&Value) -> bool,
    ) -> Value {
        until(patience, || {
            let task = self.task(id);
            what(&task).then_some(task)
        })
        .unwrap_or_else(|| panic!("it never came: {}\n{}", self.task(id), self.logs()))
    }

    /// Waits until `server` says where it serves the file.
    pub(crate) fn until_served(&self, server: &Running) {
        let lock = self.directory.path().join("lavra.duckdb.lock");
        let found = until(Duration::from_secs(20), || {
            let holder: Value = serde_json::from_slice(&std::fs::read(&lock).ok()?).ok()?;
            (holder["pid"] == server.0.id() && holder["url"].is_string()).then_some(())
        });
        assert!(found.is_some(), "no server: {}", self.logs());
    }
}

/// A port for a program that must come back to it: nobody listens there, and the kernel gives it to nobody
/// who asks for any.
pub(crate) fn port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let ports = std::iter::repeat_with(|| rand::random_range(15_000..31_000));
    ports.take(1000).find(is_free).expect("a port that is free")
}

pub(crate) fn until<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}
