//! Workers that speak HTTP.

use std::time::{Duration, Instant};

use lavra_tasks::model::ProcessId;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine, until};

on_each_engine!(
    a_worker_claims_reports_and_completes,
    a_failure_waits_for_its_retry_and_then_for_good,
    a_release_does_not_count,
    a_worker_that_was_replaced_is_fenced_out,
    a_claim_that_waits_wakes_at_once,
    a_claim_whose_caller_hung_up_takes_nothing,
);

async fn a_worker_claims_reports_and_completes(place: Place) {
    let server = Server::on(place).await;
    let worker = Uuid::new_v4();
    let low = server.create(KIND, &json!({"n": 1})).await;
    let urgent = json!({"type": KIND, "payload": {"n": 2}, "priority": 9, "metadata": {"a": 1}});
    let high = server.post("/tasks", &urgent).await.expect(201)["id"].clone();

    let wish = json!({"worker": worker, "name": "w", "types": [KIND, "new-type"], "limit": 100});
    let taken = server.post("/tasks:claim", &wish).await.expect(200);
    let taken = taken["tasks"].as_array().unwrap();
    assert_eq!(taken.len(), 2);
    let first = &taken[0];
    assert_eq!((&first["id"], &taken[1]["id"]), (&high, &json!(low)));
    let key = format!("{}:1", high.as_str().unwrap());
    for (name, value) in [
        ("type", json!(KIND)),
        ("payload", json!({"n": 2})),
        ("metadata", json!({"a": 1})),
        ("priority", json!(9)),
        ("attempt", json!(1)),
        ("retry_count", json!(0)),
        ("max_retries", json!(3)),
        ("idempotency_key", json!(key)),
    ] {
        assert_eq!(first[name], value, "{name}");
    }
    assert!(first["token"].is_i64());
    let types = server.get("/types").await.expect(200);
    assert!(types.to_string().contains("new-type"), "a claim makes its types known: {types}");

    let held = json!({"held": [
        {"id": low, "token": taken[1]["token"]},
        {"id": high, "token": first["token"]},
    ]});
    let answer = server.post(&format!("/workers/{worker}:heartbeat"), &held).await.expect(200);
    assert_eq!(answer, json!({"lost": [], "heartbeat_seconds": 3}));

    let step =
        json!({"progress": 40, "state": "Counting", "detail": {"at": 4}, "metadata": {"b": 2}});
    assert_eq!(server.report(first, "progress", step).await.expect(200), json!({"version": 2}));
    let shown = server.task(high.as_str().unwrap()).await;
    assert_eq!((&shown["progress"], &shown["state"]), (&json!(40), &json!("Counting")));
    assert_eq!(shown["metadata"], json!({"a": 1, "b": 2}));
    assert_eq!(shown["process"], json!(worker));
    server.report(first, "complete", json!({"result": {"ok": true}})).await.expect(200);
    server.report(first, "complete", json!({})).await.problem(409, "task_lost");

    // What it still holds when it leaves goes back, and that does not count.
    server.ask(&format!("/workers/{worker}:retire")).await.expect(204);
    let back = server.task(&low).await;
    assert_eq!((&back["status"], &back["retry_count"]), (&json!("PENDING"), &json!(0)));
    server.report(&taken[1], "complete", json!({})).await.problem(409, "task_lost");
}

async fn a_failure_waits_for_its_retry_and_then_for_good(place: Place) {
    let server = Server::on(place).await;
    let worker = Uuid::new_v4();
    let body = json!({"type": KIND, "payload": {}, "max_retries": 1});
    let id = server.post("/tasks", &body).await.expect(201)["id"].as_str().unwrap().to_owned();
    let task = server.claim(worker, KIND).await;
    let error = format!("broken\u{0}{}", "x".repeat(20_000));
    server.report(&task, "fail", json!({ "error": error })).await.expect(200);
    let waiting = server.task(&id).await;
    assert_eq!((&waiting["status"], &waiting["retry_count"]), (&json!("PENDING"), &json!(1)));
    assert!(waiting["state"].as_str().unwrap().starts_with("Retry 1/1 at "), "{waiting}");
    let kept = waiting["error"].as_str().unwrap();
    assert!(kept.starts_with("broken\u{fffd}xxx") && kept.ends_with('…') && kept.len() < 17_000);

    let task = until("the retry", Duration::from_secs(5), || async {
        let wish = json!({"worker": worker, "types": [KIND]});
        let answer = server.post("/tasks:claim", &wish).await.expect(200);
        answer["tasks"].get(0).cloned()
    })
    .await;
    assert_eq!((&task["attempt"], &task["retry_count"]), (&json!(2), &json!(1)));
    server.report(&task, "fail", json!({"error": "again"})).await.expect(200);
    let failed = server.task(&id).await;
    assert_eq!((&failed["status"], &failed["error"]), (&json!("FAILED"), &json!("again")));

    // Of no use to try again: failed at once. And a wait that the worker names is kept.
    let id = server.create(KIND, &json!({})).await;
    let task = server.claim(worker, KIND).await;
    let hopeless = json!({"error": "hopeless", "retryable": false});
    server.report(&task, "fail", hopeless).await.expect(200);
    assert_eq!(server.task(&id).await["status"], "FAILED");
    let id = server.create(KIND, &json!({})).await;
    let task = server.claim(worker, KIND).await;
    let later = json!({"error": "busy", "retry_after_seconds": 3600});
    server.report(&task, "fail", later).await.expect(200);
    let run_at: jiff::Timestamp =
        server.task(&id).await["run_at"].as_str().unwrap().parse().unwrap();
    let wait = run_at.duration_since(server.tasks.now()).as_secs();
    assert!((3590..=3600).contains(&wait), "{wait}");
}

async fn a_release_does_not_count(place: Place) {
    let server = Server::on(place).await;
    let id = server.create(KIND, &json!({})).await;
    let task = server.claim(Uuid::new_v4(), KIND).await;
    server.report(&task, "release", json!({})).await.expect(200);
    let waiting = server.task(&id).await;
    assert_eq!((&waiting["status"], &waiting["retry_count"]), (&json!("PENDING"), &json!(0)));
    assert_eq!(waiting["run_at"], Value::Null);
    let again = server.claim(Uuid::new_v4(), KIND).await;
    assert_eq!((&again["attempt"], &again["retry_count"]), (&json!(2), &json!(0)));
}

async fn a_worker_that_was_replaced_is_fenced_out(place: Place) {
    let server = Server::on(place).await.kept();
    let id = server.create(KIND, &json!({})).await;
    let old = Uuid::new_v4();
    let stale = server.claim(old, KIND).await;
    // Its row goes, as if it had been silent for long; the keeper takes the task over.
    server.tasks.retire(ProcessId(old)).await.unwrap();
    until("the takeover", Duration::from_secs(10), || async {
        (server.task(&id).await["status"] == "PENDING").then_some(())
    })
    .await;
    let fresh = server.claim(Uuid::new_v4(), KIND).await;
    assert!(fresh["token"].as_i64() > stale["token"].as_i64());
    for (verb, more) in [
        ("progress", json!({"progress": 99, "state": "late"})),
        ("complete", json!({"result": "late"})),
        ("fail", json!({"error": "late"})),
        ("release", json!({})),
    ] {
        server.report(&stale, verb, more).await.problem(409, "task_lost");
    }
    let held = json!({"held": [{"id": id, "token": stale["token"]}]});
    let answer = server.post(&format!("/workers/{old}:heartbeat"), &held).await.expect(200);
    assert_eq!(answer["lost"], json!([{"id": id, "cancelled": false}]));
    let shown = server.task(&id).await;
    assert_eq!((&shown["status"], &shown["state"]), (&json!("IN_PROGRESS"), &json!("Started")));
    server.report(&fresh, "complete", json!({"result": "good"})).await.expect(200);
    let result = server.get(&format!("/tasks/{id}/result")).await.expect(200);
    assert_eq!(result["payload"], "good");
}

async fn a_claim_that_waits_wakes_at_once(place: Place) {
    let server = Server::on(place).await;
    let mut waits = Vec::new();
    for _ in 0..9 {
        let client = server.client.clone();
        let waiting = tokio::spawn(async move {
            let wish = json!({"worker": Uuid::new_v4(), "types": [KIND], "wait_seconds": 20});
            let answer = client.post("/tasks:claim", &wish).await.expect(200);
            (answer, Instant::now())
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        let id = server.create(KIND, &json!({})).await;
        let start = Instant::now();
        let (answer, end) = waiting.await.unwrap();
        assert_eq!(answer["tasks"][0]["id"], id);
        waits.push(end.saturating_duration_since(start));
    }
    // A machine that is busy may be slow now and then; a poll would be slow every time.
    waits.sort();
    assert!(waits[4] < Duration::from_millis(200), "{waits:?}");

    // With nothing to do it comes back empty, when it said it would.
    let start = Instant::now();
    let wish = json!({"worker": Uuid::new_v4(), "types": [KIND], "wait_seconds": 1});
    let answer = server.post("/tasks:claim", &wish).await.expect(200);
    assert_eq!(answer, json!({"tasks": []}));
    assert!((900..2000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
}

async fn a_claim_whose_caller_hung_up_takes_nothing(place: Place) {
    let server = Server::on(place).await;
    for _ in 0..3 {
        let wish = json!({"worker": Uuid::new_v4(), "types": [KIND], "wait_seconds": 20});
        let request = server.request(reqwest::Method::POST, "/tasks:claim").json(&wish).send();
        let hung_up = tokio::time::timeout(Duration::from_millis(150), request).await;
        assert!(hung_up.is_err());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let id = server.create(KIND, &json!({})).await;
    let task = server.claim(Uuid::new_v4(), KIND).await;
    assert_eq!(task["id"], id);
}

#[tokio::test]
async fn what_a_worker_never_received_is_given_back() {
    let server = Server::file().await;
    let id = server.create(KIND, &json!({})).await;
    let worker = Uuid::new_v4();
    let start = Instant::now();
    // The answer gets lost: the worker lives on and does not know of the task.
    server.claim(worker, KIND).await;
    let nothing = json!({"held": []});
    let beat = format!("/workers/{worker}:heartbeat");
    server.post(&beat, &nothing).await.expect(200);
    assert_eq!(server.task(&id).await["status"], "IN_PROGRESS");
    until("the return", Duration::from_secs(15), || async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.post(&beat, &nothing).await.expect(200);
        (server.task(&id).await["status"] == "PENDING").then_some(())
    })
    .await;
    let elapsed = start.elapsed();
    let events = server.get(&format!("/tasks/{id}/events")).await.expect(200);
    assert!(elapsed > Duration::from_secs(4), "{elapsed:?}: {events:#}");
    assert_eq!(server.task(&id).await["retry_count"], 0);
}
