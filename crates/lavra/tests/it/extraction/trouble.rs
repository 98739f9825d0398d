//! Servers that answer nonsense or too much, and a disk that is full.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{MONTH, assert_true, run, said, world};
use crate::program::{Place, Running, until};

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
    // Seven requests, with waits that double between them: 32 to 63 seconds.
    let told = until(Duration::from_secs(120), || place.logs().contains("is away").then_some(()));
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

#[test]
fn a_full_disk_holds_an_extraction_up_and_loses_nothing() {
    let world = world(&["--scale", "0.3", "--fault", "latency.fixed_ms=60"]);
    let place = Place::on_duckdb();
    let mut command = place.command_on_a_small_disk(160, &run(&world.base, &[]));
    command
        .stdout(std::fs::File::create(place.directory.path().join("out")).unwrap())
        .stderr(std::fs::File::create(place.directory.path().join("run.log")).unwrap());
    let mut process = Running(command.spawn().unwrap());
    let inside = format!("/proc/{}/root{}", process.0.id(), place.directory.path().display());
    let inside = PathBuf::from(inside);
    let begun = until(Duration::from_secs(30), || place.logs().contains("fetching").then_some(()));
    assert!(begun.is_some(), "{}", place.logs());
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
    let told = out + &place.logs();
    assert!(told.contains("1 complete, 0 partial, 0 failed"), "{told}");
    let disk = format!("/proc/self/fd/{}", disk.as_raw_fd());
    for entry in std::fs::read_dir(disk).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), place.directory.path().join(entry.file_name())).unwrap();
        }
    }
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
