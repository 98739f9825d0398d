//! Extraction as it is typed, against a world on loopback.

mod bucket;
mod interrupted;
mod refused;
mod together;
mod trouble;

use std::io::{Read, Write};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::program::{Place, Running, until};

const MONTH: [&str; 4] = ["--from", "2025-03", "--to", "2025-03"];
const ONE: [&str; 2] = ["--endpoint", "contratacoes_publicacao_modalidade_6"];

/// The world, and where its API is.
pub(crate) struct World {
    pub(crate) base: String,
    _place: Place,
    _process: Running,
}

impl World {
    /// From now on it answers at once and well.
    fn without_faults(&self) {
        let address = self.base.trim_start_matches("http://").split('/').next().unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let head = "PUT /_world/faults HTTP/1.1\r\nconnection: close\r\ncontent-length: 2";
        write!(stream, "{head}\r\nhost: {address}\r\n\r\n{{}}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

pub(crate) fn world(args: &[&str]) -> World {
    let place = Place::on_duckdb();
    let process =
        place.start(&[&["world", "--listen", "127.0.0.1:0", "--seed", "7"], args].concat());
    let base = until(Duration::from_secs(20), || {
        let said = place.logs();
        let (_, rest) = said.split_once("the PNCP API is at ")?;
        Some(rest.split_once(';')?.0.to_owned())
    });
    let base = base.unwrap_or_else(|| panic!("no world: {}", place.logs()));
    World { base, _place: place, _process: process }
}

pub(crate) fn run<'a>(base: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["extract", "run", "pncp"], &MONTH[..], &ONE, &["--base-url", base], more].concat()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The summary of a run that completes all.
fn complete(place: &Place, args: &[&str]) -> Value {
    let answer = place.json(args);
    let summary = &answer["summary"];
    assert_eq!((&summary["partial"], &summary["failed"]), (&0.into(), &0.into()), "{answer}");
    summary.clone()
}

fn assert_audited(place: &Place) {
    let report = place.json(&["extract", "audit", "pncp"]);
    assert_eq!(report["problems"], serde_json::json!({}), "{report}");
    assert!(report["pages"].as_u64().unwrap() > 0, "{report}");
}

/// What is stored is whole, and all that the world has.
fn assert_true(place: &Place, base: &str) {
    let against = ["--against-source", "--base-url", base];
    let report = place.json(&[&["extract", "audit", "pncp"], &against[..]].concat());
    assert_eq!(report["problems"], serde_json::json!({}), "{report}");
    let complete = (&report["complete"], &report["asked"], &report["repeated"]);
    assert_eq!(complete, (&1.into(), &1.into(), &0.into()), "{report}");
    let total = "SELECT total_records AS n FROM psa.pncp_extraction_tasks";
    assert_eq!(place.json(&["sql", total])[0]["n"], report["records"], "{report}");
}

/// A run that takes some seconds, once it has stored something.
fn under_way(place: &Place, base: &str) -> Running {
    let process = place.start(&run(base, &[]));
    let begun = until(Duration::from_secs(30), || place.logs().contains("fetching").then_some(()));
    assert!(begun.is_some(), "{}", place.logs());
    std::thread::sleep(Duration::from_millis(700));
    process
}

fn pages(place: &Place) -> u64 {
    let rows = place.json(&["sql", "SELECT count(*) AS n FROM psa.pncp_pages"]);
    rows[0]["n"].as_u64().unwrap()
}

#[test]
fn a_run_ends_with_what_was_stored_and_the_next_asks_for_nothing() {
    let (world, place) = (world(&["--scale", "0.02"]), Place::on_duckdb());
    let planned = place.run(&run(&world.base, &["--dry-run"]));
    assert_eq!(planned.status.code(), Some(0), "{}", said(&planned));
    assert!(said(&planned).contains("1 tasks: at least 1 requests"), "{}", said(&planned));
    assert!(!place.directory.path().join("lavra.duckdb").exists(), "nothing was opened");

    let output = place.run(&run(&world.base, &[]));
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for part in ["tasks     1 complete", "stored ", " records, ", "requests "] {
        assert!(out.contains(part), "{out}");
    }
    assert!(said(&output).contains("next: "), "{}", said(&output));
    assert_eq!(complete(&place, &run(&world.base, &[]))["requests"], 0);
    let planned = place.run(&run(&world.base, &["--dry-run"]));
    let cost = "1 tasks, 0 of them new: at least 0 requests";
    assert!(said(&planned).contains(cost), "{}", said(&planned));
    assert_audited(&place);
    let status = place.run(&["extract", "status", "pncp"]);
    let table = String::from_utf8_lossy(&status.stdout);
    assert!(table.contains("2025-03") && table.contains("modalidade_6"), "{table}");
}

#[test]
fn a_file_that_a_server_holds_is_extracted_into_by_the_server() {
    let (world, place) = (world(&["--scale", "0.02"]), Place::on_duckdb());
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let output = place.run(&run(&world.base, &[]));
    assert_eq!(output.status.code(), Some(0), "{}{}", said(&output), place.logs());
    // As it is told where the command extracts itself.
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains(" complete, 0 partial") && told.contains("requests "), "{told}");
    assert!(said(&output).contains("next: lavra"), "{}", said(&output));
    assert_audited(&place);
    let exported =
        place.json(&["extract", "export", "pncp", "--out", "pncp/lines", "--format", "jsonl"]);
    assert!(exported["rows"].as_u64().unwrap() > 0, "{exported}");
    let file = exported["files"][0]["key"].as_str().unwrap();
    let path = place.directory.path().join("lavra-artefacts/pncp/lines").join(file);
    assert!(path.exists(), "{exported}");
    let elsewhere = place.run(&["extract", "export", "pncp", "--out", "/tmp/elsewhere"]);
    assert!(said(&elsewhere).contains("below its artefacts"), "{}", said(&elsewhere));
}

#[test]
fn stock_duckdb_opens_the_file_and_its_views() {
    let (world, place) = (world(&["--scale", "0.02"]), Place::on_duckdb());
    let summary = complete(&place, &run(&world.base, &[]));
    let script = r#"
import duckdb, json
c = duckdb.connect("lavra.duckdb", read_only=True)
one = lambda sql: c.execute(sql).fetchone()
print(json.dumps({
    "version": duckdb.__version__,
    "tasks": one("SELECT count(*) FROM psa.pncp_extraction_tasks WHERE status = 'COMPLETE'")[0],
    "bodies": one("SELECT sum(json_array_length(response_content, '$.data')) FROM psa.pncp_raw_responses")[0],
    "records": one("SELECT count(*) FROM psa.pncp_contratacoes_publicacao")[0],
    "value": float(one("SELECT sum(valorTotalEstimado) FROM psa.pncp_contratacoes_publicacao")[0]),
    "missing": one("SELECT count(*) FROM psa.pncp_missing_pages")[0],
}, default=int))
"#;
    let python = std::env::var("LAVRA_TEST_PYTHON").expect("run it by cargo xtask test");
    let output = Command::new(python)
        .args(["-c", script])
        .current_dir(place.directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    eprintln!("stock DuckDB {}", seen["version"]);
    assert_eq!((&seen["tasks"], &seen["missing"]), (&1.into(), &0.into()), "{seen}");
    assert_eq!((&seen["bodies"], &seen["records"]), (&summary["records"], &summary["records"]));
    assert!(seen["value"].as_f64().unwrap() > 0.0, "{seen}");
}

#[test]
fn an_audit_waits_for_the_run_that_has_the_file() {
    let world = world(&["--scale", "0.05", "--fault", "latency.fixed_ms=100"]);
    let place = Place::on_duckdb();
    let mut process = under_way(&place, &world.base);
    assert_audited(&place);
    assert!(process.0.wait().unwrap().success(), "{}", place.logs());
    let waiting = "SELECT count(*) AS n FROM kodus_workflow.tasks WHERE status NOT IN ('COMPLETED', 'CANCELLED')";
    assert_eq!(place.json(&["sql", waiting])[0]["n"], 0);
}
