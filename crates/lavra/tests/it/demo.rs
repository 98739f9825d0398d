//! `lavra demo` as it is typed; what it stored is held against a world of the same seed.

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use jiff::civil::{Date, date};
use lavra_world::fleet::{Filters, Format};
use lavra_world::{AdLibrary, AdsConfig, Endpoint, World, WorldConfig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{Place, Running, until};

const MONTHS: [Date; 3] = [date(2025, 2, 1), date(2025, 3, 1), date(2025, 4, 1)];
/// Four endpoints, one of them in 14 modalidades, in three months.
const LISTS: usize = 17 * 3;

/// On loopback alone, below the directory of the place.
fn demo(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lavra"));
    command
        .current_dir(place.directory.path())
        .env("TMPDIR", place.directory.path())
        .env_remove("LAVRA_SECRET_KEY")
        .args(args)
        .stdin(Stdio::null());
    command
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// How many records the world has in these months.
fn records_of_the_world() -> u64 {
    let config = WorldConfig { seed: 7, scale: 0.012, now: None, fixed: None };
    let world = World::new(config);
    let endpoints = [
        Endpoint::Contratos,
        Endpoint::ContratacoesPublicacao,
        Endpoint::AtasAtualizacao,
        Endpoint::InstrumentosCobranca,
    ];
    let months =
        |endpoint| MONTHS.map(|first| world.truth(endpoint, None, first, first.last_of_month()));
    endpoints.into_iter().flat_map(months).map(|truth| truth.total()).sum()
}

/// The ids of the ads that 24 missions find.
fn ads_of_the_world() -> BTreeSet<String> {
    let library = AdLibrary::new(AdsConfig { seed: 7, ads: 120, ..AdsConfig::default() });
    let mut ids = BTreeSet::new();
    for day in 3..=6 {
        for format in [Format::Video, Format::Image] {
            for language in ["pt", "en", "es"] {
                let ads = library.truth(&Filters::day(date(2025, 3, day), format, language));
                ids.extend(ads.iter().map(|ad| ad["id"].as_str().unwrap().to_owned()));
            }
        }
    }
    ids
}

/// What it says is what the world has, and what the database has.
fn assert_true(report: &Value, sql: impl Fn(&str) -> Value) {
    let (records, ads) = (records_of_the_world(), ads_of_the_world());
    assert!(records > 5000 && ads.len() > 1000, "{records} {}", ads.len());
    let audit = &report["audit"];
    assert_eq!(audit["findings"], json!([]), "{audit}");
    assert_eq!((&audit["months"], &audit["missions"]), (&json!(LISTS), &json!(24)));
    assert_eq!((&audit["records"], &audit["ads"]), (&json!(records), &json!(ads.len())));
    assert_eq!(report["extraction"]["status"], "COMPLETED");
    assert!(report["seconds"].as_f64().unwrap() < 60.0, "{}", report["seconds"]);
    let failures = report["extraction"]["summary"]["failures"].as_object().unwrap();
    assert!(!failures.is_empty(), "the world did not fail: {report}");
    assert_eq!(report["queries"].as_array().unwrap().len(), 3);
    for query in report["queries"].as_array().unwrap() {
        assert!(!query["rows"].as_array().unwrap().is_empty(), "{query}");
    }
    let stored = sql("SELECT CAST(sum(records) AS BIGINT) AS n FROM psa.pncp_pages");
    assert_eq!(stored[0]["n"], records, "{stored}");
    let stored = sql("SELECT id FROM public.ads");
    let stored =
        stored.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned());
    assert_eq!(stored.collect::<BTreeSet<_>>(), ads);
    let completed = sql("SELECT count(*) AS n FROM public.missions WHERE status = 'completed'");
    assert_eq!(completed[0]["n"], 24);
}

#[test]
fn the_demonstration_ends_well_on_a_file() {
    let place = Place::on_duckdb();
    let report = report(&demo(&place, &["--json", "demo", "--exit"]).output().unwrap());
    let file = report["database"].as_str().unwrap();
    assert!(file.starts_with(place.directory.path().to_str().unwrap()), "{file}");
    assert_true(&report, |query| {
        let args = ["--database", file, "--json", "sql", "--limit", "100000", query];
        let output = demo(&place, &args).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    });
}

#[test]
fn the_demonstration_ends_well_on_servers_and_leaves_work_alone_that_is_there() {
    let place = Place::on_postgres();
    let broker = std::env::var("LAVRA_TEST_AMQP")
        .expect("LAVRA_TEST_AMQP is not set: run it by cargo xtask test");
    let args = ["--database", &place.database, "--broker", &broker, "--json", "demo", "--exit"];
    let report = report(&demo(&place, &args).output().unwrap());
    let sql = |query: &str| place.json(&["sql", "--limit", "100000", query]);
    assert_true(&report, sql);
    let waiting = sql("SELECT count(*) AS n FROM kodus_workflow.task_outbox");
    assert_eq!(waiting[0]["n"], 0, "what was created was announced");

    let again = demo(&place, &args).output().unwrap();
    let said = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(2), "{said}");
    assert!(said.contains("CREATE DATABASE"), "{said}");
}

/// A service would go on without it, and nobody would notice that it was never there.
#[test]
fn a_demonstration_with_a_broker_that_is_away_says_so() {
    let place = Place::on_duckdb();
    let args = ["--broker", "amqp://someone:secret@127.0.0.1:1/%2f", "demo", "--exit"];
    let output = demo(&place, &args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["error[broker_unreachable]", "--broker", "127.0.0.1:1"] {
        assert!(said.contains(part), "it does not say {part:?}: {said}");
    }
    assert!(!said.contains("secret"), "{said}");
    assert_eq!(std::fs::read_dir(place.directory.path()).unwrap().count(), 0);
}

#[test]
fn a_demonstration_takes_a_schema_of_another_name() {
    let place = Place::on_postgres();
    let run = |schema: &str| {
        let mut command =
            demo(&place, &["--database", &place.database, "--json", "demo", "--exit"]);
        command.env("DB_SCHEMA", schema).output().unwrap()
    };
    assert_eq!(report(&run("mine"))["audit"]["findings"], json!([]));
    // What is somebody's is found whatever name the tasks have.
    for schema in ["public", "lavra", "yours"] {
        let again = run(schema);
        let said = String::from_utf8_lossy(&again.stderr);
        assert_eq!(again.status.code(), Some(2), "{said}");
    }
}

/// Of what is somebody's, nothing is changed: no table is made, no key that stands in a column is sealed.
#[test]
fn a_demonstration_touches_nothing_of_a_database_that_is_in_use() {
    let place = Place::on_postgres();
    let pg = |sql: &str| {
        let psql = Command::new("psql").args(["-qAtX", "-d", &place.database, "-c", sql]).output();
        let output = psql.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    pg("CREATE TABLE public.proxies (id text PRIMARY KEY, password text);
        INSERT INTO public.proxies VALUES ('mine', 'plain')");
    let tables = "SELECT schemaname, tablename FROM pg_tables
                  WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
    let before = pg(tables);
    let output = demo(&place, &["--database", &place.database, "demo", "--exit"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("rows in public.proxies"), "{said}");
    assert_eq!(pg(tables), before);
    assert_eq!(pg("SELECT * FROM public.proxies").trim(), "mine|plain");
    assert_eq!(
        std::fs::read_dir(place.directory.path()).unwrap().count(),
        0,
        "a directory is left"
    );
}

#[test]
fn a_demonstration_that_is_refused_leaves_nothing() {
    let place = Place::on_duckdb();
    let refused = demo(&place, &["--database", "mine.duckdb", "demo"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert_eq!(std::fs::read_dir(place.directory.path()).unwrap().count(), 0, "{said}");
}

#[test]
fn an_interrupted_demonstration_ends_at_once_and_says_so() {
    let place = Place::on_duckdb();
    let log = std::fs::File::create(place.directory.path().join("demo.log")).unwrap();
    let mut command = demo(&place, &["demo"]);
    let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let mut running = Running(child);
    let begun =
        until(Duration::from_secs(60), || place.logs().contains("missions: ").then_some(()));
    assert!(begun.is_some(), "{}", place.logs());
    let told = Instant::now();
    kill_process(Pid::from_child(&running.0), Signal::INT).unwrap();
    let ended = running.0.wait().unwrap();
    assert_eq!(ended.code(), Some(130), "{}", place.logs());
    assert!(told.elapsed() < Duration::from_secs(10), "{:?}", told.elapsed());
}
