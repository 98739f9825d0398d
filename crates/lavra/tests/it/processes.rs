//! What happens to processes: killed, frozen, with a clock that is wrong.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::Place;

const LONG: &str = r#"{"to": 600, "step_ms": 100}"#;
const SHORT: &str = r#"{"to": 50, "step_ms": 100}"#;

fn is(status: &'static str) -> impl Fn(&serde_json::Value) -> bool {
    move |task| task["status"] == status
}

#[test]
fn a_killed_server_s_task_goes_on_after_a_restart_on_duckdb() {
    let place = Place::on_duckdb();
    let mut server = place.start(&["serve", "--demo-types", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let id = place.create(SHORT);
    place.until(&id, Duration::from_secs(10), is("IN_PROGRESS"));
    server.0.kill().unwrap();
    server.0.wait().unwrap();
    let second = place.start(&["serve", "--demo-types", "--listen", "127.0.0.1:0"]);
    place.until_served(&second);
    let task = place.until(&id, Duration::from_secs(30), is("COMPLETED"));
    assert_eq!((&task["attempts"], &task["retry_count"]), (&2.into(), &1.into()), "{task}");
}

#[test]
fn a_killed_runner_s_task_is_taken_over_within_fifteen_seconds() {
    let place = Place::on_postgres();
    let mut first = place.start(&["runner", "--demo-types"]);
    let id = created(&place, LONG);
    place.until(&id, Duration::from_secs(20), is("IN_PROGRESS"));
    let _second = place.start(&["runner", "--demo-types"]);
    std::thread::sleep(Duration::from_secs(2));
    first.0.kill().unwrap();
    let begun = Instant::now();
    place.until(&id, Duration::from_secs(15), |task| task["attempts"] == 2);
    eprintln!("taken over after {:?}", begun.elapsed());
    assert!(place.logs().contains("taken over"), "the log does not say so");
}

#[test]
fn a_frozen_runner_that_wakes_is_fenced_out() {
    let place = Place::on_postgres();
    let first = place.start(&["runner", "--demo-types"]);
    let id = created(&place, r#"{"to": 80, "step_ms": 100}"#);
    place.until(&id, Duration::from_secs(20), is("IN_PROGRESS"));
    let pid = Pid::from_child(&first.0);
    kill_process(pid, Signal::STOP).unwrap();
    let _second = place.start(&["runner", "--demo-types"]);
    place.until(&id, Duration::from_secs(20), |task| task["attempts"] == 2);
    kill_process(pid, Signal::CONT).unwrap();
    let task = place.until(&id, Duration::from_secs(20), is("COMPLETED"));
    assert_eq!(task["attempts"], 2, "{task}");
    // Whatever the first one still wanted to say, one end was written.
    std::thread::sleep(Duration::from_secs(5));
    let events = place.json(&["task", "events", &id]);
    let ends = events["items"].as_array().unwrap().iter();
    assert_eq!(ends.filter(|event| event["detail"]["action"] == "complete").count(), 1);
    assert_eq!(place.task(&id)["version"], task["version"]);
}

#[test]
fn a_runner_whose_clock_is_an_hour_off_disturbs_nobody() {
    let faketime = std::env::var("LAVRA_TEST_FAKETIME")
        .expect("LAVRA_TEST_FAKETIME is not set: run it by cargo xtask test");
    let place = Place::on_postgres();
    let wrong = [("LD_PRELOAD", faketime.as_str()), ("FAKETIME", "+1h")];
    let _late = place.start_with(&["runner", "--demo-types"], &wrong);
    let _right = place.start(&["runner", "--demo-types"]);
    let first = created(&place, LONG);
    place.until(&first, Duration::from_secs(30), is("IN_PROGRESS"));
    let ids: Vec<String> = (0..6).map(|_| place.create(SHORT)).collect();
    for id in &ids {
        let task = place.until(id, Duration::from_secs(30), is("COMPLETED"));
        assert_eq!(task["attempts"], 1, "taken from a living process: {task}");
        let (created, updated) = (time(&task, "created_at"), time(&task, "updated_at"));
        assert!(
            updated.duration_since(created).as_secs() < 60,
            "a time by the wrong clock: {task}"
        );
    }
    assert_eq!(place.task(&first)["attempts"], 1, "the wrong clock made a process look dead");
}

#[test]
fn a_shutdown_gives_the_task_back_uncounted() {
    let place = Place::on_duckdb();
    let mut server = place.start(&["serve", "--demo-types", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let id = place.create(LONG);
    place.until(&id, Duration::from_secs(10), is("IN_PROGRESS"));
    kill_process(Pid::from_child(&server.0), Signal::TERM).unwrap();
    let status = server.0.wait().unwrap();
    assert!(status.success(), "{status}: {}", place.logs());
    let task = place.task(&id);
    assert_eq!((&task["status"], &task["retry_count"]), (&"PENDING".into(), &0.into()), "{task}");
}

#[test]
fn a_runner_that_is_told_where_says_what_it_counts_and_nothing_else() {
    let place = Place::on_postgres();
    let _runner = place.start(&["runner", "--demo-types", "--metrics", "127.0.0.1:0"]);
    let id = created(&place, SHORT);
    place.until(&id, Duration::from_secs(20), is("COMPLETED"));
    let logs = place.logs();
    let (_, rest) = logs.split_once("counting url=").expect("it says where");
    let (base, _) = rest.split_once("/metrics").unwrap();
    let completed = "lavra_task_attempts_total{type=\"count\",status=\"COMPLETED\"} 1";
    let told = crate::program::until(Duration::from_secs(5), || {
        let (status, text) = get(&format!("{base}/metrics"));
        assert_eq!(status, 200, "{text}");
        text.contains(completed).then_some(text)
    });
    let told = told.expect("the attempt was not counted");
    for line in [
        "lavra_task_seconds_bucket{type=\"count\",le=\"86400\"} 1",
        "lavra_task_fenced_total 0",
        "lavra_database_up 1",
    ] {
        assert!(told.contains(line), "no {line} in {told}");
    }
    assert_eq!(get(&format!("{base}/healthz")).0, 200);
    assert_eq!(get(&format!("{base}/tasks")).0, 404);
}

fn get(url: &str) -> (u16, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    })
}

/// The type is known once a runner has declared it.
fn created(place: &Place, payload: &str) -> String {
    let made = crate::program::until(Duration::from_secs(30), || {
        let args = ["--json", "task", "create", "count", "--payload", payload];
        let output = place.run(&args);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    });
    let task: serde_json::Value = made.expect("no runner has declared the type");
    task["id"].as_str().unwrap().to_owned()
}

fn time(task: &serde_json::Value, name: &str) -> jiff::Timestamp {
    task[name].as_str().unwrap().parse().unwrap()
}
