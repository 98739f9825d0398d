//! What a writer does, the same on each engine.

use std::time::Duration;

use lavra_writer::{Config, Limits};
use serde_json::{Value, json};

use crate::support::{Answer, Site, World, failed, from_url, inline, things};

lavra_testkit::on_each_engine!(
    elements_become_rows_and_the_whole_of_each_stands_in_data,
    an_upsert_changes_what_is_there_and_leaves_what_is_not_said,
    the_last_of_one_key_wins_and_the_others_are_counted,
    what_only_an_earlier_element_of_a_key_says_stays,
    one_key_written_in_two_ways_is_one_key_whatever_else_is_said,
    keys_of_a_type_that_is_not_known_are_written_in_their_order,
    keys_without_a_column_are_counted,
    types_are_those_of_the_table,
    numbers_keep_all_their_digits,
    of_a_key_that_stands_twice_the_last_one_counts,
    what_is_no_whole_number_is_not_rounded_to_one,
    a_missing_table_is_a_schema_error,
    a_key_without_a_unique_index_is_a_schema_error,
    a_missing_table_is_made_when_that_is_asked_for,
    a_table_is_made_with_the_key_of_an_insert,
    several_columns_can_be_the_key,
    generated_columns_are_left_to_the_table,
    an_empty_array_is_done,
    elements_with_many_shapes_are_stored,
    an_array_deep_within_is_found_by_its_path,
    what_came_before_something_that_is_no_json_is_stored,
    schemas_of_lavra_itself_are_not_for_data,
    a_table_that_is_made_keeps_every_digit,
    numbers_within_lists_keep_all_their_digits,
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

async fn the_last_of_one_key_wins_and_the_others_are_counted(mut world: World) {
    things(&world).await;
    world.start().await;
    let job = world.run(&inline("things", &json!([
        { "id": 1, "name": "a" }, { "id": 2, "name": "b" }, { "id": 1, "name": "c" }, { "id": 1, "name": "d" },
    ]))).await;
    assert_eq!(job["progress"]["duplicate_count"], 2, "{job}");
    assert_eq!(job["progress"]["success_count"], 4);
    let rows = world.ask("SELECT id, name FROM public.things ORDER BY id").await;
    assert_eq!(json!(rows), json!([[1, "d"], [2, "b"]]));
    // The same key, written otherwise.
    let job = world
        .run(&inline("things", &json!([{ "id": 5, "name": "e" }, { "id": "5", "name": "f" }])))
        .await;
    assert_eq!(job["status"], "completed", "{job}");
    let rows = world.ask("SELECT name FROM public.things WHERE id = 5").await;
    assert_eq!(json!(rows), json!([["f"]]));
}

async fn what_only_an_earlier_element_of_a_key_says_stays(mut world: World) {
    things(&world).await;
    world.start().await;
    let elements = json!([
        { "id": 1, "name": "a", "price": 1.5 },
        { "id": 1, "name": "b", "note": "said" },
        { "id": 2, "name": "c", "note": "old" },
        { "id": 2, "name": "d", "note": null },
        { "id": 1, "name": "e" },
    ]);
    for _once_and_again in 0..2 {
        let job = world.run(&inline("things", &elements)).await;
        assert_eq!(job["progress"]["duplicate_count"], 3, "{job}");
        let rows = world
            .ask("SELECT id, name, price = 1.5 AS p, note FROM public.things ORDER BY id")
            .await;
        assert_eq!(json!(rows), json!([[1, "e", true, "said"], [2, "d", null, null]]));
    }
}

async fn one_key_written_in_two_ways_is_one_key_whatever_else_is_said(mut world: World) {
    things(&world).await;
    world
        .execute(
            "CREATE TABLE public.texts (id VARCHAR PRIMARY KEY, name VARCHAR, note VARCHAR);
             CREATE TABLE public.uuids (id UUID PRIMARY KEY, name VARCHAR, note VARCHAR);",
        )
        .await;
    world.start_with(with_files(&world)).await;
    let uuid = "550e8400-e29b-41d4-a716-44665544000a";
    // Elements of two shapes, of which the one that comes first is written first.
    for (table, other, one, same) in [
        ("things", "1", "5".to_owned(), "\"5\"".to_owned()),
        ("things", "1", "6.0".into(), "6".into()),
        ("texts", "\"x\"", "\"\u{e9}\"".into(), r#""\u00e9""#.into()),
        (
            "uuids",
            "\"550e8400-e29b-41d4-a716-446655440000\"",
            format!("\"{uuid}\""),
            format!("\"{}\"", uuid.to_uppercase()),
        ),
    ] {
        let elements = format!(
            r#"[{{"id":{other},"name":"x"}},{{"id":{one},"name":"old","note":"n"}},
                {{"id":{same},"name":"new"}}]"#
        );
        let job = world.run(&from_file(&world, table, &elements)).await;
        assert_eq!(job["status"], "completed", "{job}");
        assert_eq!(job["progress"]["duplicate_count"], 1, "{table}: {job}");
        let sql = format!("SELECT name, note FROM public.{table} WHERE note = 'n'");
        assert_eq!(json!(world.ask(&sql).await), json!([["new", "n"]]), "{table}");
        world.execute(&format!("DELETE FROM public.{table}")).await;
    }
}

async fn keys_of_a_type_that_is_not_known_are_written_in_their_order(mut world: World) {
    world
        .execute(
            "CREATE TABLE public.prices (price DECIMAL(10,2) PRIMARY KEY, name VARCHAR, note VARCHAR)",
        )
        .await;
    world.start().await;
    let mut order = inline(
        "prices",
        &json!([
            { "price": 1, "name": "x" },
            { "price": 5, "name": "old", "note": "n" },
            { "price": "5.00", "name": "new" },
            { "price": 2, "name": "y" },
            { "price": "none", "name": "z" },
            { "price": 2, "name": "last" },
        ]),
    );
    order["config"]["conflict_key"] = json!("price");
    let job = world.run(&order).await;
    assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [4], "{job}");
    let rows = world.ask("SELECT name, note FROM public.prices ORDER BY price").await;
    assert_eq!(json!(rows), json!([["x", null], ["last", null], ["new", "n"]]));
    // And where all are of one shape.
    order["source"]["data"] = json!([
        { "price": "7.00", "name": "first" }, { "price": 7, "name": "second" },
        { "price": "7.0", "name": "third" }, { "price": 6, "name": "other" },
    ]);
    let job = world.run(&order).await;
    assert_eq!(job["status"], "completed", "{job}");
    let rows = world.ask("SELECT name FROM public.prices WHERE price > 5 ORDER BY price").await;
    assert_eq!(json!(rows), json!([["other"], ["third"]]));
}

fn with_files(world: &World) -> Config {
    let mut config = World::config();
    config.access.directories.push(world.directory.path().to_owned());
    config
}

/// An order of elements that stand in a file as they are written here.
fn from_file(world: &World, table: &str, elements: &str) -> Value {
    let file = world.directory.path().join("elements.json");
    std::fs::write(&file, elements).unwrap();
    let mut order = inline(table, &json!([]));
    order["source"] = json!({ "type": "file", "path": file });
    order
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

async fn types_are_those_of_the_table(mut world: World) {
    let json_type = if world.is_duckdb() { "JSON" } else { "JSONB" };
    world
        .execute(&format!(
            "CREATE TABLE public.typed (id BIGINT PRIMARY KEY, flag BOOLEAN, day DATE, moment TIMESTAMPTZ,
                tags VARCHAR[], amount NUMERIC(30,10), doc {json_type}, some_id UUID, \"odd \"\"name\" VARCHAR)"
        ))
        .await;
    world.start().await;
    let job = world.run(&inline("typed", &json!([{
        "id": 9_007_199_254_740_993_i64, "flag": "true", "day": "2024-02-29", "moment": "2024-02-29T12:00:00-03:00",
        "tags": ["a", "b,c", "d\"e"], "amount": 0.1, "doc": { "a": [1, null] },
        "some_id": "550e8400-e29b-41d4-a716-446655440000", "odd \"name": { "x": 1 },
    }]))).await;
    assert_eq!(job["status"], "completed", "{job}");
    let rows = world
        .ask("SELECT id, flag, CAST(day AS VARCHAR) AS day, moment = TIMESTAMPTZ '2024-02-29 15:00:00+00' AS is_at,
                tags[2] AS tag, amount = 0.1 AS is_amount, doc, CAST(some_id AS VARCHAR) AS u,
                replace(\"odd \"\"name\", ' ', '') AS odd
              FROM public.typed")
        .await;
    assert_eq!(
        json!(rows[0]),
        json!([
            9_007_199_254_740_993_i64, true, "2024-02-29", true, "b,c", true, { "a": [1, null] },
            "550e8400-e29b-41d4-a716-446655440000", "{\"x\":1}",
        ])
    );
}

async fn numbers_keep_all_their_digits(mut world: World) {
    let json_type = if world.is_duckdb() { "JSON" } else { "JSONB" };
    world
        .execute(&format!(
            "CREATE TABLE public.exact (id INTEGER PRIMARY KEY, amount DECIMAL(30,10), name VARCHAR,
                doc {json_type}, data {json_type})"
        ))
        .await;
    world.start_with(with_files(&world)).await;
    let number = "12345678901234.123456";
    let elements =
        format!(r#"[{{"id":1,"amount":{number},"name":{number},"doc":{{"a":{number}}}}}]"#);
    let job = world.run(&from_file(&world, "exact", &elements)).await;
    assert_eq!(job["status"], "completed", "{job}");
    let rows = world
        .ask(&format!(
            "SELECT amount = {number} AS is_amount, name, CAST(doc AS VARCHAR) LIKE '%{number}%' AS d,
                CAST(data AS VARCHAR) LIKE '%{number}%' AS w FROM public.exact"
        ))
        .await;
    assert_eq!(json!(rows), json!([[true, number, true, true]]));
}

async fn of_a_key_that_stands_twice_the_last_one_counts(mut world: World) {
    let json_type = if world.is_duckdb() { "JSON" } else { "JSONB" };
    world
        .execute(&format!(
            "CREATE TABLE public.twice (id INTEGER PRIMARY KEY, n INTEGER, doc {json_type}, data {json_type})"
        ))
        .await;
    world.start_with(with_files(&world)).await;
    let element = r#"[{"id":1,"n":1,"n":2,"doc":{"a":[{"b":1,"b":2}]}}]"#;
    let job = world.run(&from_file(&world, "twice", element)).await;
    assert_eq!(job["status"], "completed", "{job}");
    let sql = "SELECT n, CAST(doc->'a'->0->>'b' AS INTEGER) AS b, CAST(data->>'n' AS INTEGER) AS w
               FROM public.twice";
    assert_eq!(json!(world.ask(sql).await), json!([[2, 2, 2]]));
}

async fn what_is_no_whole_number_is_not_rounded_to_one(mut world: World) {
    world
        .execute("CREATE TABLE public.counted (id VARCHAR PRIMARY KEY, n INTEGER, many BIGINT[])")
        .await;
    world.start().await;
    let elements = json!([
        { "id": "a", "n": 1.5 },
        { "id": "b", "n": "2.5" },
        { "id": "c", "n": 7 },
        { "id": "d", "n": "-8" },
        { "id": "e", "n": 12.0 },
        { "id": "f", "n": 9, "many": [1, 2.5] },
        { "id": "g", "n": 10, "many": [1, -2, null] },
        { "id": "h", "n": null },
        { "id": "i", "n": "three" },
        { "id": "j", "n": true },
        { "id": "k", "n": 2_147_483_648_i64 },
        { "id": "l", "n": "13.0" },
        { "id": "m", "n": 1.4e300 },
    ]);
    let job = world.run(&inline("counted", &elements)).await;
    assert_eq!(job["progress"]["success_count"], 5, "{job}");
    let indexes: Vec<u64> = failed(&job).into_keys().collect();
    assert_eq!(indexes, [0, 1, 5, 8, 9, 10, 11, 12]);
    let rows = world.ask("SELECT id, n, many[2] AS second FROM public.counted ORDER BY id").await;
    assert_eq!(
        json!(rows),
        json!([["c", 7, null], ["d", -8, null], ["e", 12, null], ["g", 10, -2], ["h", null, null]])
    );
}

async fn a_missing_table_is_a_schema_error(mut world: World) {
    world.start().await;
    let job = world.run(&inline("nowhere", &json!([{ "id": 1 }]))).await;
    assert_eq!(job["status"], "failed");
    assert_eq!(job["error_code"], "ERROR303");
    let said = job["error_message"].as_str().unwrap();
    assert!(said.contains("public.nowhere") && said.contains("create_table"), "{said}");
    for table in ["missions", "workers"] {
        let job = world.run(&inline(table, &json!([{ "id": "x" }]))).await;
        assert_eq!(job["error_code"], "ERROR303", "{job}");
        assert!(job["error_message"].as_str().unwrap().contains("not for data"), "{job}");
    }
}

async fn a_key_without_a_unique_index_is_a_schema_error(mut world: World) {
    things(&world).await;
    world.start().await;
    for (operation, key) in [
        ("upsert", "name"),
        ("upsert", "nothing"),
        ("upsert", "id,name"),
        ("insert", "name"),
        ("insert", "nothing"),
    ] {
        let mut order = inline("things", &json!([{ "id": 1, "name": "a" }]));
        order["config"]["operation"] = json!(operation);
        order["config"]["conflict_key"] = json!(key);
        let job = world.run(&order).await;
        assert_eq!(job["error_code"], "ERROR303", "{job}");
        assert!(job["error_message"].as_str().unwrap().contains("unique index"), "{job}");
    }
}

async fn a_missing_table_is_made_when_that_is_asked_for(mut world: World) {
    world.start().await;
    let mut order = inline(
        "made",
        &json!([
            { "id": "a", "n": 1, "x": 1, "ok": true, "tags": [1], "bad name\"; --": 1 },
            { "id": "b", "n": 2, "x": 2.5, "ok": null, "tags": {} },
        ]),
    );
    order["config"]["create_table"] = json!(true);
    let job = world.run(&order).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(job["unknown_keys"], json!({ "bad name\"; --": 1 }));
    let rows =
        world.ask("SELECT id, n, x = n * 1.0 AS is_x, ok, tags FROM public.made ORDER BY id").await;
    assert_eq!(json!(rows), json!([["a", 1, true, true, [1]], ["b", 2, false, null, {}]]));
    let job = world.run(&inline("made", &json!([{ "id": "b", "n": 3 }]))).await;
    assert_eq!(job["status"], "completed", "its key is one: {job}");
    assert_eq!(world.count("public.made").await, 2);
}

async fn a_table_is_made_with_the_key_of_an_insert(mut world: World) {
    world.start().await;
    let mut order = inline("made", &json!([{ "id": 1, "n": 1 }, { "id": 1, "n": 2 }]));
    order["config"]["operation"] = json!("insert");
    order["config"]["create_table"] = json!(true);
    let job = world.run(&order).await;
    assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [1], "{job}");
    order["config"]["schema"] = json!("nowhere");
    let job = world.run(&order).await;
    assert_eq!(job["error_code"], "ERROR303", "{job}");
    assert!(job["error_message"].as_str().unwrap().contains("no schema \"nowhere\""), "{job}");
    let mut order = inline("cases", &json!([{ "id": 1, "Name": "a", "name": "b" }]));
    order["config"]["create_table"] = json!(true);
    let job = world.run(&order).await;
    if world.is_duckdb() {
        assert_eq!(job["error_code"], "ERROR303", "{job}");
        assert!(job["error_message"].as_str().unwrap().contains("one name"), "{job}");
    } else {
        assert_eq!(job["status"], "completed", "{job}");
    }
}

async fn several_columns_can_be_the_key(mut world: World) {
    world
        .execute("CREATE TABLE public.pairs (a INTEGER, b VARCHAR, v INTEGER, UNIQUE (a, b))")
        .await;
    world.start().await;
    for key in [json!(["b", "a"]), json!("a, b")] {
        let mut order = inline(
            "pairs",
            &json!([
                { "a": 1, "b": "x", "v": 1 }, { "a": 1, "b": "y", "v": 2 }, { "a": 1, "b": "x", "v": 3 },
                { "a": 1, "b": null, "v": 4 },
            ]),
        );
        order["config"]["conflict_key"] = key;
        let job = world.run(&order).await;
        assert_eq!(job["progress"]["duplicate_count"], 1, "{job}");
        assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [3]);
    }
    let rows = world.ask("SELECT a, b, v FROM public.pairs ORDER BY b").await;
    assert_eq!(json!(rows), json!([[1, "x", 3], [1, "y", 2]]));
}

async fn generated_columns_are_left_to_the_table(mut world: World) {
    let stored = if world.is_duckdb() { "" } else { "STORED" };
    world
        .execute(&format!(
            "CREATE TABLE public.sums (id INTEGER PRIMARY KEY, a INTEGER, twice INTEGER GENERATED ALWAYS AS (a * 2) {stored})"
        ))
        .await;
    world.start().await;
    let job = world.run(&inline("sums", &json!([{ "id": 1, "a": 4, "twice": 100 }]))).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(json!(world.ask("SELECT id, a, twice FROM public.sums").await), json!([[1, 4, 8]]));
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

/// Numbers that no double tells apart, as keys and as values.
async fn a_table_that_is_made_keeps_every_digit(mut world: World) {
    world.start_with(with_files(&world)).await;
    let made = async |name: &str, elements: &str| {
        let mut order = from_file(&world, name, elements);
        order["config"]["create_table"] = json!(true);
        let job = world.run(&order).await;
        assert_eq!(job["status"], "completed", "{job}");
        assert_eq!(job["progress"]["duplicate_count"], 0, "{job}");
    };
    made(
        "large",
        r#"[{"id":36893488147419103232,"v":12345678901234.123456,"w":1},
            {"id":36893488147419103233,"v":1,"w":1e300},
            {"id":-99999999999999999999999999999999999999,"v":0.25,"w":0.5}]"#,
    )
    .await;
    let rows = world
        .ask(
            "SELECT CAST(id AS VARCHAR) AS id, v = 12345678901234.123456 AS is_v, w = 0.5 AS is_w
              FROM public.large ORDER BY id",
        )
        .await;
    assert_eq!(
        json!(rows),
        json!([
            ["-99999999999999999999999999999999999999", false, true],
            ["36893488147419103232", true, false],
            ["36893488147419103233", false, false],
        ])
    );
    // Keys with a fraction, and those that are no number of any engine's own.
    made("fractions", r#"[{"id":9007199254740993.1},{"id":9007199254740993.2},{"id":7}]"#).await;
    assert_eq!(world.count("public.fractions").await, 3);
    let nines = "9".repeat(39);
    made("longest", &format!(r#"[{{"id":{nines}}},{{"id":{}8}}]"#, &nines[1..])).await;
    assert_eq!(world.count("public.longest").await, 2);
}

async fn numbers_within_lists_keep_all_their_digits(mut world: World) {
    world
        .execute(
            "CREATE TABLE public.exact (id INTEGER PRIMARY KEY, amounts DECIMAL(30,10)[], names VARCHAR[])",
        )
        .await;
    world.start_with(with_files(&world)).await;
    let number = "12345678901234.123456";
    let elements =
        format!(r#"[{{"id":1,"amounts":[{number},null,"{number}"],"names":[1.50,"a\"1",true]}}]"#);
    let job = world.run(&from_file(&world, "exact", &elements)).await;
    assert_eq!(job["status"], "completed", "{job}");
    let rows = world
        .ask(&format!(
            "SELECT amounts[1] = {number} AS one, amounts[2] IS NULL AS two,
                amounts[3] = {number} AS three, names[1] AS a, names[2] AS b, names[3] AS c
             FROM public.exact"
        ))
        .await;
    assert_eq!(json!(rows), json!([[true, true, true, "1.50", "a\"1", "true"]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_struct_and_a_map_take_numbers_as_columns_do() {
    let mut world = World::on_duckdb().await;
    world
        .execute(
            "CREATE TABLE public.nested (id INTEGER PRIMARY KEY,
                s STRUCT(a INTEGER, \"b, c\" DECIMAL(30,10), l BIGINT[], t VARCHAR, j JSON),
                m MAP(VARCHAR, INTEGER), n MAP(INTEGER, DECIMAL(30,10)))",
        )
        .await;
    world.start_with(with_files(&world)).await;
    let number = "12345678901234.123456";
    let elements = format!(
        r#"[{{"id":0,"s":{{"a":1,"b, c":{number},"l":[9007199254740993],"t":1.50,"j":{{"x":1.5}}}}}},
            {{"id":1,"s":{{"a":1.5}}}}, {{"id":2,"s":{{"l":[1,2.5]}}}}, {{"id":3,"m":{{"k":1.5}}}},
            {{"id":4,"m":{{"k":7}},"n":{{"3":{number}}}}}, {{"id":5,"n":{{"1.5":1}}}},
            {{"id":6,"s":{{"a":"1.5"}}}}, {{"id":7,"s":null}}]"#
    );
    let job = world.run(&from_file(&world, "nested", &elements)).await;
    assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [1, 2, 3, 5, 6], "{job}");
    let rows = world
        .ask(&format!(
            "SELECT s.a, s['b, c'] = {number} AS b, s.l[1] AS l, s.t, s.j, m['k'] AS m,
                n[3] = {number} AS n
             FROM public.nested ORDER BY id"
        ))
        .await;
    assert_eq!(
        json!(rows),
        json!([
            [1, true, 9_007_199_254_740_993_i64, "1.50", { "x": 1.5 }, null, null],
            [null, null, null, null, null, 7, true],
            [null, null, null, null, null, null, null],
        ])
    );
}
