//! A worker as a process of its own: this test binary again, to be killed.
//!
//! A test `child` returns at once when no role is given.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use lavra_worker::Worker;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{Client, KEY, World, quick};

const DATA: &str = "LAVRA_TEST_WORKER_DATA";
const BASE: &str = "LAVRA_TEST_WORKER_BASE";
const STORAGE: &str = "LAVRA_TEST_WORKER_STORAGE";
/// What libtest prints itself has no such beginning.
const MARK: &str = "@ ";

#[tokio::test]
async fn child() {
    let Ok(data) = std::env::var(DATA) else { return };
    let _once = rustls::crypto::ring::default_provider().install_default();
    let mut source = lavra_worker::ads().unwrap();
    source.base_url = std::env::var(BASE).unwrap().parse().unwrap();
    let config = lavra_worker::Config {
        data: data.into(),
        api_key: Some(KEY.to_owned().into()),
        source,
        endpoint: None,
        storage: std::env::var(STORAGE).ok(),
        timing: quick(),
    };
    let worker = Worker::open(config).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut out = std::io::stdout().lock();
    let address = listener.local_addr().unwrap();
    writeln!(out, "\n{MARK}{address}").and_then(|()| out.flush()).unwrap();
    drop(out);
    worker.serve(listener, CancellationToken::new()).await.unwrap();
}

pub(crate) struct Process {
    child: Child,
    pub(crate) client: Client,
}

impl Process {
    pub(crate) fn start(world: &World, data: &Path) -> Self {
        Self::with(world, data, &[])
    }

    pub(crate) fn with(world: &World, data: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child::child", "--nocapture", "--test-threads=1"]);
        command.env(DATA, data).env(BASE, &world.base_url).envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines: Lines<BufReader<ChildStdout>> =
            BufReader::new(child.stdout.take().unwrap()).lines();
        let told = lines.find_map(|line| line.unwrap().strip_prefix(MARK).map(str::to_owned));
        let at: SocketAddr = told.unwrap().parse().unwrap();
        Self { child, client: Client::new(at) }
    }

    pub(crate) fn storage(place: &str) -> (&'static str, &str) {
        (STORAGE, place)
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "it ended before it was killed");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}
