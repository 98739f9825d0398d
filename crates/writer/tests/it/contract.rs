//! What a writer does, the same on each engine.

use std::time::Duration;

use lavra_writer::{Config, Limits};
use serde_json::{Value, json};

use crate::support::{
    Answer, Site, World, failed, from_file, from_url, inline, things, with_files,
};

lavra_testkit::on_each_engine!(
    elements_become_rows_and_the_whole_of_each_stands_in_data,
    an_upsert_changes_what_is_there_and_leaves_what_is_not_said,
    keys_without_a_column_are_counted,
    an_empty_array_is_done,
    elements_with_many_shapes_are_stored,
    an_array_deep_within_is_found_by_its_path,
    what_came_before_something_that_is_no_json_is_stored,
    schemas_of_lavra_itself_are_not_for_data,
    no_more_jobs_run_at_once_than_may,
);

async fn elements_become_rows_and_the_whole_of_each_stands_in_data(mut world: World) {
    world.start().await;
    let ads = json!([
        { "id": "ad1", "text": "a 'quoted' \\ thing", "n": 1.50 },
        { "id": "ad2", "data": { "own": true } },
    ]);
    let job = world.run(&inline("ads", &ads)).await;
    assert_eq!(job["status"], "completed", "{job}");
    let progress = json!({
        "total": 2, "processed": 2, "success_count": 2, "failed_count": 0, "duplicate_count": 0,
    });
    assert_eq!(job["progress"], progress);
    assert!(job["started_at"].is_string() && job["completed_at"].is_string());
    let rows = world.ask("SELECT id, data FROM public.ads ORDER BY id").await;
    assert_eq!(rows, [vec![json!("ad1"), ads[0].clone()], vec![json!("ad2"), ads[1].clone()]]);
    let first =
        world.ask("SELECT first_seen_at, last_seen_at FROM public.ads WHERE id = 'ad1'").await;
    world.run(&inline("ads", &json!([{ "id": "ad1", "text": "new" }]))).await;
    let second =
        world.ask("SELECT first_seen_at, last_seen_at FROM public.ads WHERE id = 'ad1'").await;
    assert_eq!(first[0][0], second[0][0], "it was seen first when it was seen first");
    assert_ne!(first[0][1], second[0][1], "it was seen again");
}

async fn an_upsert_changes_what_is_there_and_leaves_what_is_not_said(mut world: World) {
    things(&world).await;
    world.start().await;
    world.run(&inline("things", &json!([
        { "id": 1, "name": "one", "price": 1.25, "note": "kept" }, { "id": 2, "name": "two" },
    ]))).await;
    let job = world
        .run(&inline(
            "things",
            &json!([
                { "id": 1, "name": "ONE", "price": null }, { "id": "3", "name": "three" },
            ]),
        ))
        .await;
    assert_eq!(job["status"], "completed", "{job}");
    let rows =
        world.ask("SELECT id, name, price IS NULL AS p, note FROM public.things ORDER BY id").await;
    assert_eq!(
        json!(rows),
        json!([[1, "ONE", true, "kept"], [2, "two", true, "none"], [3, "three", true, "none"],])
    );
}

async fn keys_without_a_column_are_counted(mut world: World) {
    things(&world).await;
    world.start().await;
    let job = world.run(&inline("things", &json!([
        { "id": 1, "name": "a", "colour": "red" }, { "id": 2, "name": "b", "colour": 1, "size": {} },
    ]))).await;
    assert_eq!(job["unknown_keys"], json!({ "colour": 2, "size": 1 }), "{job}");
    assert_eq!(job["status"], "completed");
}

async fn an_empty_array_is_done(mut world: World) {
    world.start().await;
    let job = world.run(&inline("ads", &json!([]))).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(job["progress"]["total"], 0);
}

async fn elements_with_many_shapes_are_stored(mut world: World) {
    things(&world).await;
    world.start().await;
    let elements: Vec<Value> = (0..200)
        .map(|n| {
            let mut element = json!({ "id": n, "name": "x" });
            if n % 2 == 0 {
                element["price"] = json!(n);
            }
            if n % 3 == 0 {
                element["note"] = json!("n");
            }
            if n % 5 == 0 {
                element["seen"] = json!("2024-01-01T00:00:00");
            }
            element
        })
        .collect();
    let job = world.run(&inline("things", &json!(elements))).await;
    assert_eq!(job["status"], "completed", "{job}");
    let rows = world.ask("SELECT count(price) AS p, count(seen) AS s, count(*) FILTER (WHERE note = 'none') AS n FROM public.things").await;
    assert_eq!(json!(rows), json!([[100, 40, 133]]));
}

async fn an_array_deep_within_is_found_by_its_path(mut world: World) {
    world.start().await;
    let mut order = inline(
        "ads",
        &json!({
            "a": { "e": [{ "id": "no" }], "b": { "c": { "x": [], "d": { "e": [{ "id": "yes" }] } } } },
        }),
    );
    order["source"]["json_path"] = json!("a.b.c.d.e");
    let job = world.run(&order).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(json!(world.ask("SELECT id FROM public.ads").await), json!([["yes"]]));
    order["source"]["json_path"] = json!("a.b.c.d.f");
    let job = world.run(&order).await;
    assert_eq!(job["error_code"], "ERROR303", "{job}");
}

async fn what_came_before_something_that_is_no_json_is_stored(mut world: World) {
    world.start_with(with_files(&world)).await;
    for operation in ["upsert", "insert"] {
        world.execute("DELETE FROM public.ads").await;
        let lines =
            "{\"id\":\"a\"}\n{\"no\":\"key\"}\n{\"id\":\"b\"}\n{\"id\": oops}\n{\"id\":\"c\"}\n";
        let mut order = from_file(&world, "ads", lines);
        order["config"]["operation"] = json!(operation);
        let job = world.run(&order).await;
        assert_eq!(
            (&job["status"], &job["error_code"]),
            (&json!("failed"), &json!("ERROR400")),
            "{job}"
        );
        assert_eq!(job["progress"]["processed"], 3, "{job}");
        assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [1], "{job}");
        let rows = world.ask("SELECT id FROM public.ads ORDER BY id").await;
        assert_eq!(json!(rows), json!([["a"], ["b"]]), "{operation}");
    }
}

async fn schemas_of_lavra_itself_are_not_for_data(mut world: World) {
    for schema in ["lavra", "psa", "kodus_workflow"] {
        let sql = format!(
            "CREATE SCHEMA IF NOT EXISTS {schema};
             CREATE TABLE {schema}.own (id VARCHAR PRIMARY KEY)"
        );
        world.execute(&sql).await;
    }
    world.start().await;
    for schema in ["lavra", "psa", "kodus_workflow"] {
        for table in ["own", "new"] {
            let mut order = inline(table, &json!([{ "id": "a" }]));
            order["config"]["schema"] = json!(schema);
            order["config"]["create_table"] = json!(true);
            let job = world.run(&order).await;
            assert_eq!(job["error_code"], "ERROR303", "{schema}.{table}: {job}");
            assert!(job["error_message"].as_str().unwrap().contains("not for data"), "{job}");
        }
    }
}

async fn no_more_jobs_run_at_once_than_may(mut world: World) {
    let limits = Limits { running: 2, ..Limits::default() };
    world.start_with(Config { limits, ..World::config() }).await;
    let pause = Some(Duration::from_millis(40));
    let site = Site::serve(move |_, _| Answer {
        pause,
        ..Answer::ok(r#"[{"id":"a"},{"id":"bcdefghi"}]"#)
    })
    .await;
    for number in 0..5 {
        let mut order = from_url("ads", &site.url("/x"), "");
        order["job_id"] = json!(format!("job-{number}"));
        assert_eq!(world.post(&order).await.0, 200);
    }
    let held = "SELECT count(*) AS n FROM kodus_workflow.writer_jobs
                WHERE held_by IS NOT NULL AND completed_at IS NULL";
    let open = "SELECT count(*) AS n FROM kodus_workflow.writer_jobs WHERE completed_at IS NULL";
    let mut most = json!(0);
    while json!(world.ask(open).await) != json!([[0]]) {
        let now = world.ask(held).await[0][0].clone();
        most = json!(most.as_i64().max(now.as_i64()));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(most, 2);
    assert_eq!(world.end_of("job-4").await["status"], "completed");
}
