//! What a writer does beside its jobs, and what several of them on one database leave to each other.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lavra_writer::{Config, Limits};
use serde_json::{Value, json};

use crate::support::{Answer, Site, World, from_url, inline, soon};

lavra_testkit::on_each_engine!(old_jobs_are_removed_however_many_there_are);
lavra_testkit::on_servers!(
    long_housekeeping_does_not_make_a_writer_look_dead,
    headers_that_only_one_writer_has_are_left_to_it_as_long_as_it_lives,
);

async fn old_jobs_are_removed_however_many_there_are(mut world: World) {
    world
        .execute(
            "INSERT INTO kodus_workflow.writer_jobs (job_id, request, status, completed_at)
                SELECT 'old-' || n, '{}', 'partial', now() - INTERVAL '31 days' FROM generate_series(1, 350) AS s(n);
             INSERT INTO kodus_workflow.writer_jobs (job_id, request, status, completed_at)
                VALUES ('new', '{}', 'partial', now() - INTERVAL '29 days');
             INSERT INTO kodus_workflow.writer_failed_items (job_id, item_index, data, error)
                SELECT job_id, 1, '{}', 'x' FROM kodus_workflow.writer_jobs",
        )
        .await;
    world.start().await;
    soon(&world, "SELECT job_id FROM kodus_workflow.writer_jobs", &json!([["new"]])).await;
    soon(&world, "SELECT job_id FROM kodus_workflow.writer_failed_items", &json!([["new"]])).await;
}

async fn long_housekeeping_does_not_make_a_writer_look_dead(mut world: World) {
    world
        .execute(
            "INSERT INTO kodus_workflow.writer_jobs (job_id, request, status, completed_at)
                VALUES ('old', '{}', 'completed', now() - INTERVAL '31 days');
             CREATE FUNCTION public.be_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 PERFORM pg_sleep(8); RETURN OLD; END $$;
             CREATE TRIGGER be_slow BEFORE DELETE ON kodus_workflow.writer_jobs
                 FOR EACH ROW EXECUTE FUNCTION public.be_slow()",
        )
        .await;
    world.start().await;
    let is_busy = "SELECT count(*)::int AS n FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event = 'PgSleep'";
    soon(&world, is_busy, &json!([[1]])).await;
    let seen = "SELECT seen_at::text AS seen FROM kodus_workflow.writer_processes";
    let mut told = BTreeSet::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1800) {
        told.insert(world.ask(seen).await[0][0].to_string());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(told.len() > 4, "not heard of: {told:?}");
    assert_eq!(json!(world.ask(is_busy).await), json!([[1]]), "it was not long enough");
    soon(&world, "SELECT count(*)::int AS n FROM kodus_workflow.writer_jobs", &json!([[0]])).await;
}

/// Neither writer has a key to seal headers with. One is busy while it takes the order; the other is not,
/// and is not there while the first is given what to be busy with: it would take that itself.
async fn headers_that_only_one_writer_has_are_left_to_it_as_long_as_it_lives(mut world: World) {
    world.seals = false;
    let mut other = world.beside();
    let limits = Limits { running: 1, batch_rows: 10, ..Limits::default() };
    world.start_with(Config { limits, ..World::config() }).await;
    let elements: Vec<Value> =
        (0..300).map(|n| json!({ "id": n.to_string(), "t": "x".repeat(200) })).collect();
    let body = json!(elements).to_string();
    let slow = |millis| Some(Duration::from_millis(millis));
    let site = Site::serve(move |path, _| match path {
        "/slow" => Answer { pause: slow(75), ..Answer::ok(body.clone()) },
        "/slower" => Answer { pause: slow(300), ..Answer::ok(body.clone()) },
        _ => Answer::ok(r#"[{"id":"a"}]"#),
    })
    .await;
    let mut order = from_url("ads", &site.url("/quick"), "");
    order["source"]["headers"] = json!({ "Authorization": "Bearer marker-0009" });
    let occupy = async |world: &World, path: &str| {
        let (_, slow) = world.post(&from_url("ads", &site.url(path), "")).await;
        let id = slow["job_id"].as_str().unwrap().to_owned();
        world.until(&id, |job| job["progress"]["processed"].as_u64() > Some(0)).await;
        id
    };
    occupy(&world, "/slow").await;
    // A machine that is busy does not make the first one look dead.
    let mut patient = World::config();
    patient.timing.stale = Duration::from_secs(4);
    other.start_with(patient.clone()).await;
    assert_eq!(other.run(&inline("ads", &json!([{ "id": "b" }]))).await["status"], "completed");
    let job = world.run(&order).await;
    assert_eq!(job["status"], "completed", "{job}");

    other.kill();
    let slow = occupy(&world, "/slower").await;
    other.start_with(patient).await;
    let (_, answer) = world.post(&order).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let id = answer["job_id"].as_str().unwrap();
    assert_eq!(other.get(&format!("/status/{id}")).await.1["status"], "processing");
    world.kill();
    let job = other.end_of(id).await;
    assert_eq!(job["status"], "failed", "nobody has its headers any more: {job}");
    assert!(job["error_message"].as_str().unwrap().contains("LAVRA_SECRET_KEY"), "{job}");
    assert_eq!(other.end_of(&slow).await["status"], "completed");
}
