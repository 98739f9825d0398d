//! Answers of the database that never came: the line is cut while the server is still busy with a commit,
//! which it carries out all the same. And what such accidents may leave behind.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Line, Site, World, from_url, inline, soon};

lavra_testkit::on_each_engine!(what_is_sealed_for_jobs_that_are_over_is_removed);
lavra_testkit::on_servers!(a_secret_that_cannot_be_read_for_now_is_asked_for_again);

/// The first commit of such a change takes a while.
async fn slow_commit(world: &World, change: &str) {
    world
        .execute(&format!(
            "CREATE SEQUENCE public.commits;
             CREATE FUNCTION public.be_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF nextval('public.commits') = 1 THEN PERFORM pg_sleep(3); END IF;
                 RETURN NULL;
             END $$;
             CREATE CONSTRAINT TRIGGER be_slow AFTER {change} EXECUTE FUNCTION public.be_slow()"
        ))
        .await;
}

/// Sends an order and cuts the line in the slow commit.
async fn cut_in_the_commit(world: &mut World, order: &Value) -> Value {
    let line = Line::to_the_server().await;
    world.start_through(&line).await;
    let (_, answer) = world.post(order).await;
    let is_busy = "SELECT count(*)::int AS n FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event = 'PgSleep'";
    while json!(world.ask(is_busy).await) != json!([[1]]) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    line.cut();
    // Who asks how it is going may meet a line that is cut, too.
    let path = format!("/status/{}", answer["job_id"].as_str().unwrap());
    for _ in 0..1000 {
        match world.get(&path).await {
            (200, job) if job["status"] != "processing" => return job,
            (200 | 500, _) => tokio::time::sleep(Duration::from_millis(20)).await,
            other => panic!("{other:?}"),
        }
    }
    panic!("it takes too long")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_whose_commit_was_on_its_way_is_stored_once() {
    let mut world = World::on_postgres().await;
    world.execute("CREATE TABLE public.once (id int)").await;
    slow_commit(&world, "INSERT ON public.once DEFERRABLE INITIALLY DEFERRED FOR EACH ROW").await;
    let mut order = inline("once", &json!([{ "id": 1 }, { "id": 2 }, { "id": 3 }]));
    order["config"] = json!({ "table": "once", "operation": "insert" });
    let job = cut_in_the_commit(&mut world, &order).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(job["progress"]["success_count"], 3, "{job}");
    assert_eq!(world.count("public.once").await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_claim_nobody_heard_of_is_run() {
    let mut world = World::on_postgres().await;
    let claim = "UPDATE ON kodus_workflow.writer_jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
                 WHEN (OLD.held_by IS NULL AND NEW.held_by IS NOT NULL)";
    slow_commit(&world, claim).await;
    let job = cut_in_the_commit(&mut world, &inline("ads", &json!([{ "id": "a" }]))).await;
    assert_eq!(job["status"], "completed", "{job}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sealed_is_removed_though_nobody_heard_of_the_end() {
    let mut world = World::on_postgres().await;
    let end = "UPDATE ON kodus_workflow.writer_jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
               WHEN (OLD.completed_at IS NULL AND NEW.completed_at IS NOT NULL)";
    slow_commit(&world, end).await;
    let site = Site::serve(|_, _| Answer::ok(r#"[{"id":"a"}]"#)).await;
    let job = cut_in_the_commit(&mut world, &with_header(&site)).await;
    assert_eq!(job["status"], "completed", "{job}");
    world.stop().await;
    let stored = world.all_text().await;
    assert!(!stored.contains("writer/"), "{stored}");
}

fn with_header(site: &Site) -> Value {
    let mut order = from_url("ads", &site.url("/x"), "");
    order["source"]["headers"] = json!({ "Authorization": "Bearer marker-0008" });
    order
}

/// Takes an order with a header, and runs it in another process: what was sealed must be read.
async fn leave_to_the_next(world: &mut World, site: &Site) -> String {
    let names = std::sync::Arc::new(lavra_writer::SystemNames);
    world.start_as(World::config(), names, false).await;
    let (_, answer) = world.post(&with_header(site)).await;
    world.kill();
    answer["job_id"].as_str().unwrap().to_owned()
}

async fn a_secret_that_cannot_be_read_for_now_is_asked_for_again(mut world: World) {
    let site = Site::serve(|_, _| Answer::ok(r#"[{"id":"a"}]"#)).await;
    let id = leave_to_the_next(&mut world, &site).await;
    world
        .execute(
            "CREATE SEQUENCE public.looks;
             CREATE FUNCTION public.is_there(name text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
                 IF name LIKE 'writer/%' AND nextval('public.looks') < 4 THEN
                     RAISE EXCEPTION 'busy' USING ERRCODE = '57P03';
                 END IF;
                 RETURN true;
             END $$;
             ALTER TABLE lavra.secrets RENAME TO sealed;
             CREATE VIEW lavra.secrets AS SELECT * FROM lavra.sealed WHERE public.is_there(name)",
        )
        .await;
    world.start().await;
    let job = world.end_of(&id).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert!(site.requests()[0].contains("marker-0008"));
}

/// Whoever should have removed it died before; what is of a job that waits, or is nobody's, stays.
async fn what_is_sealed_for_jobs_that_are_over_is_removed(mut world: World) {
    let site = Site::serve(|_, _| Answer::ok(r#"[{"id":"a"}]"#)).await;
    let id = leave_to_the_next(&mut world, &site).await;
    let digest = "0".repeat(32);
    world
        .execute(&format!(
            "INSERT INTO lavra.secrets (name, sealed) VALUES
                ('writer/gone/{digest}', CAST('x' AS BYTEA)), ('writer/key', CAST('x' AS BYTEA));
             UPDATE lavra.secrets SET updated_at = now() - INTERVAL '2 hours';
             INSERT INTO lavra.secrets (name, sealed) VALUES
                ('writer/new/{digest}', CAST('x' AS BYTEA))"
        ))
        .await;
    world.start().await;
    assert_eq!(world.end_of(&id).await["status"], "completed");
    assert!(site.requests()[0].contains("marker-0008"));
    let expected = json!([["writer/key"], [format!("writer/new/{digest}")]]);
    soon(&world, "SELECT name FROM lavra.secrets ORDER BY name", &expected).await;
    world.stop().await;
}
