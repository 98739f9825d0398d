//! `bench pages`: Mission Control over 100,000 missions with a million entries of their log, 100,000 tasks with
//! a million events, and an extraction of 60 endpoints × 60 months on PostgreSQL. How
//! long the server takes for each page, how soon a browser paints it, and what two hundred listeners cost.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use super::bars::{Rule, line};
use super::extract::Lavra;
use crate::daemon::Daemon;
use crate::scratch::Scratch;
use crate::servers::{Postgres, Tuning};
use crate::user::User;
use crate::workspace::Workspace;
use crate::{apt, browser, duckdb, http, output, ports};

const PATIENCE: Duration = Duration::from_secs(60);
const SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const ROUNDS: usize = 40;
const LISTENERS: usize = 200;
const EVENTS: usize = 60;

/// The pages that a person looks at; `{mission}`, `{worker}`, `{task}`, `{waiting}` and `{extraction}` are
/// filled in.
const PAGES: &[&str] = &[
    "/ui",
    "/ui/missions",
    "/ui/missions?state=bank",
    "/ui/missions?state=queued",
    "/ui/missions?state=failed&error=ERROR203",
    "/ui/missions?state=completed&media=video&from=2024-01-01&to=2024-06-30",
    "/ui/missions?q=timeout",
    "/ui/missions/new",
    "/ui/missions/{mission}",
    "/ui/workers",
    "/ui/workers/{worker}",
    "/ui/proxies",
    "/ui/writers",
    "/ui/extractions",
    "/ui/extractions/pncp",
    "/ui/extractions/pncp?status=partial&endpoint=endpoint_1",
    "/ui/extractions/pncp/{extraction}",
    "/ui/extractions/pncp/{extraction}?missing=yes",
    "/ui/extractions/pncp/{extraction}/pages/1",
    "/ui/extractions/new",
    "/ui/tasks",
    "/ui/tasks?status=failed",
    "/ui/tasks?status=pending&type=mail",
    "/ui/tasks?type=nobody",
    "/ui/tasks/{task}",
    "/ui/tasks/{waiting}",
    "/ui/dead-letters",
    "/ui/schedules",
    "/ui/audit",
    "/ui/audit?event=scrape_failed&event=session_failed",
    "/ui/audit?worker={worker}",
    "/ui/audit?error=ERROR203",
    "/ui/audit?without_mission=yes",
    "/ui/audit/timeline?mission={mission}",
    "/ui/audit/failures",
    "/ui/audit/workers",
    "/ui/audit/proxies",
    "/ui/settings",
    "/ui/help",
    "/ui/help/errors",
];

/// A year of a fleet of twenty: what is over, what failed, what waits; ten entries for each mission.
const FURNISH: &str = include_str!("pages.sql");
const FURNISH_TASKS: &str = include_str!("pages_tasks.sql");
const FURNISH_EXTRACTIONS: &str = include_str!("pages_extractions.sql");
/// A run that gets nowhere: it makes the tables.
const EXTRACT: &str = r#"{"type": "extract", "payload": {"source": "pncp", "from": "2024-01", "to": "2024-01",
    "endpoints": ["contratos_publicacao"], "base_url": "http://127.0.0.1:9/"}}"#;

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let there = match args {
        [] => None,
        [name, file] if name == "--lavra" => Some(std::path::absolute(file)?),
        _ => bail!("`bench pages` takes --lavra FILE, not {}", args.join(" ")),
    };
    apt::ensure(&[apt::Package::PostgreSql])?;
    apt::ensure(browser::PACKAGES)?;
    duckdb::ensure(workspace)?;
    let site = Site::start(workspace, there)?;
    let mut lines = Vec::new();
    let paths = site.paths()?;
    for path in &paths {
        let p95 = site.p95(path)?;
        lines.push(line(&format!("ms p95 {path}"), Some(p95), Rule::AtMost(100.0)));
    }
    let (lag, memory) = site.listeners()?;
    lines.push(line(
        &format!("ms p95 until {LISTENERS} listeners hear it"),
        Some(lag),
        Rule::AtMost(1000.0),
    ));
    lines.push(line(
        &format!("MB more for {LISTENERS} listeners"),
        Some(memory),
        Rule::AtMost(50.0),
    ));
    for (path, paint) in browser::paints(workspace, &site.base(), &paths)? {
        lines.push(line(&format!("ms to first paint {path}"), Some(paint), Rule::AtMost(1000.0)));
    }
    output::data(&lines.join("\n"));
    Ok(())
}

/// Lets the server make the tables of a source, as it does before the first run.
fn make_tables(port: u16, serve: &mut Daemon) -> Result<()> {
    let (status, made) = http::send(port, "POST", "/tasks", &[], EXTRACT)?;
    ensure!(status == 201, "POST /tasks: {status} {made}");
    let made: serde_json::Value = serde_json::from_str(&made)?;
    let id = made["id"].as_str().context("a task without an id")?;
    serve.wait_until(PATIENCE, || {
        http::send(port, "GET", "/extractions/pncp", &[], "").is_ok_and(|(status, _)| status == 200)
    })?;
    http::send(port, "POST", &format!("/tasks/{id}:cancel"), &[], "")?;
    Ok(())
}

struct Site {
    serve: Daemon,
    port: u16,
    postgres: Postgres,
    _scratch: Scratch,
}

impl Site {
    fn start(workspace: &Workspace, there: Option<PathBuf>) -> Result<Self> {
        let lavra = Lavra::prepare(workspace, there)?;
        let postgres = Postgres::start(Tuning::Bench)?;
        let scratch = Scratch::new("bench", &User::Myself)?;
        let port = ports::free()?;
        let mut command = lavra.command(scratch.path());
        command.env("LAVRA_SECRET_KEY", SECRET);
        let listen = format!("127.0.0.1:{port}");
        command.args(["--database", &postgres.url("postgres"), "serve", "--listen", &listen]);
        let mut serve = Daemon::start("lavra serve", command, &scratch.path().join("serve.log"))?;
        serve.wait_until(PATIENCE, || {
            http::send(port, "GET", "/readyz", &[], "").is_ok_and(|(status, _)| status == 200)
        })?;
        output::step("100,000 missions and 1,000,000 entries of their log");
        postgres.sql("postgres", FURNISH)?;
        output::step("100,000 tasks and 1,000,000 of their events; 60 endpoints × 60 months");
        postgres.sql("postgres", FURNISH_TASKS)?;
        make_tables(port, &mut serve)?;
        postgres.sql("postgres", FURNISH_EXTRACTIONS)?;
        postgres.sql("postgres", "VACUUM ANALYZE")?;
        Ok(Self { serve, port, postgres, _scratch: scratch })
    }

    fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn paths(&self) -> Result<Vec<String>> {
        let one = |sql: &str| -> Result<String> {
            Ok(self.postgres.sql("postgres", sql)?.trim().to_owned())
        };
        let mission = one("SELECT max(mission_id) FROM public.mission_logs")?;
        let worker = one("SELECT min(id) FROM public.workers")?;
        let task = one("SELECT max(id::text) FROM kodus_workflow.tasks WHERE status = 'FAILED'")?;
        let waiting = "SELECT max(id::text) FROM kodus_workflow.tasks
                       WHERE status = 'PENDING' AND run_at IS NULL";
        let waiting = one(waiting)?;
        let partial = "SELECT max(task_id) FROM psa.pncp_extraction_tasks WHERE status = 'PARTIAL'";
        let extraction = one(partial)?;
        let fill = |path: &&str| {
            path.replace("{mission}", &mission)
                .replace("{worker}", &worker)
                .replace("{task}", &task)
                .replace("{waiting}", &waiting)
                .replace("{extraction}", &extraction)
        };
        Ok(PAGES.iter().map(fill).collect())
    }

    /// The time within which 95 of 100 answers are there, over one connection each.
    fn p95(&self, path: &str) -> Result<f64> {
        let mut times = Vec::with_capacity(ROUNDS);
        for round in 0..=ROUNDS {
            let begun = Instant::now();
            let (status, page) =
                http::send(self.port, "GET", path, &[("accept", "text/html")], "")?;
            let took = begun.elapsed().as_secs_f64() * 1000.0;
            ensure!(status == 200, "{path}: {status} {page}");
            // The first one plans the statements.
            if round > 0 {
                times.push(took);
            }
        }
        Ok(percentile(&mut times, 0.95))
    }

    /// How long it takes until those who listen hear of an entry, and what they cost.
    fn listeners(&self) -> Result<(f64, f64)> {
        output::step(&format!("{LISTENERS} listeners"));
        let pid = self.serve.id();
        let before = resident(pid)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, heard) = mpsc::channel();
        let mut threads = Vec::new();
        for _ in 0..LISTENERS {
            let (port, stop, sender) = (self.port, Arc::clone(&stop), sender.clone());
            threads.push(std::thread::spawn(move || listen(port, &stop, &sender)));
        }
        drop(sender);
        std::thread::sleep(Duration::from_secs(2));
        let mut most = before;
        for _ in 0..EVENTS {
            // The entry says when it was made; a listener when it heard of it.
            self.postgres.sql(
                "postgres",
                "INSERT INTO public.mission_logs (event, details, timestamp)
                 VALUES ('session_started', '{}', clock_timestamp())",
            )?;
            most = most.max(resident(pid)?);
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_secs(2));
        most = most.max(resident(pid)?);
        stop.store(true, Ordering::SeqCst);
        let mut lags: Vec<f64> = heard.into_iter().collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a listener panicked"))??;
        }
        let wanted = LISTENERS * EVENTS;
        ensure!(lags.len() >= wanted, "{} of {wanted} were heard", lags.len());
        Ok((percentile(&mut lags, 0.95), (most - before) / 1024.0))
    }
}

fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len().max(1)) - 1;
    values.get(place).copied().unwrap_or(f64::NAN)
}

/// Kilobytes that a process has in memory.
fn resident(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).context("no VmRSS")
}

/// One who listens; tells for each new entry how old it was, in milliseconds.
fn listen(port: u16, stop: &AtomicBool, told: &mpsc::Sender<f64>) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    stream.write_all(
        b"GET /ui/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n",
    )?;
    let mut reader = BufReader::new(stream);
    let mut text = String::new();
    while !stop.load(Ordering::SeqCst) {
        match reader.read_line(&mut text) {
            Ok(0) => bail!("the stream ended"),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        }
        if let Some(data) = text.trim().strip_prefix("data: ") {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
            let message: serde_json::Value = serde_json::from_str(data)?;
            let entries = message["entries"].as_array();
            for entry in entries.into_iter().flatten() {
                let at = entry["at"].as_str().and_then(epoch).context("an entry without a time")?;
                let _gone = told.send((now - at) * 1000.0);
            }
        }
        if text.ends_with('\n') {
            text.clear();
        }
    }
    Ok(())
}

/// The seconds of `2026-03-01T10:00:00.123456Z` since 1970, as far as a lag needs them: within this day.
fn epoch(text: &str) -> Option<f64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    let clock = text.trim_end_matches('Z').split_once('T')?.1;
    let mut parts = clock.split(':');
    let hours: f64 = parts.next()?.parse().ok()?;
    let minutes: f64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next()?.parse().ok()?;
    let of_day = hours * 3600.0 + minutes * 60.0 + seconds;
    let day = (now / 86_400.0).floor() * 86_400.0;
    // Just after midnight an entry may be of the day before.
    Some(if day + of_day > now + 60.0 { day + of_day - 86_400.0 } else { day + of_day })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_one_of_the_values() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.95).to_string(), "95");
        assert_eq!(percentile(&mut [7.0], 0.95).to_string(), "7");
    }
}
