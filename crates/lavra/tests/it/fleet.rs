//! The fleet as it is typed: real processes, real HTTP, doubles of workers and a writer on loopback.

use std::time::{Duration, Instant};

use lavra_world::fleet::Span;
use lavra_world::{FleetConfig, FleetWorld};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::program::{Place, Running, until};

/// Quick polls; takeover as it is.
const SETTINGS: &str = "
[fleet]
polling_session_ms = 100
polling_job_ms = 200
polling_queue_ms = 500
close_patience_ms = 5000
backoff_first_ms = 500

[runner]
heartbeat_ms = 1000
";

/// Workers and a writer, served by this process for as long as it is there.
struct World {
    fleet: FleetWorld,
    begun: Instant,
    stop: CancellationToken,
    _runtime: tokio::runtime::Runtime,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    fn new(workers: usize, job: Span) -> Self {
        let config = FleetConfig { workers, job, ..FleetConfig::fast() };
        let fleet = FleetWorld::new(config, 7);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        fleet.set_base_url(&format!("http://{}", listener.local_addr().unwrap()));
        let stop = CancellationToken::new();
        let (serving, until) = (fleet.clone(), stop.clone());
        runtime.spawn(async move { serving.serve(listener, until).await });
        Self { fleet, begun: Instant::now(), stop, _runtime: runtime }
    }

    /// Starts of each mission; one that was started twice was run twice.
    fn most_starts(&self) -> u64 {
        let stats = self.fleet.stats(self.begun.elapsed());
        stats.missions.values().map(|mission| mission.starts).max().unwrap_or(0)
    }
}

fn place(on: Place) -> Place {
    std::fs::write(on.directory.path().join("lavra.toml"), SETTINGS).unwrap();
    on
}

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn typed(place: &Place, args: &[&str], key: Option<&str>) -> String {
    let mut command = place.command(args);
    command.env("LAVRA_SECRET_KEY", KEY);
    if let Some(key) = key {
        command.env("LAVRA_FLEET_API_KEY", key);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// All workers of a world, a proxy more than workers, and its writer.
fn furnish(place: &Place, world: &World, workers: usize) {
    for number in 0..workers {
        let (name, url) = (format!("worker-{number}"), world.fleet.worker_url(number));
        let key = world.fleet.worker_key(number);
        let args = ["fleet", "worker", "add", &name, "--url", &url, "--storage-domain", &url];
        typed(place, &args, key.as_deref());
    }
    for number in 0..=workers {
        let (name, port) = (format!("proxy-{number}"), (9000 + number).to_string());
        let args = ["fleet", "proxy", "add", &name, "--host", "127.0.0.1", "--port", &port];
        typed(place, &args, None);
    }
    let url = world.fleet.writer_url(0);
    let args = ["fleet", "writer", "add", "writer-1", "--url", &url];
    typed(place, &args, world.fleet.writer_key(0).as_deref());
}

fn serve(place: &Place) -> Running {
    place.start_with(&["serve", "--listen", "127.0.0.1:0"], &[("LAVRA_SECRET_KEY", KEY)])
}

fn counts(place: &Place) -> Value {
    place.json(&["fleet", "status"])["counts"].clone()
}

fn until_completed(place: &Place, missions: u64, patience: Duration) {
    let done = until(patience, || (counts(place)["completed"] == missions).then_some(()));
    assert!(done.is_some(), "{} {}", counts(place), place.logs());
}

/// Nothing twice, everything closed, and the log of a mission as the specification has it.
fn assert_all_is_well(place: &Place, world: &World) {
    assert_eq!(world.fleet.violations(), Vec::<String>::new());
    assert_eq!(world.most_starts(), 1);
    let closed = until(Duration::from_secs(20), || {
        (world.fleet.sessions_open(world.begun.elapsed()) == 0).then_some(())
    });
    assert!(closed.is_some(), "sessions stand after the end: {}", place.logs());
    let writes = world.fleet.stats(world.begun.elapsed()).writes;
    assert!(writes.values().all(|write| write.written == 1), "{writes:?}");
    let status = place.json(&["fleet", "status"]);
    for proxy in status["proxies"].as_array().unwrap() {
        assert!(proxy["in_use_by_worker_id"].is_null(), "{proxy}");
    }
}

#[test]
fn missions_go_from_the_bank_to_the_writer_on_a_laptop() {
    let place = place(Place::on_duckdb());
    let world = World::new(3, Span::new(30, 120));
    furnish(&place, &world, 3);
    let server = serve(&place);
    place.until_served(&server);
    let add = ["mission", "add", "--from", "2025-01-01", "--to", "2025-01-06"];
    typed(&place, &[&add[..], &["--language", "pt", "--media-type", "video"]].concat(), None);
    typed(&place, &["mission", "queue", "--bank"], None);
    typed(&place, &["fleet", "start", "--wait"], None);
    until_completed(&place, 6, Duration::from_secs(5));
    assert_all_is_well(&place, &world);
    // The mission with which a session began has all of the specification's sequence.
    let missions = place.json(&["mission", "list", "--limit", "50"]);
    let logs: Vec<Vec<String>> = missions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mission| {
            let log = place.json(&["mission", "log", mission["id"].as_str().unwrap()]);
            let items = log["items"].as_array().unwrap().iter();
            items.map(|entry| entry["event"].as_str().unwrap().to_owned()).collect()
        })
        .collect();
    let sequence = [
        "mission_queued",
        "session_started",
        "session_ready",
        "mission_assigned",
        "scrape_started",
        "scrape_completed",
        "writer_started",
        "writer_completed",
        "mission_completed",
    ];
    let without_progress = |log: &Vec<String>| -> Vec<String> {
        log.iter().filter(|event| !event.ends_with("_progress")).cloned().collect()
    };
    assert!(logs.iter().any(|log| without_progress(log) == sequence), "{logs:?}");
}

#[test]
fn a_killed_orchestrator_s_jobs_are_followed_on_and_none_is_started_again() {
    for on in [Place::on_duckdb(), Place::on_postgres()] {
        let place = place(on);
        let world = World::new(2, Span::new(6000, 8000));
        furnish(&place, &world, 2);
        let mut server = serve(&place);
        let is_file = place.database.ends_with(".duckdb");
        if is_file {
            place.until_served(&server);
        }
        let add = ["mission", "add", "--from", "2025-01-01", "--to", "2025-01-02", "--queue"];
        typed(&place, &[&add[..], &["--language", "pt"]].concat(), None);
        typed(&place, &["fleet", "start"], None);
        let running = until(Duration::from_secs(20), || {
            (world.fleet.jobs_running(world.begun.elapsed()) == 2).then_some(())
        });
        assert!(running.is_some(), "{}", place.logs());
        server.0.kill().unwrap();
        server.0.wait().unwrap();
        let _second = serve(&place);
        until_completed(&place, 2, Duration::from_secs(45));
        assert_all_is_well(&place, &world);
    }
}

#[test]
fn two_orchestrators_share_the_workers_and_a_frozen_one_is_fenced_out() {
    let place = place(Place::on_postgres());
    let world = World::new(4, Span::new(9000, 12_000));
    furnish(&place, &world, 4);
    let (first, _second) = (serve(&place), serve(&place));
    std::thread::sleep(Duration::from_secs(2));
    let add = ["mission", "add", "--from", "2025-01-01", "--to", "2025-01-08", "--queue"];
    typed(&place, &[&add[..], &["--language", "pt"]].concat(), None);
    typed(&place, &["fleet", "start"], None);
    let running = until(Duration::from_secs(30), || {
        (world.fleet.jobs_running(world.begun.elapsed()) == 4).then_some(())
    });
    assert!(running.is_some(), "{}", place.logs());
    let holders = || -> Vec<String> {
        let workers = place.json(&["fleet", "worker", "list"])["items"].clone();
        let held = |worker: &Value| worker["held_by"].as_str().map(str::to_owned);
        let mut all: Vec<String> = workers.as_array().unwrap().iter().filter_map(held).collect();
        all.sort();
        all.dedup();
        all
    };
    let shared = until(Duration::from_secs(20), || (holders().len() == 2).then_some(()));
    assert!(shared.is_some(), "one has all of them");
    let frozen = Pid::from_child(&first.0);
    kill_process(frozen, Signal::STOP).unwrap();
    let begun = Instant::now();
    let taken = until(Duration::from_secs(30), || (holders().len() == 1).then_some(()));
    assert!(taken.is_some(), "not taken over within 30 s");
    eprintln!("taken over after {:?}", begun.elapsed());
    kill_process(frozen, Signal::CONT).unwrap();
    until_completed(&place, 8, Duration::from_secs(90));
    assert_all_is_well(&place, &world);
}

#[test]
fn a_mission_that_is_canceled_while_it_is_scraped_stops_its_job() {
    let place = place(Place::on_duckdb());
    let world = World::new(1, Span::new(60_000, 60_000));
    furnish(&place, &world, 1);
    let server = serve(&place);
    place.until_served(&server);
    let add = ["mission", "add", "--from", "2025-01-01", "--to", "2025-01-01", "--queue"];
    typed(&place, &[&add[..], &["--language", "pt"]].concat(), None);
    typed(&place, &["fleet", "start"], None);
    let running = until(Duration::from_secs(20), || {
        (world.fleet.jobs_running(world.begun.elapsed()) == 1).then_some(())
    });
    assert!(running.is_some(), "{}", place.logs());
    typed(&place, &["mission", "cancel", "--status", "running"], None);
    assert_eq!(counts(&place)["canceled"], 1, "it is canceled at once");
    let stopped = until(Duration::from_secs(20), || {
        (world.fleet.jobs_running(world.begun.elapsed()) == 0).then_some(())
    });
    assert!(stopped.is_some(), "its job goes on: {}", place.logs());
    assert_all_is_well(&place, &world);
}

/// Everything that a worker or a writer may answer, over HTTP.
const TROUBLE: &str = r#"{
    "html": 0.02, "unauthorized": 0.02, "too_large": 0.01, "unprocessable": 0.01, "too_many": 0.02,
    "retry_after": 0.02, "retry_after_seconds": 1, "server_error": 0.02, "refused": 0.02,
    "timeout": 0.01, "reset": 0.02, "lost": 0.01, "slow": 0.02, "slow_most_ms": 300
}"#;

#[test]
fn a_run_behind_pgbouncer_delivered_by_rabbitmq_survives_every_answer() {
    let place = place(Place::behind_pgbouncer());
    let broker = std::env::var("LAVRA_TEST_AMQP")
        .expect("LAVRA_TEST_AMQP is not set: run it by cargo xtask test");
    let prefix = format!("test.{}", uuid::Uuid::new_v4().simple());
    let settings = SETTINGS.replace("[fleet]", "[fleet]\ncall_ms = 2000");
    let settings = format!("broker = \"{broker}\"\nbroker_prefix = \"{prefix}\"\n{settings}");
    std::fs::write(place.directory.path().join("lavra.toml"), settings).unwrap();
    let world = World::new(3, Span::new(100, 400));
    furnish(&place, &world, 3);
    let faults = format!(r#"{{"worker_requests": {TROUBLE}, "writer_requests": {TROUBLE}}}"#);
    world.fleet.set_faults(serde_json::from_str(&faults).unwrap()).unwrap();
    let _server = serve(&place);
    let add = ["mission", "add", "--from", "2025-01-01", "--to", "2025-01-20", "--queue"];
    typed(&place, &[&add[..], &["--language", "pt"]].concat(), None);
    typed(&place, &["fleet", "start"], None);
    let over = until(Duration::from_secs(100), || {
        let counts = counts(&place);
        (counts["completed"].as_i64()? + counts["failed"].as_i64()? == 20).then_some(())
    });
    assert!(over.is_some(), "{} {}", counts(&place), place.logs());
    assert!(counts(&place)["completed"].as_i64() > Some(10), "{}", counts(&place));
    let failed = place.json(&["mission", "list", "--status", "failed"])["items"].clone();
    for mission in failed.as_array().unwrap() {
        let code = mission["error_code"].as_str().unwrap_or_default();
        assert!(code.starts_with("ERROR"), "{mission}");
    }
    assert_eq!(world.fleet.violations(), Vec::<String>::new());
}

#[test]
fn a_guard_that_is_broken_is_found_by_simulation() {
    let args = ["simulate", "--chaos", "--seeds", "20", "--workers", "5", "--missions", "40"];
    let place = Place::on_duckdb();
    let output = place.run(&[&args[..], &["--orchestrators", "2", "--break-the-guard"]].concat());
    assert!(!output.status.success(), "twenty seeds found nothing");
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(found.contains("seed "), "{found}");
}

#[test]
fn simulations_hold_and_are_the_same_twice() {
    let place = Place::on_duckdb();
    let run = |args: &[&str]| {
        let output = place.run(&[&["simulate", "--chaos", "--orchestrators", "2"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
        output.stdout
    };
    run(&["--seeds", "25", "--workers", "12", "--missions", "40", "--vary"]);
    let once = ["--seed", "11", "--workers", "12", "--missions", "80", "--timeline"];
    assert_eq!(run(&once), run(&once));
}
