//! Webhooks as they are typed: real processes, killed for real, and a receiver on loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};

use crate::extraction;
use crate::program::{Place, Running, until};

#[derive(Clone, Debug)]
struct Request {
    delivery: String,
    timestamp: i64,
    signature: String,
    body: Bytes,
}

impl Request {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn is_signed_with(&self, secret: &str) -> bool {
        self.signature == lavra_notify::sign(secret, self.timestamp, &self.body)
    }
}

/// Takes what comes to `/hook`, and has nothing at `/missing`.
struct Receiver {
    base: String,
    requests: Arc<Mutex<Vec<Request>>>,
    _runtime: tokio::runtime::Runtime,
}

impl Receiver {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&requests);
        let take = move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let is_hook = uri.path() == "/hook";
            if is_hook {
                let text = |name: &str| headers[name].to_str().unwrap().to_owned();
                book.lock().unwrap().push(Request {
                    delivery: text("lavra-delivery"),
                    timestamp: text("lavra-timestamp").parse().unwrap(),
                    signature: text("lavra-signature"),
                    body,
                });
            }
            async move { if is_hook { StatusCode::OK } else { StatusCode::NOT_FOUND } }
        };
        runtime.spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
        Self { base, requests, _runtime: runtime }
    }

    fn url(&self) -> String {
        format!("{}/hook?key=MARKER-KEY", self.base)
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// What has come so far, by its event.
    fn events(&self) -> BTreeMap<String, Vec<Request>> {
        let mut events: BTreeMap<String, Vec<Request>> = BTreeMap::new();
        for request in self.requests() {
            let id = request.json()["id"].as_str().unwrap().to_owned();
            events.entry(id).or_default().push(request);
        }
        events
    }
}

fn serve(place: &Place) -> Running {
    let server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    place.until_served(&server);
    server
}

#[test]
fn a_webhook_is_typed_and_its_secret_is_shown_once() {
    let place = Place::on_duckdb();
    let receiver = Receiver::start();
    let add = ["webhook", "add", "ops", "--url", &receiver.url(), "--event", "mission.failed"];
    let added = place.json(&add);
    let secret = added["secret"].as_str().unwrap();
    assert_eq!(place.json(&["webhook", "test", "ops"])["ok"], true);
    assert!(receiver.requests()[0].is_signed_with(secret));

    let mut given = place.command(&["webhook", "change", "ops", "--secret-from-stdin", "--json"]);
    let mut given = given.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    given.stdin.take().unwrap().write_all(b"MARKER-of-our-own\n").unwrap();
    let given = given.wait_with_output().unwrap();
    assert!(given.status.success());
    assert!(!String::from_utf8_lossy(&given.stdout).contains("MARKER"));
    place.json(&["webhook", "test", "ops"]);
    assert!(receiver.requests()[1].is_signed_with("MARKER-of-our-own"));

    let changed = place.json(&["webhook", "change", "ops", "--name", "team", "--deactivate"]);
    assert_eq!((&changed["name"], &changed["active"]), (&json!("team"), &json!(false)));
    assert_eq!(changed["events"], json!(["mission.failed"]));
    let listed = place.run(&["webhook", "list"]);
    let table = String::from_utf8_lossy(&listed.stdout);
    assert!(table.contains("team") && table.contains("mission.failed"), "{table}");
    assert!(!table.contains("MARKER") && !table.contains("/hook") && !table.contains(secret));

    let wrong = place.run(&["webhook", "change", "team"]);
    assert_eq!(wrong.status.code(), Some(2));
    let wrong = place.run(&["webhook", "change", "team", "--event", "x"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("error[invalid_request]"));
    let nowhere = ["webhook", "change", "team", "--url", "http://127.0.0.1:1/MARKER"];
    place.json(&nowhere);
    let failed = place.run(&["webhook", "test", "team"]);
    assert_eq!(failed.status.code(), Some(3), "a ping that was not taken");
    assert!(place.run(&["webhook", "remove", "team"]).status.success());
    assert_eq!(place.json(&["webhook", "list"])["items"], json!([]));
}

/// Killed in between, each event comes, and what comes twice says so.
#[test]
fn a_server_that_is_killed_again_and_again_tells_every_event() {
    let place = Place::on_duckdb();
    let receiver = Receiver::start();
    place.json(&["webhook", "add", "ops", "--url", &receiver.url()]);
    let mut server = serve(&place);
    let missing = json!({ "url": format!("{}/missing", receiver.base) }).to_string();
    let mut tasks = BTreeSet::new();
    for round in 0..4 {
        for _ in 0..5 {
            let task = place.json(&["task", "create", "http", "--payload", &missing]);
            tasks.insert(task["id"].as_str().unwrap().to_owned());
        }
        // Sooner or later after the tasks have failed and the watcher has looked.
        std::thread::sleep(Duration::from_millis(300 * round));
        server.0.kill().unwrap();
        server.0.wait().unwrap();
        server = serve(&place);
    }
    let told = |events: &BTreeMap<String, Vec<Request>>| -> BTreeSet<String> {
        let tasks = events.values().map(|requests| requests[0].json()["data"]["task_id"].clone());
        tasks.map(|task| task.as_str().unwrap_or_default().to_owned()).collect()
    };
    let all = until(Duration::from_secs(60), || (told(&receiver.events()) == tasks).then_some(()));
    let events = receiver.events();
    assert!(all.is_some(), "{} of {}: {}", events.len(), tasks.len(), place.logs());
    assert_eq!(events.len(), tasks.len(), "an event has two ids");
    for requests in events.values() {
        let deliveries: BTreeSet<&str> = requests.iter().map(|r| r.delivery.as_str()).collect();
        assert_eq!(deliveries.len(), 1, "one event is one delivery");
        assert!(requests.iter().all(|request| request.json() == requests[0].json()));
    }
    assert!(!place.logs().contains("MARKER"), "the address stands in the log");
}

#[test]
fn a_receiver_that_never_answers_holds_up_no_other_task() {
    let place = Place::on_duckdb();
    // Connections are taken, and that is all.
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", deaf.local_addr().unwrap());
    place.json(&["webhook", "add", "deaf", "--url", &url]);
    let server = place.start(&["serve", "--listen", "127.0.0.1:0", "--concurrency", "1"]);
    place.until_served(&server);
    let receiver = Receiver::start();
    let http = |path: &str| {
        let payload = json!({ "url": format!("{}{path}", receiver.base) }).to_string();
        let task = place.json(&["task", "create", "http", "--payload", &payload]);
        task["id"].as_str().unwrap().to_owned()
    };
    http("/missing");
    let delivery = || {
        let list = place.json(&["task", "list", "--type", "webhook"]);
        let found = list["items"].as_array().unwrap().first()?.clone();
        (found["status"] == "IN_PROGRESS").then_some(())
    };
    assert!(until(Duration::from_secs(20), delivery).is_some(), "{}", place.logs());
    // There is one turn for the tasks of this process, and the delivery has not taken it.
    let last = http("/missing");
    place.until(&last, Duration::from_secs(5), |task| task["status"] == "FAILED");
}

#[test]
fn a_run_that_ends_is_told_with_what_it_has_done() {
    let place = Place::on_duckdb();
    let receiver = Receiver::start();
    let events = ["--event", "extraction.complete", "--event", "extraction.short"];
    place.json(&[&["webhook", "add", "ops", "--url", &receiver.url()], &events[..]].concat());
    let world = extraction::world(&[]);
    // By the command alone: nobody is there to tell.
    let run = place.json(&extraction::run(&world.base, &[]));
    assert!(receiver.requests().is_empty());
    let _server = serve(&place);
    let told = until(Duration::from_secs(30), || receiver.requests().first().cloned());
    let told = told.unwrap_or_else(|| panic!("nobody was told: {}", place.logs())).json();
    assert_eq!(told["type"], "extraction.complete");
    assert_eq!(told["data"]["source"], "pncp");
    assert_eq!(
        (&told["data"]["from"], &told["data"]["to"]),
        (&json!("2025-03"), &json!("2025-03"))
    );
    let counts = &told["data"]["counts"];
    assert_eq!(counts["pages"], run["summary"]["pages"], "{told} {run}");
    assert_eq!((&counts["complete"], &counts["partial"]), (&json!(1), &json!(0)), "{told}");
}
