//! The types that come with the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lavra_tasks::builtin::{Cleanup, Http, Retention};
use lavra_tasks::model::{Status, Task};
use lavra_tasks::{
    Artefacts, Backoff, NewTask, Policy, Registry, Runner, RunnerConfig, Settings, Tasks,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::rig::until;
use crate::support::{World, on_each_engine};

on_each_engine!(
    an_answer_becomes_an_artefact_and_a_pointer,
    a_server_s_trouble_is_waited_out,
    a_refusal_is_final,
    an_address_of_the_inside_is_refused_where_it_must_be,
    cleanup_archives_and_then_removes,
    a_task_stays_as_long_as_its_artefact_cannot_be_removed,
    results_that_name_no_artefact_of_their_task_remove_none,
);

/// Answers each request with the next of `answers`, the last one for ever.
async fn server(answers: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/data", listener.local_addr().unwrap());
    let place = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _some = client.read(&mut request).await;
            let next = place.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let _gone = client.write_all(answers[next].as_bytes()).await;
        }
    });
    url
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{\"ok\":true}";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy";
const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{\"ok";
const GONE: &str = "HTTP/1.1 410 Gone\r\ncontent-length: 4\r\nconnection: close\r\n\r\ngone";

struct Service {
    tasks: Tasks,
    directory: TempDir,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Service {
    async fn start(world: &World, private_allowed: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place =
            |name: &str| Artefacts::open(&directory.path().join(name).to_string_lossy()).unwrap();
        let backoff = Backoff { first: Duration::from_millis(10), longest: Duration::from_secs(1) };
        let policies = ["http", "cleanup"].map(|kind| (kind.to_owned(), Policy::default()));
        let settings = Settings { backoff, policies: policies.into(), ..Settings::default() };
        let tasks = Tasks::open(world.database(), settings).await.unwrap();
        let cleanup = Cleanup::new(
            tasks.clone(),
            Retention::default(),
            place("artefacts"),
            Some(place("archive")),
        );
        let registry = Registry::default()
            .with(Http::new(place("artefacts"), private_allowed).unwrap(), Policy::default())
            .with(cleanup, Policy::default());
        let stop = CancellationToken::new();
        let config = RunnerConfig { poll: Duration::from_millis(50), ..RunnerConfig::default() };
        let running = tokio::spawn(Runner::new(tasks.clone(), registry, config).run(stop.clone()));
        Self { tasks, directory, stop, running }
    }

    async fn run(&self, kind: &str, payload: Value) -> Task {
        let task = NewTask { kind: kind.into(), payload, ..NewTask::default() };
        let id = self.tasks.create(task).await.unwrap().id;
        until(&self.tasks, id, Duration::from_secs(20), |task| task.status.is_terminal()).await
    }

    async fn end(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

async fn an_answer_becomes_an_artefact_and_a_pointer(world: World) {
    let service = Service::start(&world, true).await;
    let task = service.run("http", json!({ "url": server(&[OK]).await })).await;
    assert_eq!(task.status, Status::Completed, "{task:?}");
    let result = service.tasks.result(task.id).await.unwrap().payload;
    assert_eq!(result["status"], 200);
    let pointer = &result["artefact"];
    assert_eq!(
        (&pointer["size"], &pointer["content_type"]),
        (&json!(11), &json!("application/json"))
    );
    let file = std::path::Path::new(pointer["location"].as_str().unwrap())
        .join(pointer["key"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(file).unwrap(), r#"{"ok":true}"#);
    assert!(!result.to_string().contains("ok\\\""), "the answer itself is in the result");
    service.end().await;
}

async fn a_server_s_trouble_is_waited_out(world: World) {
    let service = Service::start(&world, true).await;
    let task = service.run("http", json!({ "url": server(&[BUSY, CUT, OK]).await })).await;
    assert_eq!((task.status, task.attempts), (Status::Completed, 3), "{task:?}");
    let events = service.tasks.store().events_since(task.id, -1, 100).await.unwrap();
    let first = events.iter().find(|event| event.status == Status::Pending && event.version > 0);
    let waited = events.iter().find(|event| event.version == first.unwrap().version + 1).unwrap();
    let wait = waited.created_at.duration_since(first.unwrap().created_at);
    assert!(wait.as_secs_f64() >= 0.9, "Retry-After was not kept: {wait:?}");
    service.end().await;
}

async fn a_refusal_is_final(world: World) {
    let service = Service::start(&world, true).await;
    let task = service.run("http", json!({ "url": server(&[GONE]).await })).await;
    assert_eq!((task.status, task.attempts), (Status::Failed, 1));
    assert_eq!(task.error.as_deref(), Some("HTTP 410 Gone: gone"));
    for (payload, says) in [
        (json!({ "url": "ftp://localhost/x" }), "not http or https"),
        (json!({ "url": "nonsense" }), "url:"),
        (json!({ "url": "http://localhost/", "method": "B AD" }), "not an HTTP method"),
        (json!({ "url": "http://localhost/", "headers": { "a b": "c" } }), "not a header name"),
        (json!({ "url": "http://localhost/", "colour": "red" }), "does not fit"),
    ] {
        let task = service.run("http", payload).await;
        assert_eq!(task.status, Status::Failed);
        assert!(task.error.as_deref().unwrap().contains(says), "{says}: {task:?}");
    }
    service.end().await;
}

async fn an_address_of_the_inside_is_refused_where_it_must_be(world: World) {
    let service = Service::start(&world, false).await;
    let url = server(&[OK]).await;
    for url in [
        url.clone(),
        url.replace("127.0.0.1", "localhost"),
        url.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
    ] {
        let task = service.run("http", json!({ "url": url })).await;
        assert_eq!((task.status, task.attempts), (Status::Failed, 1), "{url}: {task:?}");
        assert!(task.error.as_deref().unwrap().contains("internal address"), "{url}: {task:?}");
    }
    service.end().await;
}

async fn cleanup_archives_and_then_removes(world: World) {
    let service = Service::start(&world, true).await;
    let old = service.run("http", json!({ "url": server(&[OK]).await })).await;
    let failed = service.run("http", json!({ "url": server(&[GONE]).await })).await;
    world.execute(&format!("{LONG_AGO} WHERE id = '{}'", old.id)).await;
    let recent = service.run("http", json!({ "url": server(&[OK]).await })).await;
    let done = service.run("cleanup", json!({})).await;
    assert_eq!(done.status, Status::Completed, "{done:?}");
    let result = service.tasks.result(done.id).await.unwrap().payload;
    assert_eq!(result["tasks_removed"], 1, "{result}");
    assert!(service.tasks.task(old.id).await.is_err());
    for kept in [failed.id, recent.id] {
        service.tasks.task(kept).await.unwrap();
    }
    let orphans = ["task_events", "task_inputs", "task_results"];
    for table in orphans {
        let sql =
            format!("SELECT count(*) FROM kodus_workflow.{table} WHERE task_id = '{}'", old.id);
        assert_eq!(world.count(&sql).await, 0, "{table}");
    }
    let archive =
        service.directory.path().join("archive").join(result["archives"][0].as_str().unwrap());
    let lines = zstd::decode_all(std::fs::File::open(archive).unwrap()).unwrap();
    let dossier: Value = serde_json::from_slice(&lines).unwrap();
    assert_eq!(dossier["task"]["id"], json!(old.id));
    assert_eq!(dossier["events"].as_array().unwrap().len() as i32, old.version + 1);
    assert_eq!(dossier["result"]["status"], 200);
    let gone = service.directory.path().join("artefacts").join(format!("http/{}/1", old.id));
    assert!(!gone.exists(), "the artefact of a removed task is still there");
    service.end().await;
}

const LONG_AGO: &str = "UPDATE kodus_workflow.tasks SET updated_at = '2020-01-01T00:00:00Z'";

async fn a_task_stays_as_long_as_its_artefact_cannot_be_removed(world: World) {
    let service = Service::start(&world, true).await;
    let old = service.run("http", json!({ "url": server(&[OK]).await })).await;
    let younger = service.run("http", json!({ "url": server(&[OK]).await })).await;
    world.execute(LONG_AGO).await;
    let sooner = "UPDATE kodus_workflow.tasks SET updated_at = '2020-01-02T00:00:00Z'";
    world.execute(&format!("{sooner} WHERE id = '{}'", younger.id)).await;
    let artefact = service.directory.path().join("artefacts").join(format!("http/{}/1", old.id));
    // A directory in its place cannot be removed as a file can.
    std::fs::remove_file(&artefact).unwrap();
    std::fs::create_dir(&artefact).unwrap();
    let failed = service.run("cleanup", json!({})).await;
    assert_eq!(failed.status, Status::Failed, "{failed:?}");
    assert!(failed.error.as_deref().unwrap().contains("could not be removed"), "{failed:?}");
    service.tasks.task(old.id).await.expect("the row that knows of the artefact is still there");
    assert!(service.tasks.task(younger.id).await.is_err(), "one held up the other");

    std::fs::remove_dir(&artefact).unwrap();
    std::fs::write(&artefact, "as it was").unwrap();
    let done = service.run("cleanup", json!({})).await;
    assert_eq!(done.status, Status::Completed, "{done:?}");
    assert!(!artefact.exists(), "the artefact of a removed task is still there");
    assert!(service.tasks.task(old.id).await.is_err());
    service.end().await;
}

async fn results_that_name_no_artefact_of_their_task_remove_none(world: World) {
    let service = Service::start(&world, true).await;
    let url = server(&[OK]).await;
    let run = || service.run("http", json!({ "url": url }));
    let (gone, outside, anothers) = (run().await, run().await, run().await);
    let artefacts = service.directory.path().join("artefacts");
    std::fs::remove_file(artefacts.join(format!("http/{}/1", gone.id))).unwrap();
    let precious = artefacts.join("http/precious");
    std::fs::write(&precious, "of another").unwrap();
    let others = [(&outside, format!("../{}", outside.id)), (&anothers, "http/precious".into())];
    for (task, other) in others {
        let stored = service.tasks.result(task.id).await.unwrap().payload.to_string();
        let named = stored.replace(&format!("http/{}/1", task.id), &other);
        let sql = format!("SET payload = '{named}' WHERE task_id = '{}'", task.id);
        world.execute(&format!("UPDATE kodus_workflow.task_results {sql}")).await;
    }
    world.execute(LONG_AGO).await;
    let done = service.run("cleanup", json!({})).await;
    assert_eq!(done.status, Status::Completed, "{done:?}");
    for task in [gone, outside, anothers] {
        assert!(service.tasks.task(task.id).await.is_err(), "{task:?}");
    }
    assert!(precious.exists(), "a result named what was not its task's");
    service.end().await;
}
