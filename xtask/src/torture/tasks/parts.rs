//! The processes that are tortured: two servers and three runners.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::torture::processes::Processes;
use crate::workspace::Workspace;
use crate::{http, ports};

const SERVERS: usize = 2;
const RUNNERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

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

/// All of them, begun and ready, and the ports of the servers.
pub(super) fn start(
    workspace: &Workspace,
    database: &str,
    broker: &str,
) -> Result<(Processes, Vec<u16>)> {
    let lavra = workspace.target().join("debug/lavra");
    let places = ["--database", database, "--broker", broker].map(str::to_owned);
    let command = move |more: &[&str]| {
        let mut command = Command::new(&lavra);
        command.args(&places).args(more).arg("--demo-types");
        command
    };
    let mut processes = Processes::new(SETTINGS)?;
    let mut servers = Vec::new();
    for number in 1..=SERVERS {
        let port = ports::free()?;
        let (command, listen) = (command.clone(), format!("127.0.0.1:{port}"));
        // The second also runs tasks, the first only serves.
        let alone: &[&str] = if number == 1 { &["--no-runner"] } else { &[] };
        processes.add(&format!("server-{number}"), move || {
            let mut command = command(&["serve", "--listen", &listen]);
            command.args(alone);
            command
        });
        servers.push(port);
    }
    for number in 1..=RUNNERS {
        let command = command.clone();
        processes.add(&format!("runner-{number}"), move || command(&["runner"]));
    }
    processes.restart()?;
    for (place, port) in servers.iter().enumerate() {
        processes.wait(place, PATIENCE, || http::send(*port, "GET", "/readyz", &[], "").is_ok())?;
    }
    Ok((processes, servers))
}
