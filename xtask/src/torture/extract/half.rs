//! The table that others cannot print: killed at half, what is asked for again, and what is missing.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{PATIENCE, is_up};
use crate::daemon::Daemon;
use crate::workspace::Workspace;
use crate::{exec, http, interrupt, ports};

const PAGES: u64 = 960;

/// What others did when they were killed at half of the same 960 pages: measured once, not here.
const PEERS: [(&str, &str, &str); 3] = [
    ("dlt 1.31.0", "960: all", "nothing"),
    ("Airbyte CDK 7.39.1, 16 workers", "960: all", "nothing"),
    ("Scrapy 2.19, JOBDIR", "none", "half of the data, silently"),
];

pub(super) fn table(workspace: &Workspace) -> Result<String> {
    let (again, durable, missing) = killed_at_half(workspace)?;
    let mut lines = vec![
        format!("{PAGES} pages, killed (-9) at half, started again"),
        format!("{:<34}{:<44}{}", "", "pages asked for again", "missing at the end"),
    ];
    for (name, asked, lost) in PEERS {
        lines.push(format!("{name:<34}{asked:<44}{lost}"));
    }
    let asked = format!("{again}: not stored yet; {durable} durable");
    lines.push(format!("{:<34}{asked:<44}{missing}", "Lavra"));
    ensure!(durable == 0 && missing == 0, "{}", lines.join("\n"));
    Ok(lines.join("\n"))
}

/// How many pages were served twice, how many of those were durable, and how many are missing.
fn killed_at_half(workspace: &Workspace) -> Result<(u64, u64, u64)> {
    let lavra = workspace.target().join("debug/lavra");
    let (directory, port) = (tempfile::tempdir()?, ports::free()?);
    let mut command = Command::new(&lavra);
    command.args(["world", "--listen", &format!("127.0.0.1:{port}"), "--pages"]);
    command.args([&PAGES.to_string(), "--page-bytes", "87000"]);
    command.args(["--fault", "latency.fixed_ms=10"]);
    let mut world = Daemon::start("world", command, &directory.path().join("world.log"))?;
    world.wait_until(PATIENCE, || is_up(port))?;
    let extract = || {
        let mut command = Command::new(&lavra);
        let base = format!("http://127.0.0.1:{port}/api/consulta");
        command.current_dir(directory.path());
        command.args(["extract", "run", "pncp", "--from", "2024-07", "--to", "2024-07"]);
        command.args(["--endpoint", "contratacoes_publicacao_modalidade_6", "--base-url", &base]);
        command
    };
    let served = || -> Result<u64> {
        let (_, body) = http::send(port, "GET", "/_world/stats", &[], "")?;
        let stats: Value = serde_json::from_str(&body)?;
        stats["whole_pages"].as_u64().context("the world counts no pages")
    };
    let durable = || -> Result<u64> {
        let mut command = Command::new(&lavra);
        command.current_dir(directory.path());
        command.args(["--json", "sql", "SELECT count(*) AS n FROM psa.pncp_pages"]);
        let rows: Value = serde_json::from_str(&exec::capture(&mut command)?)?;
        rows[0]["n"].as_u64().context("no count of pages")
    };
    let mut first = Daemon::start("lavra", extract(), &directory.path().join("first.log"))?;
    while served()? < PAGES / 2 {
        ensure!(first.is_alive()?, "the run ended before it was killed");
        interrupt::sleep(Duration::from_millis(5))?;
    }
    drop(first);
    let (had, given) = (durable()?, served()?);
    exec::capture(&mut extract())?;
    let (all, total) = (durable()?, served()?);
    // What was given and not kept is given again, once; anything beyond it was durable.
    let again = total - all.min(total);
    let wrongly = again.saturating_sub(given.saturating_sub(had));
    Ok((again, wrongly, PAGES - all.min(PAGES)))
}
