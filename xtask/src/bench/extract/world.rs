//! The world that every system reads: one list of one month, without faults.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::lavra::Lavra;
use super::process;
use crate::daemon::Daemon;
use crate::{http, ports};

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct World {
    daemon: Daemon,
    port: u16,
}

impl World {
    /// So many pages of about so many bytes.
    pub(crate) fn start(
        lavra: &Lavra,
        pages: usize,
        bytes: usize,
        directory: &Path,
    ) -> Result<Self> {
        let port = ports::free()?;
        let mut command = lavra.command(directory);
        command.args(["world", "--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--pages", &pages.to_string(), "--page-bytes", &bytes.to_string()]);
        let mut daemon = Daemon::start("the world", command, &directory.join("world.log"))?;
        daemon
            .wait_until(PATIENCE, || http::send(port, "GET", "/_world/faults", &[], "").is_ok())?;
        Ok(Self { daemon, port })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What clients put before the paths of the lists.
    pub(crate) fn base(&self) -> String {
        format!("http://127.0.0.1:{}/api/consulta", self.port)
    }

    /// From here on every answer takes so long.
    pub(crate) fn latency(&self, milliseconds: u64) -> Result<()> {
        let faults = json!({ "latency": { "fixed_ms": milliseconds } }).to_string();
        let (status, said) = http::send(self.port, "PUT", "/_world/faults", &[], &faults)?;
        ensure!(status < 300, "the world took no latency: {said}");
        Ok(())
    }

    /// What serving has taken of the processors so far.
    pub(crate) fn processor_seconds(&self) -> Result<f64> {
        process::processor_seconds(self.daemon.id()).context("the world is gone")
    }
}
