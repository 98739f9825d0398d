//! `cargo xtask torture extract`: extractions are killed at random, on a DuckDB file one after the
//! other, on PostgreSQL three at once. After each kill the pages that are durable are noted, with how
//! often the world has served each; at the end none of them may have been served again, everything is
//! COMPLETE, every record is there once as the world has it, and a further run asks for nothing.
//!
//! Two of the lists change while they are read: their pages are rightly asked for again, and counted
//! apart. The truth is the world's after its last change.

pub(super) mod half;
pub(super) mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};
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
/// Little of each, so that no page is refused for good. Those that are not here would rightly change what is
/// asked for: a body that is too large fails its list, a total of a billion is one that has moved.
const FAULTS: [&str; 17] = [
    "server_error=0.02",
    "too_many=0.01",
    "retry_after.share=0.005",
    "retry_after.seconds=1",
    "gateway=0.01",
    "input_string=0.005",
    "dates=0.001",
    "hang.share=0.002",
    "hang.at_most_ms=2000",
    "reset=0.01",
    "cut_chunks=0.01",
    "cut_length=0.005",
    "html=0.01",
    "zero_length=0.005",
    "wrong_json=0.005",
    r#"in_flight={"limits":[8,4],"every_ms":5000}"#,
    r#"outage={"after_ms":15000,"lasts_ms":8000,"as_unavailable":true}"#,
];
/// The lists: one for each value of a fan-out, empty where a month has nothing by 204; and one by itself,
/// which bears one request at a time and is empty by 404.
const LISTS: [(&str, &str); 2] = [
    ("contratacoes_publicacao", "/v1/contratacoes/publicacao"),
    ("instrumentoscobranca_inclusao", "/v1/instrumentoscobranca/inclusao"),
];
const MONTHS: [&str; 2] = ["2025-03", "2025-04"];
/// Records that come and go after so many requests: value of the fan-out, month, requests, records.
const DRIFTS: [(u64, &str, u64, i64); 2] = [(6, MONTHS[0], 8, 30), (9, MONTHS[1], 6, -20)];
/// How long each answer takes, by how many processes ask: the kills are to fall into the work.
const LATENCY_MS: [(usize, u64); 2] = [(1, 30), (3, 200)];
/// Every so many kills, where there are several processes, another one is frozen for so long that it
/// is taken for dead, and wakes up.
const FROZEN_EVERY: u64 = 10;
const FROZEN: Duration = Duration::from_secs(4);
/// How long a world may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// The values of the fan-out.
const VALUES: std::ops::RangeInclusive<u64> = 1..=14;

/// A page: its list, the first day and the number.
type Page = (String, String, u64);

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let (kills, seed) = super::arguments(args, "--kills", 200)?;
    output::step(&format!("torture extract: {kills} kills on each engine, seed {seed}"));
    apt::ensure(PACKAGES)?;
    duckdb::ensure(workspace)?;
    exec::run_beside_data(workspace.cargo().args(["build", "--package", "lavra"]))?;
    let postgres = Postgres::start(Tuning::Torture)?;
    postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
    let engines = [("DuckDB", "lavra.duckdb".to_owned()), ("PostgreSQL", postgres.url(DATABASE))];
    for ((engine, database), (processes, latency)) in engines.into_iter().zip(LATENCY_MS) {
        let scene = Scene::begin(workspace, database, latency, kills, seed)?;
        output::data(&format!("{engine}: {}", scene.torture(processes, kills, seed)?));
    }
    output::data(&half::line(workspace)?);
    Ok(())
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
    fn begin(
        workspace: &Workspace,
        database: String,
        latency: u64,
        kills: u64,
        seed: u64,
    ) -> Result<Self> {
        let lavra = workspace.target().join("debug/lavra");
        let (directory, port) = (tempfile::tempdir()?, ports::free()?);
        std::fs::write(directory.path().join("lavra.toml"), SETTINGS)?;
        let mut command = Command::new(&lavra);
        let scale = (kills as f64 / 200.0).max(0.02);
        command.args(["world", "--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--seed", &seed.to_string(), "--scale", &scale.to_string()]);
        command.args(["--now", "2026-10-15T12:00:00Z"]);
        command.args(["--fault", &format!("latency.fixed_ms={latency}")]);
        for fault in FAULTS {
            command.args(["--fault", fault]);
        }
        let drifts = DRIFTS.map(|(value, month, after, records)| {
            json!({
                "endpoint": "/v1/contratacoes/publicacao", "month": month, "fan_out": value,
                "after": after, "records": records, "at": "middle",
            })
        });
        command.args(["--fault", &format!("drift={}", json!(drifts))]);
        let mut world = Daemon::start("world", command, &directory.path().join("world.log"))?;
        world.wait_until(PATIENCE, || is_up(port))?;
        Ok(Self { lavra, directory, database, port, _world: world })
    }

    fn torture(self, processes: usize, kills: u64, seed: u64) -> Result<String> {
        let mut random = Random::new(seed);
        let mut running: Vec<Option<Daemon>> = (0..processes).map(|_| None).collect();
        let mut noted = Noted::default();
        for kill in 1..=kills {
            for (place, process) in running.iter_mut().enumerate() {
                let is_alive = process.as_mut().map(Daemon::is_alive).transpose()?;
                if is_alive != Some(true) {
                    let log = self.directory.path().join(format!("{place}.log"));
                    *process = Some(Daemon::start("lavra", self.extract(&[]), &log)?);
                }
            }
            interrupt::sleep(Duration::from_millis(random.between(100, 2500)))?;
            let victim = random.below(processes as u64) as usize;
            if processes > 1 && kill % FROZEN_EVERY == 0 {
                let frozen = running[(victim + 1) % processes].as_ref();
                frozen.inspect(|process| process.signal(Signal::STOP));
                interrupt::sleep(FROZEN)?;
                self.note(&mut noted, kill)?;
                frozen.inspect(|process| process.signal(Signal::CONT));
                interrupt::sleep(Duration::from_millis(random.between(100, 2500)))?;
            }
            // Dropped, it is killed and waited for.
            running[victim] = None;
            self.note(&mut noted, kill)?;
            if kill % 20 == 0 {
                output::note(&format!("{kill} killed, {} pages are durable", noted.pages.len()));
            }
        }
        drop(running);
        let summary = self.summary()?;
        ensure!(summary["failed"] == 0 && summary["partial"] == 0, "not complete: {summary}");
        // Of a process that was too slow and lost its task, requests may still be under way.
        let (begun, served) = (self.counted("begun")?, self.counted("times")?);
        noted.hold_against(&begun, kills);
        let durable = self.durable()?;
        ensure!(!noted.pages.is_empty(), "nothing was ever seen to be durable between the kills");
        ensure!(
            noted.in_the_work > kills / 4,
            "only {} kills fell into the work",
            noted.in_the_work
        );
        let requests = self.summary()?["requests"].clone();
        if !noted.wrongly.is_empty() {
            let logs = self.directory.keep();
            bail!(
                "durable, and asked for again (page, noted at and again by which kill): {:?}\nthe logs are in {}",
                noted.wrongly,
                logs.display()
            );
        }
        ensure!(requests == 0, "a further run asked {requests} times");
        let records = self.compare()?;
        let still = |page: &&Page| !has_drifted(page);
        let stored = durable.iter().filter(still).count();
        let given: u64 = served.iter().filter(|(page, _)| still(page)).map(|(_, n)| n).sum();
        Ok(format!(
            "{kills} kills, {} of them before the last page was durable; {} pages with {records} records, each there once and as the world has \
             it; {} pages were served to a process that died before they were durable; of those that \
             were durable none was asked for again, but {} of the two lists that changed; a further \
             run asked for nothing",
            noted.in_the_work,
            durable.len(),
            given.saturating_sub(stored as u64),
            noted.by_drift.len(),
        ))
    }

    /// Notes what is durable by now, and what was asked for again although it was.
    fn note(&self, noted: &mut Noted, kill: u64) -> Result<()> {
        // Read before the counts: a page that becomes durable in between is noted next time.
        // Before the first run there are no tables; right after a kill the file may still be held.
        let durable = self.durable().unwrap_or_default();
        let begun = self.counted("begun")?;
        noted.hold_against(&begun, kill);
        for page in durable {
            let times = begun.get(&page).copied().unwrap_or(0);
            noted.pages.entry(page).or_insert_with(|| {
                noted.in_the_work = kill;
                (times, kill)
            });
        }
        Ok(())
    }

    /// Holds every record that is stored against the world's, by its key and its hash; and has the
    /// program audit itself.
    fn compare(&self) -> Result<usize> {
        let audited = exec::capture(self.lavra(&["--json"]).args(["extract", "audit", "pncp"]))?;
        let audited: Value = serde_json::from_str(&audited).context("the audit printed no JSON")?;
        ensure!(audited["problems"] == json!({}), "the audit found {}", audited["problems"]);
        let out = self.directory.path().join("export");
        let mut export = self.lavra(&[]);
        export.args(["extract", "export", "pncp", "--format", "jsonl", "--out"]).arg(&out);
        exec::capture(&mut export)?;
        let mut compared = 0;
        for month in MONTHS {
            let [(several, _), (one, path)] = LISTS;
            let mut wanted = truth::of_the_world(self.port, month, VALUES)?;
            wanted.extend(truth::of_a_list(self.port, month, path, "")?);
            let mut stored = truth::of_an_export(&out, several, month)?;
            stored.extend(truth::of_an_export(&out, one, month)?);
            wanted.sort_unstable();
            stored.sort_unstable();
            ensure!(
                stored == wanted,
                "{month}: {} records are stored, the world has {}, and they are not the same",
                stored.len(),
                wanted.len()
            );
            compared += stored.len();
        }
        Ok(compared)
    }

    fn lavra(&self, more: &[&str]) -> Command {
        let mut command = Command::new(&self.lavra);
        command.current_dir(self.directory.path()).args(["--database", &self.database]).args(more);
        command
    }

    fn extract(&self, more: &[&str]) -> Command {
        let mut command = self.lavra(more);
        let base = format!("http://127.0.0.1:{}/api/consulta", self.port);
        command.args(["extract", "run", "pncp", "--from", MONTHS[0], "--to", MONTHS[1]]);
        for (list, _) in LISTS {
            command.args(["--endpoint", list]);
        }
        command.args(["--base-url", &base]);
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
        let mut command = self.lavra(&["--json"]);
        // A row for each task: there may be more pages than rows are answered.
        command.args([
            "sql",
            "SELECT task_id, string_agg(CAST(page AS VARCHAR), ',') AS pages
             FROM psa.pncp_pages WHERE records > 0 GROUP BY task_id",
        ]);
        let text = exec::capture(&mut command)?;
        let rows: Vec<Value> = serde_json::from_str(&text).context("the pages as JSON")?;
        Ok(rows.iter().flat_map(pages_of).collect())
    }

    /// How often each page was `begun`, or served whole (`times`).
    fn counted(&self, what: &str) -> Result<BTreeMap<Page, u64>> {
        let (_, body) = http::send(self.port, "GET", "/_world/stats", &[], "")?;
        let stats: Value = serde_json::from_str(&body).context("the world's counts")?;
        let pages = stats["pages"].as_array().cloned().unwrap_or_default();
        let count = |page: &Value| {
            let (name, _) = LISTS.iter().find(|(_, path)| page["endpoint"] == *path)?;
            let series = match page["fan_out"].as_u64() {
                Some(value) => format!("{name}_modalidade_{value}"),
                None => (*name).to_owned(),
            };
            // What was asked for to see whether anybody answers is of less than a month.
            let (first, last) = page["window"].as_str()?.split_once("..")?;
            let month = format!("{}-{}", first.get(..4)?, first.get(4..6)?);
            if last != format!("{}{}", first.get(..6)?, truth::last_day(&month)) {
                return None;
            }
            Some(((series, first.to_owned(), page["page"].as_u64()?), page[what].as_u64()?))
        };
        Ok(pages.iter().filter_map(count).collect())
    }
}

/// The pages that were durable at some time.
#[derive(Default)]
struct Noted {
    /// How often each was asked for before it was noted, and by which kill that was.
    pages: BTreeMap<Page, (u64, u64)>,
    by_drift: BTreeSet<Page>,
    wrongly: BTreeMap<Page, (u64, u64)>,
    /// The last kill after which there was a new one.
    in_the_work: u64,
}

impl Noted {
    fn hold_against(&mut self, begun: &BTreeMap<Page, u64>, kill: u64) {
        for (page, (times, at)) in &self.pages {
            if begun.get(page) <= Some(times) {
                continue;
            }
            if has_drifted(page) {
                self.by_drift.insert(page.clone());
            } else {
                self.wrongly.entry(page.clone()).or_insert((*at, kill));
            }
        }
    }
}

fn is_up(port: u16) -> bool {
    http::send(port, "GET", "/_world/stats", &[], "").is_ok()
}

/// Whether a page is of a list that changed.
fn has_drifted((list, day, _): &Page) -> bool {
    DRIFTS.iter().any(|(value, month, ..)| {
        list.ends_with(&format!("_modalidade_{value}")) && day.starts_with(&month.replace('-', ""))
    })
}

/// `contratacoes_publicacao_modalidade_6_2025-03-01`, and its pages.
fn pages_of(row: &Value) -> Vec<Page> {
    let list = || {
        let (list, date) = row["task_id"].as_str()?.rsplit_once('_')?;
        let day = date.replace('-', "");
        let pages = row["pages"].as_str()?.split(',');
        let page = |page: &str| Some((list.to_owned(), day.clone(), page.parse().ok()?));
        Some(pages.filter_map(page).collect())
    };
    list().unwrap_or_default()
}
