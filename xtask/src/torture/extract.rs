//! `cargo xtask torture extract`: extractions are killed at random, on a DuckDB file one after the
//! other, on PostgreSQL three at once. After each kill the pages that are durable are noted, with how
//! often the world has served each; at the end none of them may have been served again, everything is
//! COMPLETE, and a further run asks for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::random::Random;
use crate::servers::{PACKAGES, Postgres, Tuning};
use crate::workspace::Workspace;
use crate::{apt, duckdb, exec, http, interrupt, output, ports};

const DATABASE: &str = "torture";
const SETTINGS: &str = "
[runner]
heartbeat_ms = 500
grace_seconds = 2

[tasks]
stale_ms = 2500
";
/// Little of each, so that no page is refused for good; latency, so that kills fall into the work.
const FAULTS: [&str; 6] = [
    "latency.fixed_ms=30",
    "server_error=0.02",
    "too_many=0.01",
    "cut_chunks=0.01",
    "html=0.01",
    "reset=0.01",
];
const MONTHS: [&str; 2] = ["2025-03", "2025-04"];

/// A page: the value of the fan-out, the first day and the number.
type Page = (u64, String, u64);

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (kills, seed) = arguments(args)?;
    output::step(&format!("torture extract: {kills} kills on each engine, seed {seed}"));
    apt::ensure(PACKAGES)?;
    duckdb::ensure(workspace)?;
    exec::run_beside_data(workspace.cargo().args(["build", "--package", "lavra"]))?;
    let postgres = Postgres::start(Tuning::Torture)?;
    postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
    for (engine, database, processes) in
        [("DuckDB", "lavra.duckdb".to_owned(), 1), ("PostgreSQL", postgres.url(DATABASE), 3)]
    {
        let scene = Scene::begin(workspace, database, kills, seed)?;
        output::data(&format!("{engine}: {}", scene.torture(processes, kills, seed)?));
    }
    Ok(())
}

fn arguments(args: &[String]) -> Result<(u64, u64)> {
    let (mut kills, mut seed) = (200, u64::from(std::process::id()));
    for pair in args.chunks(2) {
        let [name, value] = pair else { bail!("{} needs a value", pair.join(" ")) };
        match name.as_str() {
            "--kills" => kills = value.parse().context("--kills takes a number")?,
            "--seed" => seed = value.parse().context("--seed takes a number")?,
            other => bail!("`torture extract` takes --kills N and --seed N, not {other}"),
        }
    }
    Ok((kills, seed))
}

/// A world of its own, and a database to extract it into.
struct Scene {
    lavra: PathBuf,
    directory: TempDir,
    database: String,
    port: u16,
    _world: Daemon,
}

impl Scene {
    fn begin(workspace: &Workspace, database: String, kills: u64, seed: u64) -> Result<Self> {
        let lavra = workspace.target().join("debug/lavra");
        let (directory, port) = (tempfile::tempdir()?, ports::free()?);
        std::fs::write(directory.path().join("lavra.toml"), SETTINGS)?;
        let mut command = Command::new(&lavra);
        let scale = (kills as f64 / 200.0).max(0.02);
        command.args(["world", "--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--seed", &seed.to_string(), "--scale", &scale.to_string()]);
        command.args(["--now", "2026-10-15T12:00:00Z"]);
        for fault in FAULTS {
            command.args(["--fault", fault]);
        }
        let world = Daemon::start("world", command, &directory.path().join("world.log"))?;
        while http::send(port, "GET", "/_world/stats", &[], "").is_err() {
            interrupt::sleep(Duration::from_millis(50))?;
        }
        Ok(Self { lavra, directory, database, port, _world: world })
    }

    fn torture(&self, processes: usize, kills: u64, seed: u64) -> Result<String> {
        let mut random = Random::new(seed);
        let mut running: Vec<Option<Daemon>> = (0..processes).map(|_| None).collect();
        let mut noted: BTreeMap<Page, u64> = BTreeMap::new();
        for kill in 1..=kills {
            for (place, process) in running.iter_mut().enumerate() {
                let is_alive = process.as_mut().map(Daemon::is_alive).transpose()?;
                if is_alive != Some(true) {
                    let log = self.directory.path().join(format!("{place}.log"));
                    *process = Some(Daemon::start("lavra", self.extract(&[]), &log)?);
                }
            }
            interrupt::sleep(Duration::from_millis(random.between(100, 2500)))?;
            // Dropped, it is killed and waited for.
            running[random.below(processes as u64) as usize] = None;
            // Read before the counts: a page that becomes durable in between is noted next time.
            // Before the first run there are no tables; right after a kill the file may still be held.
            let durable = self.durable().unwrap_or_default();
            let served = self.served()?;
            for page in durable {
                let times = served.get(&page).copied().unwrap_or(0);
                noted.entry(page).or_insert(times);
            }
            if kill % 20 == 0 {
                output::note(&format!("{kill} killed, {} pages are durable", noted.len()));
            }
        }
        drop(running);
        let summary = self.summary()?;
        ensure!(summary["failed"] == 0 && summary["partial"] == 0, "not complete: {summary}");
        let served = self.served()?;
        let again = noted.iter().filter(|(page, times)| served.get(*page) > Some(*times)).count();
        let pages = self.durable()?.len();
        let requests = self.summary()?["requests"].clone();
        ensure!(again == 0, "{again} pages were served again after they were durable");
        ensure!(requests == 0, "a further run asked {requests} times");
        let lost = served.values().sum::<u64>().saturating_sub(pages as u64);
        Ok(format!(
            "{kills} kills, {pages} pages, each stored once; {lost} were served and not durable when \
             their process died; none was asked for again; a further run asked for nothing"
        ))
    }

    fn extract(&self, more: &[&str]) -> Command {
        let mut command = Command::new(&self.lavra);
        let base = format!("http://127.0.0.1:{}/api/consulta", self.port);
        command.current_dir(self.directory.path()).args(["--database", &self.database]).args(more);
        command.args(["extract", "run", "pncp", "--from", MONTHS[0], "--to", MONTHS[1]]);
        command.args(["--endpoint", "contratacoes_publicacao", "--base-url", &base]);
        command
    }

    /// A run to its end, by what it prints.
    fn summary(&self) -> Result<Value> {
        let mut command = self.extract(&["--json"]);
        let text = exec::capture(&mut command)?;
        let answer: Value = serde_json::from_str(&text).context("the run printed no JSON")?;
        Ok(answer["summary"].clone())
    }

    fn durable(&self) -> Result<BTreeSet<Page>> {
        let mut command = Command::new(&self.lavra);
        command.current_dir(self.directory.path()).args(["--database", &self.database, "--json"]);
        command.args(["sql", "SELECT task_id, page FROM psa.pncp_pages WHERE records > 0"]);
        let text = exec::capture(&mut command)?;
        let rows: Vec<Value> = serde_json::from_str(&text).context("the pages as JSON")?;
        Ok(rows.iter().filter_map(page_of).collect())
    }

    fn served(&self) -> Result<BTreeMap<Page, u64>> {
        let (_, body) = http::send(self.port, "GET", "/_world/stats", &[], "")?;
        let stats: Value = serde_json::from_str(&body).context("the world's counts")?;
        let pages = stats["pages"].as_array().cloned().unwrap_or_default();
        let count = |page: &Value| {
            let window = page["window"].as_str()?;
            let key = (page["fan_out"].as_u64()?, window[..8].to_owned(), page["page"].as_u64()?);
            Some((key, page["times"].as_u64()?))
        };
        Ok(pages.iter().filter_map(count).collect())
    }
}

/// `contratacoes_publicacao_modalidade_6_2025-03-01`, and its page.
fn page_of(row: &Value) -> Option<Page> {
    let (name, date) = row["task_id"].as_str()?.rsplit_once('_')?;
    let (_, value) = name.rsplit_once('_')?;
    Some((value.parse().ok()?, date.replace('-', ""), row["page"].as_u64()?))
}
