//! Extraction as it is typed: against a world on loopback, with bad input, bad servers, full disks
//! and Ctrl-C.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
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

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_opened() {
    let place = Place::on_duckdb();
    let write = |name: &str, text: &str| {
        std::fs::write(place.directory.path().join(name), text).unwrap();
    };
    let own = "name = \"shop\"\nbase_url = \"http://127.0.0.1:1\"\n[request]\nfrom = \"a\"\n\
               to = \"b\"\npage = \"p\"\n[response]\nrecords = \"/r\"\ntotal = \"/t\"\n\
               [[endpoint]]\nname = \"orders\"\npath = \"/o\"\nfirst_month = \"2024-01\"\n";
    write("typo.toml", &format!("{own}page_sise = 10\n"));
    let cap = format!("{own}page_size = 600\npage_size_range = [10, 500]\n");
    write("cap.toml", &cap);
    let months = |from: &'static str, to: &'static str| {
        vec!["extract", "run", "pncp", "--from", from, "--to", to]
    };
    let cases: &[(Vec<&str>, &[&str])] = &[
        (months("2025-03", "2025-02"), &["ends before it begins"]),
        (months("2025-13", "2025-13"), &["--from", "2025-13", "is no month"]),
        (months("March", "2025-03"), &["is no month"]),
        (months("2019-01", "2019-12"), &["nothing before 2021-08"]),
        (months("2999-01", "2999-02"), &["has not begun yet"]),
        (
            [months("2025-01", "2025-01"), vec!["--endpoint", "contrato"]].concat(),
            &["no endpoint \"contrato\"", "contratos_publicacao"],
        ),
        (vec!["extract", "run", "pnpc", "--from", "2025-01", "--to", "2025-01"], &["pncp"]),
        (
            [months("2025-01", "2025-01"), vec!["--base-url", "ftp://x"]].concat(),
            &["ftp://x", "no http URL"],
        ),
        (vec!["extract", "check", "typo.toml"], &["typo.toml:14", "page_sise", "page_size"]),
        (
            vec!["extract", "check", "cap.toml"],
            &["cap.toml:14: page_size 600 is outside of 10 to 500"],
        ),
        (vec!["extract", "check", "none.toml"], &["none.toml"]),
        (
            vec!["extract", "run", "--source", "cap.toml", "--from", "2025-01", "--to", "2025-01"],
            &["cap.toml", "line 14", "outside of 10 to 500"],
        ),
        (vec!["extract", "audit", "pncp", "--endpoint", "x"], &["no endpoint \"x\""]),
        (vec!["extract", "export", "pncp", "--out", "o", "--from", "x"], &["is no month"]),
        (vec!["extract", "retry", "nothing"], &["no source \"nothing\""]),
    ];
    for (args, says) in cases {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        for part in *says {
            assert!(
                said(&output).contains(part),
                "{args:?} does not say {part:?}: {}",
                said(&output)
            );
        }
    }
    assert!(!place.directory.path().join("lavra.duckdb").exists(), "nothing was opened");
    for command in [&["audit", "pncp"][..], &["status", "pncp"], &["export", "pncp", "--out", "x"]]
    {
        let looked = place.run(&[&["extract"], command].concat());
        for part in [
            "error[source_not_found]",
            "nothing of \"pncp\" was extracted here",
            "`lavra extract run pncp --from MONTH --to MONTH` does it",
        ] {
            assert!(said(&looked).contains(part), "{command:?} does not say {part:?}: {looked:?}");
        }
    }
    let own = place.run(&["extract", "status", "mine"]);
    assert!(said(&own).contains("extract run --source FILE --from MONTH"), "{own:?}");
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
fn a_file_that_something_else_holds_says_so() {
    let place = Place::on_duckdb();
    place.json(&["sql", "SELECT 1"]);
    let python = std::env::var("LAVRA_TEST_PYTHON").expect("run it by cargo xtask test");
    let script = "import duckdb, sys; c = duckdb.connect('lavra.duckdb'); print('held', flush=True); \
                  sys.stdin.read()";
    let mut holder = Command::new(python)
        .args(["-c", script])
        .current_dir(place.directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = [0; 4];
    holder.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
    let output = place.run(&run("http://127.0.0.1:1", &[]));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("error[database_held]"), "{}", said(&output));
}

#[test]
fn tables_of_a_newer_version_are_left_alone() {
    let (world, place) = (world(&["--scale", "0.01"]), Place::on_postgres());
    complete(&place, &run(&world.base, &[]));
    let newer = "INSERT INTO kodus_workflow.schema_migrations (id, description)
                 VALUES ('pncp:999', 'of tomorrow')";
    let args = ["--no-psqlrc", "--quiet", "--command", newer, &place.database];
    assert!(Command::new("psql").args(args).status().unwrap().success());
    let output = place.run(&run(&world.base, &["--refresh"]));
    assert_ne!(output.status.code(), Some(0));
    assert!(said(&output).contains("pncp:999"), "{}", said(&output));
}

/// Answers everything with the same bytes.
fn server(answer: impl Fn(&mut std::net::TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), answer) = (stream, answer.clone()) else { continue };
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|read| read > 0) {
                    answer(&mut stream);
                }
            });
        }
    });
    base
}

#[test]
fn a_base_url_that_answers_html_is_told_and_nothing_is_stored_as_done() {
    let base = server(|stream| {
        let body = "<!DOCTYPE html><html><h1>It works!</h1></html>";
        let _gone = write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
    });
    let place = Place::on_duckdb();
    let process = place.start(&run(&base, &[]));
    let told = until(Duration::from_secs(60), || place.logs().contains("is away").then_some(()));
    assert!(told.is_some(), "{}", place.logs());
    assert!(place.logs().contains("HTML"), "{}", place.logs());
    kill_process(Pid::from_child(&process.0), Signal::INT).unwrap();
    let mut process = process;
    assert_eq!(process.0.wait().unwrap().code(), Some(130), "{}", place.logs());
    let rows = place.json(&["sql", "SELECT count(*) AS n FROM psa.pncp_pages"]);
    assert_eq!(rows[0]["n"], 0, "{rows}");
    let rows = place.json(&["sql", "SELECT status FROM psa.pncp_extraction_tasks"]);
    assert_eq!(rows[0]["status"], "PENDING", "{rows}");
}

#[test]
fn bodies_of_200_mb_are_refused_and_never_in_memory() {
    let base = server(|stream| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let chunk = [b"10000\r\n", vec![b' '; 0x10000].as_slice(), b"\r\n"].concat();
        let _gone = stream.write_all(head.as_bytes());
        for _ in 0..(200 << 20) / 0x10000 {
            if stream.write_all(&chunk).is_err() {
                return;
            }
        }
        let _gone = stream.write_all(b"0\r\n\r\n");
    });
    let place = Place::on_duckdb();
    let args = [
        &["extract", "run", "pncp"],
        &MONTH[..],
        &["--endpoint", "contratacoes_publicacao", "--base-url", &base],
    ]
    .concat();
    let mut process = place.start(&args);
    let status = format!("/proc/{}/status", process.0.id());
    let mut most = 0;
    let ended = until(Duration::from_secs(120), || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
        most = most.max(kb.unwrap_or(0) / 1024);
        process.0.try_wait().unwrap()
    });
    let code = ended.unwrap_or_else(|| panic!("it goes on: {}", place.logs())).code();
    assert_eq!(code, Some(3), "{}", place.logs());
    eprintln!("peak RSS {most} MB");
    assert!(most > 0 && most < 300, "{most} MB");
    let rows =
        place.json(&["sql", "SELECT DISTINCT status, last_error FROM psa.pncp_extraction_tasks"]);
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows[0]["status"], "FAILED", "{rows}");
    assert!(rows[0]["last_error"].as_str().unwrap().contains("max_body"), "{rows}");
}

/// DuckDB has each value in memory a few times over, and is given little memory here.
#[test]
fn a_body_of_40_mb_is_stored() {
    let world = world(&["--pages", "1", "--page-bytes", "40000000"]);
    let place = Place::on_duckdb();
    let args = [
        &["extract", "run", "pncp"],
        &["--from", "2024-07", "--to", "2024-07"][..],
        &["--endpoint", "contratacoes_publicacao_modalidade_6", "--base-url", &world.base],
    ]
    .concat();
    place.json(&args);
    let rows = place.json(&[
        "sql",
        "SELECT length(response_content) AS size FROM psa.pncp_raw_responses WHERE outcome = 'data'",
    ]);
    assert!(rows[0]["size"].as_u64().unwrap() > 35_000_000, "{rows}");
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
fn ctrl_c_drains_and_the_next_run_goes_on_from_there() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=100"]);
    let place = Place::on_duckdb();
    let mut process = under_way(&place, &world.base);
    kill_process(Pid::from_child(&process.0), Signal::INT).unwrap();
    assert_eq!(process.0.wait().unwrap().code(), Some(130), "{}", place.logs());
    // All of what was typed: without its address, it would be the portal's.
    let again =
        format!("to go on: lavra --database lavra.duckdb {}", run(&world.base, &[]).join(" "));
    assert!(place.logs().contains(&again), "{}", place.logs());
    let rows = place.json(&["sql", "SELECT status FROM psa.pncp_extraction_tasks"]);
    assert_eq!(rows[0]["status"], "PARTIAL", "{rows}");
    let had = pages(&place);
    let summary = complete(&place, &run(&world.base, &[]));
    let all = pages(&place);
    assert!(had > 0 && all > had, "{had} of {all}");
    assert_eq!(summary["requests"], all - had, "no page that was there is asked for again");
    assert_audited(&place);
}

#[test]
fn ctrl_c_stops_a_run_that_a_server_does() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=100"]);
    let place = Place::on_duckdb();
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let mut process = place.start(&run(&world.base, &[]));
    let begun =
        until(Duration::from_secs(30), || place.logs().contains("Fetching pages").then_some(()));
    assert!(begun.is_some(), "{}", place.logs());
    kill_process(Pid::from_child(&process.0), Signal::INT).unwrap();
    assert_eq!(process.0.wait().unwrap().code(), Some(130), "{}", place.logs());
    assert!(place.logs().contains("to go on: lavra"), "{}", place.logs());
    let drained = until(Duration::from_secs(30), || {
        let rows = place.json(&["sql", "SELECT status FROM psa.pncp_extraction_tasks"]);
        (rows[0]["status"] == "PARTIAL").then_some(())
    });
    assert!(drained.is_some(), "{}", place.logs());
    let runs =
        place.json(&["sql", "SELECT status FROM kodus_workflow.tasks WHERE type = 'extract'"]);
    assert_eq!(runs[0]["status"], "CANCELLED", "{runs}");
}

/// The task is the run: what is retried goes on from the table, and is asked for by nobody twice.
#[test]
fn a_run_that_was_stopped_goes_on_when_its_task_is_retried() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=100"]);
    let place = Place::on_duckdb();
    let mut process = under_way(&place, &world.base);
    kill_process(Pid::from_child(&process.0), Signal::INT).unwrap();
    assert_eq!(process.0.wait().unwrap().code(), Some(130), "{}", place.logs());
    let had = pages(&place);
    let runs = place.json(&["sql", "SELECT id, status FROM kodus_workflow.tasks"]);
    assert_eq!(runs[0]["status"], "CANCELLED", "{runs}");
    let id = runs[0]["id"].as_str().unwrap();
    let retried = place.json(&["task", "retry", id]);
    assert_eq!(retried["status"], "PENDING", "{retried}");
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let is_over = |task: &Value| task["status"] == "COMPLETED" || task["status"] == "FAILED";
    let done = place.until(id, Duration::from_secs(60), is_over);
    assert_eq!(done["status"], "COMPLETED", "{done}");
    let summary = &done["metadata"]["summary"];
    assert_eq!(summary["requests"], pages(&place) - had, "{done}");
    assert_true(&place, &world.base);
}

/// A day is how long others wait with what has failed, and not who says that it is to be tried again.
#[test]
fn what_has_failed_is_taken_up_when_the_task_of_its_run_is_retried() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let base = server(move |stream| {
        let answer = match counted.fetch_add(1, Ordering::Relaxed) {
            0 => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
            _ => "HTTP/1.1 204 No Content\r\n\r\n",
        };
        let _gone = stream.write_all(answer.as_bytes());
    });
    let place = Place::on_duckdb();
    for _ in 0..2 {
        let output = place.run(&run(&base, &[]));
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the next run waits for a day");
    let failed = "SELECT id FROM kodus_workflow.tasks WHERE status = 'FAILED' LIMIT 1";
    let runs = place.json(&["sql", failed]);
    let id = runs[0]["id"].as_str().unwrap();
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    place.json(&["task", "retry", id]);
    let is_over = |task: &Value| task["status"] == "COMPLETED" || task["status"] == "FAILED";
    let done = place.until(id, Duration::from_secs(60), is_over);
    assert_eq!(done["status"], "COMPLETED", "{done}");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

/// The killed run is gone on with: at once, and by a command that tells what it did.
#[test]
fn a_killed_run_is_the_run_that_goes_on() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=100"]);
    let place = Place::on_duckdb();
    let mut process = under_way(&place, &world.base);
    process.0.kill().unwrap();
    process.0.wait().unwrap();
    let had = pages(&place);
    let begun = std::time::Instant::now();
    let summary = complete(&place, &run(&world.base, &[]));
    let all = pages(&place);
    assert!(had > 0 && all > had, "{had} of {all}");
    assert_eq!(
        (&summary["pages"], &summary["requests"]),
        (&(all - had).into(), &(all - had).into())
    );
    assert!(begun.elapsed() < Duration::from_secs(9), "it waited for the dead one");
    let runs = place.json(&["sql", "SELECT status, attempts FROM kodus_workflow.tasks"]);
    assert_eq!(runs, serde_json::json!([{ "status": "COMPLETED", "attempts": 2 }]));
    assert_audited(&place);
}

#[test]
fn another_order_does_not_go_on_with_a_killed_run() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=100"]);
    let place = Place::on_duckdb();
    let mut process = under_way(&place, &world.base);
    process.0.kill().unwrap();
    process.0.wait().unwrap();
    let other = ["--endpoint", "contratacoes_publicacao_modalidade_8", "--base-url", &world.base];
    let summary = complete(&place, &[&["extract", "run", "pncp"], &MONTH[..], &other].concat());
    assert_eq!(summary["complete"], 1, "{summary}");
    let runs = place.json(&["sql", "SELECT count(*) AS n FROM kodus_workflow.tasks"]);
    assert_eq!(runs[0]["n"], 2, "{runs}");
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

#[test]
fn what_has_failed_is_taken_up_by_the_command_that_is_told() {
    let base = server(|stream| {
        let _gone = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let output = Place::on_duckdb().run(&run(&base, &[]));
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let again = run(&base, &[]).join(" ").replace("extract run", "extract retry");
    assert!(
        said(&output).contains(&format!("to go on: lavra --database lavra.duckdb {again}")),
        "{}",
        said(&output)
    );
}

#[test]
fn the_status_of_what_is_not_there_is_an_error() {
    let (world, place) = (world(&["--scale", "0.01"]), Place::on_duckdb());
    complete(&place, &run(&world.base, &[]));
    let status = |more: &[&str]| place.run(&[&["extract", "status", "pncp"], more].concat());
    let whole = status(&["--endpoint", ONE[1]]);
    assert!(String::from_utf8_lossy(&whole.stdout).contains(ONE[1]), "{whole:?}");
    let base = status(&["--endpoint", "contratacoes_publicacao"]);
    assert_eq!(base.stdout, whole.stdout, "without the value of its fan-out");
    let output = status(&["--from", "2025-03", "--to", "2025-02"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let output = status(&["--endpoint", "blah"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains(ONE[1]), "{}", said(&output));
}

#[test]
fn ctrl_c_twice_stops_at_once_and_loses_nothing_that_was_stored() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=3000"]);
    let place = Place::on_duckdb();
    let process = place.start(&run(&world.base, &[]));
    let begun = until(Duration::from_secs(30), || place.logs().contains("fetching").then_some(()));
    assert!(begun.is_some(), "{}", place.logs());
    let (pid, mut process) = (Pid::from_child(&process.0), process);
    kill_process(pid, Signal::INT).unwrap();
    let told =
        until(Duration::from_secs(10), || place.logs().contains("again to stop").then_some(()));
    assert!(told.is_some(), "{}", place.logs());
    kill_process(pid, Signal::INT).unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(process.0.wait().unwrap().code(), Some(130), "{}", place.logs());
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(place.logs().contains("stopped at once"), "{}", place.logs());
    assert_eq!(pages(&place), 1, "what was discovered");
    world.without_faults();
    complete(&place, &run(&world.base, &[]));
    assert_true(&place, &world.base);
}

#[test]
fn a_full_disk_holds_an_extraction_up_and_loses_nothing() {
    let world = world(&["--scale", "0.3", "--fault", "latency.fixed_ms=20"]);
    let place = Place::on_duckdb();
    let mut command = place.command_on_a_small_disk(160, &run(&world.base, &["--json"]));
    command
        .stdout(std::fs::File::create(place.directory.path().join("out")).unwrap())
        .stderr(std::fs::File::create(place.directory.path().join("run.log")).unwrap());
    let mut process = Running(command.spawn().unwrap());
    let inside = format!("/proc/{}/root{}", process.0.id(), place.directory.path().display());
    let inside = PathBuf::from(inside);
    let file = inside.join("lavra.duckdb");
    assert!(until(Duration::from_secs(30), || file.exists().then_some(())).is_some());
    // The disk is gone with the command, but for those who have something of it open.
    let disk = std::fs::File::open(&inside).unwrap();
    let filler = inside.join("filler");
    assert!(std::fs::write(&filler, vec![7; 200 << 20]).is_err(), "it is not full");
    let told =
        until(Duration::from_secs(60), || place.logs().contains("not stored yet").then_some(()));
    assert!(told.is_some(), "{}", place.logs());
    assert!(place.logs().contains("disk"), "{}", place.logs());
    assert!(process.0.try_wait().unwrap().is_none(), "it ended: {}", place.logs());
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(process.0.wait().unwrap().code(), Some(0), "{}", place.logs());
    let out = std::fs::read_to_string(place.directory.path().join("out")).unwrap();
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["summary"]["complete"], 1, "{answer}");
    let disk = format!("/proc/self/fd/{}", disk.as_raw_fd());
    for entry in std::fs::read_dir(disk).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), place.directory.path().join(entry.file_name())).unwrap();
        }
    }
    assert_true(&place, &world.base);
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
fn an_export_goes_to_a_bucket() {
    let (world, place) = (world(&["--scale", "0.02"]), Place::on_duckdb());
    let summary = complete(&place, &run(&world.base, &[]));
    let python = std::env::var("LAVRA_TEST_PYTHON").expect("run it by cargo xtask test");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let port = port.to_string();
    let server = Command::new(&python)
        .args(["-m", "moto.server", "--host", "127.0.0.1", "--port", &port])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Running(server);
    let endpoint = format!("http://127.0.0.1:{port}");
    let variables = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT", &endpoint),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    let boto = |script: &str| {
        let script = format!(
            "import boto3, json; s3 = boto3.client('s3', endpoint_url='{endpoint}'); {script}"
        );
        let output = Command::new(&python).args(["-c", &script]).envs(variables).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let made = until(Duration::from_secs(60), || boto("s3.create_bucket(Bucket='lake')"));
    assert!(made.is_some(), "no bucket");
    for format in ["parquet", "csv", "jsonl"] {
        let args = [
            "extract",
            "export",
            "pncp",
            "--out",
            "s3://lake/raw/pncp",
            "--format",
            format,
            "--json",
        ];
        let output = place.command(&args).envs(variables).output().unwrap();
        assert!(output.status.success(), "{format}: {}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["rows"], summary["records"], "{report}");
    }
    let listed = boto(
        "print(json.dumps([[o['Key'], o['Size']] for o in s3.list_objects_v2(Bucket='lake')['Contents']]))",
    );
    let listed: Vec<(String, u64)> = serde_json::from_str(&listed.unwrap()).unwrap();
    let keys: Vec<&str> = listed.iter().map(|(key, _)| key.as_str()).collect();
    let key = "raw/pncp/contratacoes_publicacao/month=2025-03/contratacoes_publicacao-2025-03";
    assert_eq!(keys, ["csv", "jsonl", "parquet"].map(|format| format!("{key}.{format}")));
    assert!(listed.iter().all(|(_, size)| *size > 1000), "{listed:?}");
    let lines = boto(&format!(
        "print(len(s3.get_object(Bucket='lake', Key='{key}.jsonl')['Body'].read().splitlines()))"
    ));
    assert_eq!(lines.unwrap().trim(), summary["records"].to_string());
}

#[test]
fn a_runner_helps_with_the_run_of_another_process() {
    let world = world(&["--scale", "0.3", "--fault", "latency.fixed_ms=150"]);
    let place = Place::on_postgres();
    let _runner = place.start(&["runner", "--allow-private"]);
    let args = [
        &["extract", "run", "pncp"],
        &MONTH[..],
        &["--endpoint", "contratacoes_publicacao", "--base-url", &world.base],
    ]
    .concat();
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let helped = until(Duration::from_secs(10), || {
        place.logs().contains("helped with an extraction").then_some(())
    });
    assert!(helped.is_some(), "{} {}", said(&output), place.logs());
    assert_audited(&place);
    assert_eq!(complete(&place, &args)["requests"], 0);
}

#[test]
fn a_run_is_of_who_was_told_to_run_it_and_others_keep_off_where_they_may_not_call() {
    let world = world(&["--scale", "0.3", "--fault", "latency.fixed_ms=150"]);
    let place = Place::on_postgres();
    let _runners = [place.start(&["runner"]), place.start(&["runner"])];
    let awake = place.json(&["task", "create", "cleanup"]);
    place.until(awake["id"].as_str().unwrap(), Duration::from_secs(20), |task| {
        task["status"] == "COMPLETED"
    });
    let args = [
        &["extract", "run", "pncp"],
        &MONTH[..],
        &["--endpoint", "contratacoes_publicacao", "--base-url", &world.base],
    ]
    .concat();
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(0), "{} {}", said(&output), place.logs());
    let logs = place.logs();
    assert!(!logs.contains("help"), "{logs}");
    assert_audited(&place);
}
