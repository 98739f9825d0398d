//! Jobs that outlive the process that ran them.

use std::time::Duration;

use lavra_writer::{Config, Limits};
use serde_json::{Value, json};

use crate::support::{Answer, Site, World, from_url, inline};

lavra_testkit::on_each_engine!(
    a_job_is_gone_on_with_after_a_kill,
    an_insert_is_stored_once_over_kills,
    a_job_that_is_told_to_stop_is_given_back_and_ended_by_the_next,
    what_waits_is_run_after_a_restart,
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
