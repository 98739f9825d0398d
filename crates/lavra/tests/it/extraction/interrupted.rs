//! Runs that are stopped or killed, and go on.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{MONTH, assert_audited, assert_true, complete, pages, run, under_way, world};
use crate::program::{Place, until};

#[test]
fn ctrl_c_drains_and_the_next_run_goes_on_from_there() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=200"]);
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
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=200"]);
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
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=200"]);
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

/// The killed run is gone on with: at once, and by a command that tells what it did.
#[test]
fn a_killed_run_is_the_run_that_goes_on() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=200"]);
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
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=200"]);
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
fn ctrl_c_twice_stops_at_once_and_loses_nothing_that_was_stored() {
    let world = world(&["--scale", "0.1", "--fault", "latency.fixed_ms=8000"]);
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
