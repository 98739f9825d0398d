//! `bench fleet`: a hundred workers that are asked over HTTP, one orchestrator, PostgreSQL. What counts is
//! how long a worker is idle while missions wait: from the commit that frees it to the request of its
//! next scrape. The log of the missions has both, and the server when they were committed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::bars::{Rule, line};
use super::extract::Lavra;
use super::numbers::field;
use crate::daemon::Daemon;
use crate::scratch::Scratch;
use crate::servers::{Postgres, StopMode, Tuning};
use crate::user::User;
use crate::workspace::Workspace;
use crate::{apt, duckdb, exec, http, interrupt, output, ports};

const WORKERS: usize = 100;
const SPARE_PROXIES: usize = 20;
const PATIENCE: Duration = Duration::from_secs(20);
/// How long they work.
const SPAN: Duration = Duration::from_secs(60);
/// The worker's double takes a second or two for a mission: it is asked more often than a real one.
const SETTINGS: &str = "[fleet]\npolling_session_ms = 500\npolling_job_ms = 1000\n";
/// Of a laboratory.
const SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Milliseconds from the commit that ends a scrape to the one that assigns the next mission, after which
/// the request is sent; and to the one that says that its scrape has begun, which is after the answer.
const IDLE: &str = "
    WITH entries AS (
        SELECT details->>'worker_id' AS worker, event, id, \"timestamp\" AS at,
               pg_xact_commit_timestamp(xmin) AS committed
        FROM public.mission_logs
        WHERE event IN ('scrape_completed', 'scrape_empty', 'mission_assigned', 'scrape_started')
    ), by_worker AS (
        SELECT event, committed,
               lead(event) OVER w AS next, lead(committed) OVER w AS next_committed,
               lead(event, 2) OVER w AS third, lead(committed, 2) OVER w AS third_committed
        FROM entries WINDOW w AS (PARTITION BY worker ORDER BY at, id)
    ), waits AS (
        SELECT 1000 * extract(epoch FROM next_committed - committed) AS assigned,
               1000 * extract(epoch FROM third_committed - committed) AS started
        FROM by_worker
        WHERE event IN ('scrape_completed', 'scrape_empty')
          AND next = 'mission_assigned' AND third = 'scrape_started'
    )
    SELECT json_build_object('count', count(*),
        'assigned_p50', percentile_cont(0.5) WITHIN GROUP (ORDER BY assigned),
        'assigned_p99', percentile_cont(0.99) WITHIN GROUP (ORDER BY assigned),
        'started_p50', percentile_cont(0.5) WITHIN GROUP (ORDER BY started),
        'started_p99', percentile_cont(0.99) WITHIN GROUP (ORDER BY started))
    FROM waits";

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let there = match args {
        [] => None,
        [name, file] if name == "--lavra" => Some(std::path::absolute(file)?),
        _ => bail!("`bench fleet` takes --lavra FILE, not {}", args.join(" ")),
    };
    apt::ensure(&[apt::Package::PostgreSql])?;
    duckdb::ensure(workspace)?;
    let told = Fleet::start(workspace, there)?.work()?;
    let count = field(&told, "count")?;
    ensure!(count > 0.0, "no worker had two missions");
    let figure = |name: &str| field(&told, name).ok();
    output::data(
        &[
            line("missions that followed another one", Some(count), Rule::NoBar),
            line("ms until the next is assigned, p50", figure("assigned_p50"), Rule::NoBar),
            line("ms until the next is assigned, p99", figure("assigned_p99"), Rule::AtMost(50.0)),
            line(
                "ms until its scrape is answered and noted, p50",
                figure("started_p50"),
                Rule::NoBar,
            ),
            line(
                "ms until its scrape is answered and noted, p99",
                figure("started_p99"),
                Rule::NoBar,
            ),
        ]
        .join("\n"),
    );
    Ok(())
}

struct Fleet {
    // The processes before the server that they use.
    serve: Daemon,
    _world: Daemon,
    lavra: Lavra,
    server: String,
    postgres: Postgres,
    scratch: Scratch,
}

impl Fleet {
    fn start(workspace: &Workspace, there: Option<PathBuf>) -> Result<Self> {
        let lavra = Lavra::prepare(workspace, there)?;
        let mut postgres = Postgres::start(Tuning::Bench)?;
        postgres.sql("postgres", "ALTER SYSTEM SET track_commit_timestamp = on")?;
        postgres.stop(StopMode::Fast)?;
        postgres.resume()?;
        let scratch = Scratch::new("bench", &User::Myself)?;
        std::fs::write(scratch.path().join("lavra.toml"), SETTINGS)?;
        let (pages, doubles, api) = (ports::free()?, ports::free()?, ports::free()?);
        output::step(&format!("{WORKERS} workers, their world and an orchestrator"));
        let mut command = lavra.command(scratch.path());
        command.args(["world", "--listen", &address(pages), "--fleet", &address(doubles)]);
        command.args(["--fleet-workers", &WORKERS.to_string()]);
        let log = |name: &str| scratch.path().join(name);
        let mut world = Daemon::start("the world", command, &log("world.log"))?;
        world.wait_until(PATIENCE, || answers(pages, "/_world/faults"))?;
        let mut command = lavra.command(scratch.path());
        command.env("LAVRA_SECRET_KEY", SECRET);
        command.args(["--database", &postgres.url("postgres"), "serve", "--listen", &address(api)]);
        let mut serve = Daemon::start("lavra serve", command, &log("serve.log"))?;
        serve.wait_until(PATIENCE, || answers(api, "/readyz"))?;
        let server = format!("http://{}", address(api));
        let fleet = Self { serve, _world: world, lavra, server, postgres, scratch };
        fleet.furnish(doubles)?;
        Ok(fleet)
    }

    fn furnish(&self, doubles: u16) -> Result<()> {
        let host = address(doubles);
        for n in 0..WORKERS {
            let (name, url) = (format!("worker-{n}"), format!("http://{host}/worker/{n}"));
            self.tell(
                "worker-key",
                &["fleet", "worker", "add", &name, "--url", &url, "--storage-domain", &url],
            )?;
        }
        for n in 0..WORKERS + SPARE_PROXIES {
            let (name, port) = (format!("proxy-{n}"), (9000 + n).to_string());
            self.tell(
                "",
                &["fleet", "proxy", "add", &name, "--host", "127.0.0.1", "--port", &port],
            )?;
        }
        let url = format!("http://{host}/writer/0");
        self.tell("writer-key", &["fleet", "writer", "add", "writer-1", "--url", &url])?;
        self.tell("", &["fleet", "settings", "--session-limit", "1000"])?;
        let days = [
            "--from",
            "2010-01-01",
            "--to",
            "2022-12-31",
            "--language",
            "pt",
            "--media-type",
            "video",
        ];
        self.tell("", &[&["mission", "add", "--queue"], &days[..]].concat())
    }

    fn tell(&self, key: &str, words: &[&str]) -> Result<()> {
        let mut command = self.command();
        if !key.is_empty() {
            command.env("LAVRA_FLEET_API_KEY", key);
        }
        exec::capture(command.args(words)).map(drop)
    }

    fn command(&self) -> Command {
        let mut command = self.lavra.command(Path::new(self.scratch.path()));
        command.env("LAVRA_SERVER", &self.server);
        command
    }

    fn work(self) -> Result<Value> {
        self.tell("", &["fleet", "start"])?;
        output::step(&format!("{} s of work", SPAN.as_secs()));
        let begun = Instant::now();
        while begun.elapsed() < SPAN {
            interrupt::sleep(Duration::from_millis(500))?;
        }
        let told = self.postgres.sql("postgres", IDLE)?;
        drop(self.serve);
        serde_json::from_str(&told).with_context(|| format!("the log told no JSON: {told}"))
    }
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn answers(port: u16, path: &str) -> bool {
    http::send(port, "GET", path, &[], "").is_ok_and(|(status, _)| status == 200)
}
