//! All of it at once, as separate processes: an ad library behind four proxies, three workers, a writer,
//! an orchestrator and PostgreSQL. Things fail and are killed, and then the table is held against the
//! library, ad by ad.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::civil::date;
use lavra_world::ads::{AdFaults, AdLibrary, AdsConfig};
use lavra_world::fleet::{Filters, Format};
use lavra_world::proxy::{ProxyFault, ProxyFaultKind};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use serde::Serialize;
use serde_json::Value;

use crate::program::{Place, Running, port, until};

const SETTINGS: &str = "
[fleet]
polling_session_ms = 100
polling_job_ms = 200
polling_queue_ms = 500
close_patience_ms = 5000
backoff_first_ms = 500
heartbeat_ms = 500
stale_ms = 2000

[runner]
heartbeat_ms = 500

[tasks]
stale_ms = 2500
";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Not the headers of a source: a mission's order has none. Those that an order may have are looked for in
/// `writer.rs`, where a writer runs as a program too.
const SECRETS: [&str; 4] = [KEY, "of-the-worker", "of-the-writer", "proxy-password"];
const WORKERS: usize = 3;
const DAYS: i8 = 10;
const FORMATS: [(&str, Format); 3] =
    [("all", Format::All), ("video", Format::Video), ("image", Format::Image)];
const LANGUAGES: [&str; 2] = ["pt", "en"];
const MISSIONS: i64 = DAYS as i64 * 3 * 2;
const PATIENCE: Duration = Duration::from_secs(150);

/// One of our programs, which can be killed and started again as it was.
struct Program {
    args: Vec<String>,
    running: Option<Running>,
}

impl Program {
    fn start(place: &Place, args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        let mut program = Self { args, running: None };
        program.again(place);
        program
    }

    /// `kill -9`, and started anew.
    fn again(&mut self, place: &Place) {
        self.running = None;
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let variables = [
            ("LAVRA_SECRET_KEY", KEY),
            ("LAVRA_WORKER_API_KEY", "of-the-worker"),
            ("LAVRA_WRITER_API_KEY", "of-the-writer"),
        ];
        self.running = Some(place.start_with(&args, &variables));
    }
}

/// What is outside: an ad library, and four proxies before it, each a process.
struct Outside {
    truth: AdLibrary,
    base_url: String,
    proxies: Vec<Proxy>,
    _library: Program,
}

/// A world whose proxy is used and nothing else of it but the wires to it.
struct Proxy {
    program: Program,
    port: u16,
    wires: String,
    /// Bytes from the library, before it was last killed.
    passed: u64,
}

impl Outside {
    fn new(place: &Place, faults: &AdFaults) -> Self {
        let address = format!("127.0.0.1:{}", port());
        let args = ["world", "--listen", "127.0.0.1:0", "--seed", "5", "--ads", &address];
        let library = Program::start(place, &[&args[..], &["--ads-per-day", "60"]].concat());
        let url = format!("http://{address}/_world/faults");
        let is_told =
            until(Duration::from_secs(20), || ask(Method::PUT, &url, Some(faults)).map(drop));
        assert!(is_told.is_some(), "no library: {}", place.logs());
        Self {
            truth: AdLibrary::new(AdsConfig { seed: 5, ads: 60, ..AdsConfig::default() }),
            base_url: format!("http://{address}/v1"),
            proxies: (0..4).map(|_| Proxy::start(place)).collect(),
            _library: library,
        }
    }

    fn truth(&self) -> BTreeMap<String, Value> {
        let mut truth = BTreeMap::new();
        for day in 1..=DAYS {
            for (_, format) in FORMATS {
                for language in LANGUAGES {
                    let filters = Filters::day(date(2025, 1, day), format, language);
                    let ads = self.truth.truth(&filters);
                    truth.extend(ads.into_iter().map(|ad| (ad["id"].as_str().unwrap().into(), ad)));
                }
            }
        }
        truth
    }
}

impl Proxy {
    fn start(place: &Place) -> Self {
        let (wires, port) = (format!("127.0.0.1:{}", port()), port());
        let listen = ["world", "--listen", "127.0.0.1:0", "--ads", &wires];
        let proxy = ["--proxies", "1", "--proxy-port", &port.to_string()];
        let program = Program::start(place, &[&listen[..], &proxy[..]].concat());
        Self { program, port, wires: format!("http://{wires}/_world/proxies"), passed: 0 }
    }

    /// `kill -9`, and started anew.
    fn again(&mut self, place: &Place) {
        self.passed = self.passed();
        self.program.again(place);
    }

    /// What came from the library; one that was just started may not say.
    fn passed(&self) -> u64 {
        let meters = ask(Method::GET, &self.wires, None::<&()>);
        self.passed + meters.and_then(|meters| meters[0]["bytes_down"].as_u64()).unwrap_or(0)
    }

    fn set_fault(&self, fault: Option<ProxyFault>) {
        let _may_be_starting = ask(Method::PUT, &format!("{}/0", self.wires), Some(&fault));
    }
}

/// The answer of a world, if it is there.
fn ask(method: Method, url: &str, body: Option<&impl Serialize>) -> Option<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5));
        let mut request = client.build().unwrap().request(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        request.send().await.ok()?.error_for_status().unwrap().json().await.ok()
    })
}

fn typed(place: &Place, args: &[&str], variable: Option<(&str, &str)>) {
    let mut command = place.command(args);
    command.env("LAVRA_SECRET_KEY", KEY).envs(variable);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Three workers, a writer and an orchestrator, told of each other.
fn furnish(
    place: &Place,
    outside: &Outside,
    of_the_writer: &[&str],
) -> (Vec<Program>, Vec<PathBuf>) {
    let mut programs = Vec::new();
    let mut directories = Vec::new();
    for number in 0..WORKERS {
        let listen = format!("127.0.0.1:{}", port());
        let data = place.directory.path().join(format!("worker-{number}"));
        let at = data.to_str().unwrap();
        let args = ["worker", "--listen", &listen, "--data", at, "--base-url", &outside.base_url];
        programs.push(Program::start(place, &args));
        directories.push(data.clone());
        let (name, url) = (format!("worker-{number}"), format!("http://{listen}"));
        let args = ["fleet", "worker", "add", &name, "--url", &url, "--storage-domain", &url];
        typed(place, &args, Some(("LAVRA_FLEET_API_KEY", "of-the-worker")));
    }
    for (number, proxy) in outside.proxies.iter().enumerate() {
        let (name, port) = (format!("proxy-{number}"), proxy.port.to_string());
        // Half of them over SOCKS.
        let host = if number % 2 == 0 { "127.0.0.1" } else { "socks5://127.0.0.1" };
        let args = ["fleet", "proxy", "add", &name, "--host", host, "--port", &port];
        let args = [&args[..], &["--username", "user"]].concat();
        typed(place, &args, Some(("LAVRA_FLEET_PASSWORD", "proxy-password")));
    }
    let listen = format!("127.0.0.1:{}", port());
    let args = ["writer", "--listen", &listen, "--allow-private", "127.0.0.0/8"];
    programs.push(Program::start(place, &[&args[..], of_the_writer].concat()));
    let args = ["fleet", "writer", "add", "writer", "--url", &format!("http://{listen}")];
    typed(place, &args, Some(("LAVRA_FLEET_API_KEY", "of-the-writer")));
    programs.push(Program::start(place, &["serve", "--listen", "127.0.0.1:0"]));
    (programs, directories)
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
}

/// No secret in anything that was written below the directory: logs, answers that were kept, databases.
fn assert_no_secret_below(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_secret_below(&path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let told = SECRETS.iter().find(|secret| holds(&bytes, secret));
        assert_eq!(told, None, "in {}", path.display());
    }
}

fn counts(place: &Place) -> Option<Value> {
    let output = place.run(&["fleet", "status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(status["counts"].clone())
}

/// The table, ad by ad.
fn stored(place: &Place) -> BTreeMap<String, Value> {
    let query = "SELECT coalesce(json_object_agg(id, data), '{}') FROM public.ads";
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", query])
        .arg(&place.database)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The jobs that were started over all workers, by their key.
fn started(directories: &[PathBuf]) -> BTreeMap<String, Vec<Value>> {
    let mut started: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for data in directories {
        for job in std::fs::read_dir(data.join("jobs")).into_iter().flatten() {
            // Killed just before: nobody was told of it.
            let Ok(text) = std::fs::read_to_string(job.unwrap().path().join("job.json")) else {
                continue;
            };
            let job: Value = serde_json::from_str(&text).unwrap();
            let key = job["idempotency_key"].as_str().unwrap().to_owned();
            started.entry(key).or_default().push(job);
        }
    }
    started
}

/// The log of the mission of a key.
fn log_of(place: &Place, key: &str) -> String {
    let mission = key.split(':').next().unwrap_or(key);
    String::from_utf8_lossy(&place.run(&["mission", "log", mission]).stdout).into_owned()
}

#[test]
fn sixty_missions_through_faults_and_kills_fill_the_table_as_the_library_has_it() {
    let place = Place::on_postgres();
    std::fs::write(place.directory.path().join("lavra.toml"), SETTINGS).unwrap();
    let faults = AdFaults {
        too_many: 0.01,
        server_error: 0.02,
        html: 0.01,
        cut: 0.02,
        reset: 0.01,
        latency_ms: 20,
        ..AdFaults::default()
    };
    let mut outside = Outside::new(&place, &faults);
    let (mut programs, directories) = furnish(&place, &outside, &[]);
    let add = ["mission", "add", "--from", "2025-01-01", "--to", "2025-01-10", "--queue"];
    let of = ["--media-type", "all", "--media-type", "video", "--media-type", "image"];
    let languages = ["--language", "pt", "--language", "en"];
    typed(&place, &[&add[..], &of[..], &languages[..]].concat(), None);
    typed(&place, &["fleet", "start"], None);

    let mut dice = SmallRng::seed_from_u64(11);
    let (mut kills, begun) = (0, Instant::now());
    loop {
        std::thread::sleep(Duration::from_millis(dice.random_range(200..900)));
        let Some(counts) = counts(&place) else { continue };
        if counts["completed"] == MISSIONS {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{counts} after {kills} kills {}", place.logs());
        if counts["failed"].as_i64() > Some(0) {
            typed(&place, &["mission", "retry", "--status", "failed"], None);
        }
        // The run may have ended before what was tried again.
        let _runs_already = place.run(&["fleet", "start"]);
        if kills < 25 {
            kills += 1;
            match dice.random_range(0..programs.len() + 1) {
                number if number < programs.len() => programs[number].again(&place),
                _ => outside.proxies[dice.random_range(0..4)].again(&place),
            }
        }
        let fault = ProxyFault::now(ProxyFaultKind::Reset);
        outside.proxies[dice.random_range(0..4)].set_fault(dice.random_bool(0.15).then_some(fault));
    }
    assert!(kills >= 10, "it was over after {kills} kills");

    let (truth, stored) = (outside.truth(), stored(&place));
    let missing: Vec<_> = truth.keys().filter(|id| !stored.contains_key(*id)).collect();
    let extra: Vec<_> = stored.keys().filter(|id| !truth.contains_key(*id)).collect();
    let differs: Vec<_> =
        truth.iter().filter(|(id, ad)| stored.get(*id).is_some_and(|row| row != *ad)).collect();
    assert!(truth.len() > 300, "{}", truth.len());
    assert_eq!((missing.len(), extra.len(), differs.len()), (0, 0, 0), "{missing:?} {extra:?}");
    let started = started(&directories);
    assert!(started.len() >= MISSIONS as usize, "{}", started.len());
    for (key, jobs) in &started {
        assert_eq!(jobs.len(), 1, "{key} was started twice: {jobs:#?}\n{}", log_of(&place, key));
    }
    assert!(outside.proxies.iter().all(|proxy| proxy.passed() > 0));
    drop(programs);
    assert_no_secret_below(place.directory.path());
    let mut dump = Command::new("pg_dump");
    // As hexadecimal digits, what is not sealed could not be told from what is.
    let dump = dump.arg(&place.database).env("PGOPTIONS", "-c bytea_output=escape");
    let dump = dump.output().unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let told = SECRETS.iter().find(|secret| holds(&dump.stdout, secret));
    assert_eq!(told, None, "in the database");
}

#[test]
fn on_a_laptop_the_same_runs_on_files_and_no_secret_is_in_any() {
    let place = Place::on_duckdb();
    std::fs::write(place.directory.path().join("lavra.toml"), SETTINGS).unwrap();
    let outside = Outside::new(&place, &AdFaults::default());
    let (mut programs, _) = furnish(&place, &outside, &["--target", "ads.duckdb"]);
    let server = programs.last().and_then(|server| server.running.as_ref()).unwrap();
    place.until_served(server);
    let add = ["mission", "add", "--from", "2025-01-01", "--to", "2025-01-02", "--queue"];
    typed(&place, &[&add[..], &["--language", "pt"]].concat(), None);
    typed(&place, &["fleet", "start"], None);
    let done = until(Duration::from_secs(60), || (counts(&place)?["completed"] == 2).then_some(()));
    assert!(done.is_some(), "{:?} {}", counts(&place), place.logs());
    for program in &mut programs {
        program.running = None;
    }
    let ads = ["--database", "ads.duckdb", "--json", "sql", "SELECT id, data FROM public.ads"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lavra"));
    let output = command.current_dir(place.directory.path()).args(ads).output().unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let mut truth: Vec<Value> = [1, 2]
        .into_iter()
        .flat_map(|day| {
            let filters = Filters::day(date(2025, 1, day), Format::All, "pt");
            outside.truth.truth(&filters)
        })
        .collect();
    let id = |ad: &Value| ad["id"].as_str().unwrap().to_owned();
    truth.sort_by_key(id);
    truth.dedup_by_key(|ad| id(ad));
    let read = |row: &Value| match &row["data"] {
        Value::String(text) => serde_json::from_str(text).unwrap(),
        data => data.clone(),
    };
    let mut stored: Vec<Value> = rows.iter().map(read).collect();
    stored.sort_by_key(id);
    assert!(truth.len() > 20 && stored == truth, "{} of {}", stored.len(), truth.len());
    assert_no_secret_below(place.directory.path());
}
