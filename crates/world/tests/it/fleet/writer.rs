use lavra_world::FleetRequest;
use serde_json::json;

use super::{Caller, process};

/// A caller with results at a URL.
fn with_results(mut caller: Caller) -> (Caller, String, u64) {
    let id = caller.scraping(0, "mis_1:1");
    caller.wait(3600);
    assert_eq!(caller.job_status(0, &id), "completed");
    let count = caller.job(0, &id)["ads_count"].as_u64().unwrap();
    let url = format!("{}/{id}/{id}_results.json", caller.fleet.worker_url(0));
    (caller, url, count)
}

#[test]
fn a_job_is_written_once_however_often_it_is_sent() {
    let (mut caller, url, count) = with_results(Caller::new());
    let first = caller.process(Some("w1"), &url).value().unwrap();
    assert_eq!((&first["job_id"], &first["status"]), (&json!("w1"), &json!("processing")));
    assert!(first["created_at"].as_str().unwrap().starts_with("2025-01-15T"));
    let mut processed = Vec::new();
    for _ in 0..60 {
        assert_eq!(caller.process(Some("w1"), &url).status, 200);
        let write = caller.write("w1");
        assert_eq!(write["progress"]["total"], count);
        processed.push(write["progress"]["processed"].as_u64().unwrap());
        caller.wait(5);
    }
    assert!(processed.is_sorted() && processed.last() == Some(&count));
    let write = caller.write("w1");
    assert_eq!(write["status"], "completed");
    assert_eq!(write["progress"]["success_count"], count);
    assert_eq!(write["failed_items"], json!([]));
    assert!(write["completed_at"].is_string());
    let stats = caller.fleet.stats(caller.now);
    assert_eq!(stats.writes[&url].jobs, [(0, "w1".to_owned())]);
    assert_eq!(stats.writes[&url].written, 1);
}

#[test]
fn another_job_of_the_same_data_is_a_second_write() {
    let (mut caller, url, _) = with_results(Caller::new());
    caller.process(Some("w1"), &url);
    let made = caller.process(None, &url).value().unwrap()["job_id"].as_str().unwrap().to_owned();
    assert_eq!(made.len(), 36, "{made}");
    assert_eq!(caller.fleet.stats(caller.now).writes[&url].written, 0);
    caller.wait(300);
    assert_eq!(caller.write(&made)["status"], "completed");
    assert_eq!(caller.fleet.stats(caller.now).writes[&url].written, 2);
}

#[test]
fn results_that_are_not_there_cannot_be_written() {
    let mut caller = Caller::new();
    let id = caller.scraping(0, "mis_1:1");
    caller.process(Some("w1"), &format!("http://x/worker/0/{id}/{id}_results.json"));
    caller.wait(300);
    let write = caller.write("w1");
    assert_eq!((&write["status"], &write["error_code"]), (&json!("failed"), &json!("ERROR400")));
}

#[test]
fn only_what_is_whole_is_accepted() {
    let caller = Caller::new();
    let post = |body| caller.ask("POST", "/writer/0/process", None, Some(&body)).status;
    for (pointer, wrong) in [
        ("/config/table", json!(null)),
        ("/config/operation", json!("delete")),
        ("/source/type", json!("file")),
        ("/source/url", json!("")),
        ("/job_id", json!(7)),
    ] {
        let mut body = process(None, "http://x/data.json");
        *body.pointer_mut(pointer).unwrap() = wrong;
        assert_eq!(post(body), 422, "{pointer}");
    }
    assert_eq!(post(process(None, "http://x/data.json")), 200);
    assert_eq!(caller.ask("GET", "/writer/0/status/none", None, None).status, 404);
    let health = caller.fleet.answer(caller.now, &FleetRequest::new("GET", "/writer/0/health"));
    assert_eq!(health.value(), Some(json!({ "status": "healthy" })), "without a key");
    let status = caller.fleet.answer(caller.now, &FleetRequest::new("GET", "/writer/0/status/x"));
    assert_eq!(status.status, 401);
}

#[test]
fn jobs_of_a_writer_fail_in_their_ways() {
    let run = |change: fn(&mut lavra_world::fleet::WriteFaults)| {
        let (mut caller, url, _) = with_results(Caller::with(|faults| change(&mut faults.writes)));
        caller.process(Some("w1"), &url);
        caller.wait(300);
        let answer = caller.ask("GET", "/writer/0/status/w1", None, None);
        let status = answer.status;
        (caller, url, status, answer.value().unwrap())
    };
    let (caller, url, _, failed) = run(|faults| faults.fails = 1.0);
    assert_eq!((&failed["status"], &failed["error_code"]), (&json!("failed"), &json!("ERROR300")));
    assert_eq!(caller.fleet.stats(caller.now).writes[&url].written, 0);
    let (_, _, _, schema) = run(|faults| faults.schema = 1.0);
    assert_eq!(schema["error_code"], "ERROR303");

    let (mut caller, _, _, silent) = run(|faults| faults.silent = 1.0);
    caller.wait(7200);
    assert_eq!(caller.write("w1"), silent, "it does not move");
    assert_eq!(silent["status"], "processing");

    let (caller, url, status, _) = run(|faults| faults.forgotten = 1.0);
    assert_eq!(status, 404);
    assert_eq!(caller.process(Some("w1"), &url).status, 200);
    assert_eq!(caller.write("w1")["status"], "processing", "it can be sent again");

    let (caller, url, _, partial) = run(|faults| faults.partial = 1.0);
    assert_eq!(partial["status"], "partial");
    let items = partial["failed_items"].as_array().unwrap();
    let progress = &partial["progress"];
    assert_eq!(progress["failed_count"].as_u64(), Some(items.len() as u64));
    assert!(!items.is_empty() && items.iter().all(|item| item["data"]["id"].is_string()));
    let total = progress["success_count"].as_u64().unwrap() + items.len() as u64;
    assert_eq!(progress["total"].as_u64(), Some(total));
    assert_eq!(caller.fleet.stats(caller.now).writes[&url].written, 1);
}
