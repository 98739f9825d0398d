//! Jobs that outlive the process that ran them.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lavra_writer::{Config, Limits, Names};
use serde_json::{Value, json};

use crate::support::{Answer, Site, World, from_url, inline};

lavra_testkit::on_each_engine!(
    a_job_is_gone_on_with_after_a_kill,
    an_insert_is_stored_once_over_kills,
    a_job_that_is_told_to_stop_is_given_back_and_ended_by_the_next,
    what_waits_is_run_after_a_restart,
    a_job_ends_when_its_database_is_back,
    a_job_whose_work_panics_has_failed,
    an_insert_of_a_source_that_became_shorter_fails,
);

fn small() -> Config {
    Config { limits: Limits { batch_rows: 10, ..Limits::default() }, ..World::config() }
}

/// A source that takes a second and a half.
async fn slow(count: usize) -> Site {
    let elements: Vec<Value> =
        (0..count).map(|n| json!({ "id": n.to_string(), "t": "x".repeat(200) })).collect();
    let body = json!({ "ads": elements }).to_string();
    Site::serve(move |_, _| Answer {
        pause: Some(Duration::from_millis(75)),
        ..Answer::ok(body.clone())
    })
    .await
}

async fn begin(world: &mut World, operation: &str, site: &Site) -> String {
    let mut order = from_url("ads", &site.url("/x"), "ads");
    order["config"]["operation"] = json!(operation);
    order["source"]["headers"] = json!({ "Authorization": "Bearer marker-0004" });
    let (_, answer) = world.post(&order).await;
    let id = answer["job_id"].as_str().unwrap().to_owned();
    world.until(&id, |job| job["progress"]["processed"].as_u64() > Some(50)).await;
    id
}

async fn a_job_is_gone_on_with_after_a_kill(mut world: World) {
    world.start_with(small()).await;
    let site = slow(300).await;
    let id = begin(&mut world, "upsert", &site).await;
    world.kill();
    world.start_with(small()).await;
    let job = world.end_of(&id).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(job["progress"]["success_count"], 300, "{job}");
    assert_eq!(world.count("public.ads").await, 300);
    let again = site.requests();
    assert!(
        again.last().unwrap().contains("marker-0004"),
        "the headers were sealed and opened again"
    );
}

async fn an_insert_is_stored_once_over_kills(mut world: World) {
    let json_type = if world.is_duckdb() { "JSON" } else { "JSONB" };
    world.execute(&format!("CREATE TABLE public.plain (id VARCHAR, data {json_type})")).await;
    world.start_with(small()).await;
    let site = slow(300).await;
    let mut order = from_url("plain", &site.url("/x"), "ads");
    order["config"] = json!({ "table": "plain", "operation": "insert" });
    let (_, answer) = world.post(&order).await;
    let id = answer["job_id"].as_str().unwrap().to_owned();
    for mark in [40, 120, 200] {
        world.until(&id, |job| job["progress"]["processed"].as_u64() > Some(mark)).await;
        world.kill();
        world.start_with(small()).await;
    }
    let job = world.end_of(&id).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(
        (&job["progress"]["total"], &job["progress"]["success_count"]),
        (&json!(300), &json!(300))
    );
    let rows = world.ask("SELECT count(*) AS n, count(DISTINCT id) AS d FROM public.plain").await;
    assert_eq!(json!(rows), json!([[300, 300]]));
}

async fn a_job_that_is_told_to_stop_is_given_back_and_ended_by_the_next(mut world: World) {
    world.start_with(small()).await;
    let site = slow(300).await;
    let id = begin(&mut world, "upsert", &site).await;
    world.stop().await;
    let held = world.ask("SELECT held_by FROM kodus_workflow.writer_jobs").await;
    assert_eq!(json!(held), json!([[null]]));
    world.start_with(small()).await;
    assert_eq!(world.end_of(&id).await["status"], "completed");
    assert_eq!(world.count("public.ads").await, 300);
}

async fn what_waits_is_run_after_a_restart(mut world: World) {
    let names = std::sync::Arc::new(lavra_writer::SystemNames);
    world.start_as(World::config(), names, false).await;
    let (_, answer) = world.post(&inline("ads", &json!([{ "id": "a" }]))).await;
    let id = answer["job_id"].as_str().unwrap().to_owned();
    assert_eq!(world.get(&format!("/status/{id}")).await.1["status"], "processing");
    world.kill();
    world.start().await;
    assert_eq!(world.end_of(&id).await["status"], "completed");
}

/// Longer than anybody would wait who waits a fixed time.
async fn a_job_ends_when_its_database_is_back(mut world: World) {
    world.start_with(small()).await;
    let site = slow(300).await;
    let id = begin(&mut world, "upsert", &site).await;
    world.execute("ALTER TABLE kodus_workflow.writer_jobs RENAME TO away").await;
    tokio::time::sleep(Duration::from_millis(9500)).await;
    world.execute("ALTER TABLE kodus_workflow.away RENAME TO writer_jobs").await;
    let job = world.end_of(&id).await;
    assert_eq!(
        (&job["status"], &job["error_code"]),
        (&json!("failed"), &json!("ERROR300")),
        "{job}"
    );
    let job = world.run(&inline("ads", &json!([{ "id": "next" }]))).await;
    assert_eq!(job["status"], "completed", "{job}");
}

#[derive(Debug)]
struct Panics;

#[async_trait]
impl Names for Panics {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        panic!("{name} is asked for")
    }
}

async fn a_job_whose_work_panics_has_failed(mut world: World) {
    world.start_as(World::config(), Arc::new(Panics), true).await;
    let job = world.run(&from_url("ads", "http://somewhere.example/x", "")).await;
    assert_eq!(
        (&job["status"], &job["error_code"]),
        (&json!("failed"), &json!("ERROR500")),
        "{job}"
    );
    let job = world.run(&inline("ads", &json!([{ "id": "next" }]))).await;
    assert_eq!(job["status"], "completed", "{job}");
}

async fn an_insert_of_a_source_that_became_shorter_fails(mut world: World) {
    world.execute("CREATE TABLE public.plain (id VARCHAR)").await;
    world.start_with(small()).await;
    let elements = |count: usize| -> Vec<Value> {
        (0..count).map(|n| json!({ "id": n.to_string(), "t": "x".repeat(200) })).collect()
    };
    let (long, short) = (json!(elements(300)).to_string(), json!(elements(20)).to_string());
    let site = Site::serve(move |_, before| match before {
        0 => Answer { pause: Some(Duration::from_millis(300)), ..Answer::ok(long.clone()) },
        _ => Answer::ok(short.clone()),
    })
    .await;
    let mut order = from_url("plain", &site.url("/x"), "");
    order["config"] = json!({ "table": "plain", "operation": "insert" });
    let (_, answer) = world.post(&order).await;
    let id = answer["job_id"].as_str().unwrap().to_owned();
    world.until(&id, |job| job["progress"]["processed"].as_u64() > Some(50)).await;
    world.kill();
    world.start_with(small()).await;
    let job = world.end_of(&id).await;
    assert_eq!(
        (&job["status"], &job["error_code"]),
        (&json!("failed"), &json!("ERROR400")),
        "{job}"
    );
    assert!(job["error_message"].as_str().unwrap().contains("shorter"), "{job}");
}
