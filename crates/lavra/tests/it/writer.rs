//! `lavra writer` as it is typed: a real process that is asked, killed and told to end.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{Place, Running, until};

const KEY: &str = "marker-api-key-7001";
const HEADER: &str = "marker-header-7002";
const SIGNATURE: &str = "marker-signature-7003";

/// Where the writers of this place say that they listen.
fn places(place: &Place) -> Vec<String> {
    let logs = place.logs();
    let lines = logs.lines().filter(|line| line.contains(" writing"));
    let urls = lines.filter_map(|line| {
        let (_, rest) = line.split_once("http://")?;
        let is_of_it = |letter: &char| letter.is_ascii_digit() || ".:".contains(*letter);
        Some(format!("http://{}", rest.chars().take_while(is_of_it).collect::<String>()))
    });
    urls.collect()
}

fn start(place: &Place) -> (Running, String) {
    let before = places(place);
    let args = ["writer", "--listen", "127.0.0.1:0", "--allow-private", "127.0.0.1"];
    let running = place.start_with(&args, &[("LAVRA_WRITER_API_KEY", KEY), ("LAVRA_LOG", "debug")]);
    let url = until(Duration::from_secs(20), || {
        places(place).into_iter().find(|url| !before.contains(url))
    });
    (running, url.unwrap_or_else(|| panic!("no writer: {}", place.logs())))
}

fn ask(method: reqwest::Method, url: &str, body: Option<&Value>) -> (u16, Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = client.request(method, url).header("x-api-key", KEY);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    })
}

/// Serves one array of ads, slowly, to everybody.
fn slow_source(count: usize) -> String {
    let ads: Vec<Value> =
        (0..count).map(|n| json!({ "id": format!("ad{n}"), "text": "x".repeat(300) })).collect();
    let body = json!({ "ads": ads }).to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let url = format!("http://{at}/ads.json?signature={SIGNATURE}");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let body = body.clone();
            std::thread::spawn(move || {
                let mut socket = socket;
                let _head = socket.read(&mut [0; 4096]);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                let _gone = socket.write_all(head.as_bytes());
                for piece in body.as_bytes().chunks(body.len() / 30 + 1) {
                    if socket.write_all(piece).is_err() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
    });
    url
}

fn end_of(base: &str, id: &str) -> Value {
    let url = format!("{base}/status/{id}");
    let ended = until(Duration::from_secs(25), || {
        let (status, job) = ask(reqwest::Method::GET, &url, None);
        assert_eq!(status, 200, "{job}");
        (job["status"] != "processing").then_some(job)
    });
    ended.unwrap_or_else(|| panic!("{id} never ends"))
}

/// All that is left of a run: the files, and the tables of a server with bytes that can be read.
fn everything(place: &Place) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(place.directory.path()).unwrap().flatten() {
        if entry.path().is_file() {
            all.extend(std::fs::read(entry.path()).unwrap());
        }
    }
    if place.database.starts_with("postgres") {
        let mut dump = Command::new("pg_dump");
        let dump = dump.arg(&place.database).env("PGOPTIONS", "-c bytea_output=escape");
        let dump = dump.output().unwrap();
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        all.extend(dump.stdout);
    }
    all
}

fn assert_sealed(place: &Place) {
    let all = everything(place);
    let holds = |text: &str| all.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("/ads.json"), "the job is not there");
    for secret in [KEY, HEADER, SIGNATURE] {
        assert!(!holds(secret), "{secret} can be read: {}", place.logs());
    }
}

fn a_killed_writer_s_job_is_ended_by_the_next_one(place: &Place) {
    place.run(&["migrate"]);
    place.run(&["mission", "list"]);
    let (mut first, base) = start(place);
    let order = json!({
        "job_id": "550e8400-e29b-41d4-a716-446655440000",
        "config": { "table": "ads", "schema": "public", "operation": "upsert", "conflict_key": "id" },
        "source": {
            "type": "url", "url": slow_source(2000), "json_path": "ads",
            "headers": { "Authorization": format!("Bearer {HEADER}") },
        },
    });
    let (status, answer) = ask(reqwest::Method::POST, &format!("{base}/process"), Some(&order));
    assert_eq!((status, &answer["status"]), (200, &json!("processing")), "{answer}");
    std::thread::sleep(Duration::from_secs(1));
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    // The job waits, with what is sealed for it.
    assert_sealed(place);
    let (mut second, base) = start(place);
    let job = end_of(&base, "550e8400-e29b-41d4-a716-446655440000");
    assert_eq!(job["status"], "completed", "{job}\n{}", place.logs());
    assert_eq!(job["progress"]["success_count"], 2000);
    let pid = Pid::from_child(&second.0);
    kill_process(pid, Signal::TERM).unwrap();
    assert!(second.0.wait().unwrap().success(), "{}", place.logs());
    let counted = place.json(&["sql", "SELECT count(*) AS n FROM public.ads"]);
    assert!(counted.to_string().contains("2000"), "{counted}");
    assert_sealed(place);
}

#[test]
fn a_killed_writer_s_job_is_ended_by_the_next_one_on_duckdb() {
    a_killed_writer_s_job_is_ended_by_the_next_one(&Place::on_duckdb());
}

#[test]
fn a_killed_writer_s_job_is_ended_by_the_next_one_on_postgres() {
    // Without a key for sealing, the headers would be gone with the process.
    let place = Place::on_postgres();
    let key = place.run(&["secret", "generate-key"]);
    let key = String::from_utf8(key.stdout).unwrap();
    let place = place.with_variable("LAVRA_SECRET_KEY", key.trim());
    a_killed_writer_s_job_is_ended_by_the_next_one(&place);
}

#[test]
fn a_writer_listens_beyond_this_machine_only_with_a_key() {
    let place = Place::on_duckdb();
    let refused = place.run(&["writer", "--listen", "0.0.0.0:0"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("LAVRA_WRITER_API_KEY"), "{said}");
}

#[test]
fn a_writer_on_a_file_that_is_held_says_by_whom() {
    let place = Place::on_duckdb();
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    let refused = place.run(&["writer", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("database_held") && said.contains("in use by"), "{said}");
}
