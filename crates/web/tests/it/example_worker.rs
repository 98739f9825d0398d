//! `examples/worker.py`, as a person would run it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lavra_web::access::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::server::settings;
use crate::support::{Client, Place, Server, until};

const PATIENCE: Duration = Duration::from_secs(20);

struct Python(Child);

impl Python {
    fn start(server: &Server, pause: &str) -> Self {
        Self::start_with(server, pause, "")
    }

    fn start_with(server: &Server, pause: &str, key: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/worker.py");
        let mut command = Command::new("python3");
        command.arg(script).args(["--server", &server.base, "--pause", pause]);
        // A proxy of the machine is no way to the loopback.
        command
            .env("NO_PROXY", "*")
            .env("LAVRA_API_KEY", key)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        Self(command.spawn().expect("python3 is missing: run it by cargo xtask test"))
    }

    /// SIGTERM; the exit code.
    async fn terminate(mut self) -> Option<i32> {
        let pid = self.0.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await.unwrap();
        assert!(sent.success());
        let ended = tokio::time::timeout(PATIENCE, self.0.wait()).await;
        ended.expect("it does not end").unwrap().code()
    }
}

fn words(count: usize) -> Value {
    json!({ "text": vec!["word"; count].join(" ") })
}

async fn until_status(client: &Client, id: &str, status: &str) -> Value {
    until(status, PATIENCE, || async {
        let task = client.task(id).await;
        (task["status"] == status).then_some(task)
    })
    .await
}

/// The type becomes known by the worker's first claim.
async fn until_known(server: &Server) {
    until("the worker's first claim", PATIENCE, || async {
        let types = server.get("/types").await.expect(200);
        types.to_string().contains("wordcount").then_some(())
    })
    .await;
}

#[tokio::test]
async fn it_completes_tasks_with_progress_and_leaves_on_sigterm() {
    let server = Server::file().await.kept();
    let python = Python::start(&server, "0");
    until_known(&server).await;
    let mut ids = Vec::new();
    for count in [0, 1, 7, 100] {
        ids.push((count, server.create("wordcount", &words(count)).await));
    }
    for (count, id) in &ids {
        until_status(&server, id, "COMPLETED").await;
        let result = server.get(&format!("/tasks/{id}/result")).await.expect(200);
        assert_eq!(result["payload"], json!({"words": count}));
    }
    let events = server.get(&format!("/tasks/{}/events", ids[3].1)).await.expect(200);
    let states = events["items"].to_string();
    assert!(states.contains("Counting 50/100"), "{states}");

    // What it cannot do is retried and then fails, with its own words for it.
    let bad = json!({"type": "wordcount", "payload": {"txt": 1}, "max_retries": 1});
    let id = server.post("/tasks", &bad).await.expect(201)["id"].as_str().unwrap().to_owned();
    let failed = until_status(&server, &id, "FAILED").await;
    assert_eq!(failed["error"], "KeyError: 'text'");
    assert_eq!(failed["attempts"], 2);
    assert_eq!(python.terminate().await, Some(0));
}

#[tokio::test]
async fn it_stops_what_is_cancelled_and_says_so() {
    let server = Server::file().await.kept();
    let python = Python::start(&server, "0.05");
    until_known(&server).await;
    let id = server.create("wordcount", &words(2_000)).await;
    until_status(&server, &id, "IN_PROGRESS").await;
    let cancelled = server.ask(&format!("/tasks/{id}:cancel")).await.expect(200);
    assert!(cancelled["stop_by"].is_string());
    until("the confirmation", PATIENCE, || async {
        server.task(&id).await["stop_by"].is_null().then_some(())
    })
    .await;
    let events = server.get(&format!("/tasks/{id}/events?limit=1")).await.expect(200);
    assert_eq!(events["items"][0]["detail"]["action"], "stop-confirmed");
    // And it is free for the next one, the same one included.
    server.ask(&format!("/tasks/{id}:retry")).await.expect(200);
    until_status(&server, &id, "IN_PROGRESS").await;
    let progress = until("progress", PATIENCE, || async {
        let task = server.task(&id).await;
        (task["state"] == "Counting 200/2000").then_some(task)
    })
    .await;
    assert_eq!(progress["attempts"], 2);
    python.terminate().await;
}

#[tokio::test]
async fn it_gives_its_task_back_on_sigterm() {
    let server = Server::file().await.kept();
    let python = Python::start(&server, "0.05");
    until_known(&server).await;
    let id = server.create("wordcount", &words(2_000)).await;
    until_status(&server, &id, "IN_PROGRESS").await;
    assert_eq!(python.terminate().await, Some(0));
    let task = server.task(&id).await;
    assert_eq!((&task["status"], &task["retry_count"]), (&json!("PENDING"), &json!(0)));
    let events = server.get(&format!("/tasks/{id}/events?limit=1")).await.expect(200);
    assert_eq!(events["items"][0]["detail"]["action"], "interrupt");
}

#[tokio::test]
async fn it_survives_a_restart_of_the_server_with_its_task_in_hand() {
    let server = Server::file().await.kept();
    let address = server.address;
    let python = Python::start(&server, "0.01");
    until_known(&server).await;
    let id = server.create("wordcount", &words(400)).await;
    until_status(&server, &id, "IN_PROGRESS").await;
    let place: Place = server.end().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let server = Server::at(place, settings(), address).await.kept();
    let done = until_status(&server, &id, "COMPLETED").await;
    assert_eq!((&done["attempts"], &done["retry_count"]), (&json!(1), &json!(0)));
    let next = server.create("wordcount", &words(3)).await;
    until_status(&server, &next, "COMPLETED").await;
    assert_eq!(python.terminate().await, Some(0));
}

#[tokio::test]
async fn a_key_of_a_writer_is_all_it_needs() {
    let shape = |app| lavra_web::App { require_key: true, ..app };
    let server = Server::shaped(Place::file(), shape).await.kept();
    let (operator, writer) =
        (server.put_key(Role::Operator).await, server.put_key(Role::Writer).await);
    let worker = Python::start_with(&server, "0.01", &writer);
    let with = |method: Method, path: &str| server.request(method, path).bearer_auth(&operator);
    until("the worker's first claim", PATIENCE, || async {
        let types = server.send(with(Method::GET, "/types")).await.expect(200);
        types.to_string().contains("wordcount").then_some(())
    })
    .await;
    let order = json!({ "type": "wordcount", "payload": words(3) });
    let made = server.send(with(Method::POST, "/tasks").json(&order)).await.expect(201);
    let path = format!("/tasks/{}", made["id"].as_str().unwrap());
    until("COMPLETED", PATIENCE, || async {
        let task = server.send(with(Method::GET, &path)).await.expect(200);
        (task["status"] == "COMPLETED").then_some(())
    })
    .await;
    assert_eq!(worker.terminate().await, Some(0));
    let refused = Python::start(&server, "0.01").0.wait().await.unwrap();
    assert!(!refused.success(), "it works without a key");
}
