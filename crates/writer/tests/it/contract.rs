//! What a writer does, the same on each engine.

use std::time::{Duration, Instant};

use lavra_writer::{Config, Limits};
use serde_json::{Value, json};

use crate::support::{World, failed, inline};

lavra_testkit::on_each_engine!(
    elements_become_rows_and_the_whole_of_each_stands_in_data,
    an_upsert_changes_what_is_there_and_leaves_what_is_not_said,
    exactly_the_bad_rows_fail,
    no_bad_row_in_ten_thousand_and_none_fails,
    one_bad_row_in_ten_thousand_fails_alone,
    ten_bad_rows_in_ten_thousand_fail_and_no_others,
    a_thousand_bad_rows_in_ten_thousand_fail_and_no_others,
    elements_that_cannot_be_rows_are_failed_items,
    the_last_of_one_key_wins_and_the_others_are_counted,
    what_only_an_earlier_element_of_a_key_says_stays,
    one_key_written_in_two_ways_is_one_key_whatever_else_is_said,
    keys_of_a_type_that_is_not_known_are_written_in_their_order,
    a_bad_row_does_not_take_the_one_before_it_along,
    keys_without_a_column_are_counted,
    an_insert_of_what_is_there_is_a_failed_item,
    of_two_inserts_with_one_key_the_second_is_a_failed_item,
    a_second_key_that_is_taken_fails_the_row_of_an_upsert,
    duplicates_among_inserts_cost_little,
    types_are_those_of_the_table,
    numbers_keep_all_their_digits,
    what_is_no_whole_number_is_not_rounded_to_one,
    a_missing_table_is_a_schema_error,
    a_key_without_a_unique_index_is_a_schema_error,
    a_missing_table_is_made_when_that_is_asked_for,
    a_table_is_made_with_the_key_of_an_insert,
    several_columns_can_be_the_key,
    generated_columns_are_left_to_the_table,
    nothing_stored_is_a_failure,
    an_empty_array_is_done,
    elements_with_many_shapes_are_stored,
    failed_items_beyond_what_is_kept_are_counted,
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

async fn things(world: &World) {
    world
        .execute(
            "CREATE TABLE public.things (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL,
                price DECIMAL(10,2), seen TIMESTAMP, note VARCHAR DEFAULT 'none',
                CHECK (price >= 0))",
        )
        .await;
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

/// `count` elements, every `every`th of them bad in one way or another.
fn some_bad(count: u64, is_bad: impl Fn(u64) -> bool) -> Vec<Value> {
    (0..count)
        .map(|n| match (is_bad(n), n % 3) {
            (false, _) => json!({ "id": n, "name": format!("name {n}"), "price": 1.5 }),
            (true, 0) => json!({ "id": format!("x{n}"), "name": "a bad id" }),
            (true, 1) => json!({ "id": n, "name": null }),
            (true, _) => json!({ "id": n, "name": "a bad price", "price": -1 }),
        })
        .collect()
}

async fn check_bad(world: &World, elements: &[Value], is_bad: impl Fn(u64) -> bool) {
    let job = world.run(&inline("things", &json!(elements))).await;
    let bad: Vec<u64> = (0..elements.len() as u64).filter(|n| is_bad(*n)).collect();
    let items = failed(&job);
    assert_eq!(items.keys().copied().collect::<Vec<_>>(), bad);
    for (index, item) in &items {
        assert_eq!(item["data"], elements[*index as usize]);
        assert!(item["error"].as_str().unwrap().len() > 5, "{item}");
    }
    assert_eq!(job["progress"]["failed_count"], bad.len());
    assert_eq!(job["progress"]["success_count"], elements.len() - bad.len());
    assert_eq!(job["status"], if bad.is_empty() { "completed" } else { "partial" });
    assert_eq!(world.count("public.things").await, (elements.len() - bad.len()) as i64);
}

async fn exactly_the_bad_rows_fail(mut world: World) {
    things(&world).await;
    world.start().await;
    let is_bad = |n| n % 100 == 7;
    check_bad(&world, &some_bad(1000, is_bad), is_bad).await;
}

async fn no_bad_row_in_ten_thousand_and_none_fails(mut world: World) {
    things(&world).await;
    world.start().await;
    check_bad(&world, &some_bad(10_000, |_| false), |_| false).await;
}

async fn one_bad_row_in_ten_thousand_fails_alone(mut world: World) {
    things(&world).await;
    world.start().await;
    let is_bad = |n| n == 6543;
    check_bad(&world, &some_bad(10_000, is_bad), is_bad).await;
}

async fn ten_bad_rows_in_ten_thousand_fail_and_no_others(mut world: World) {
    things(&world).await;
    world.start().await;
    let is_bad = |n: u64| n % 1000 == 321;
    check_bad(&world, &some_bad(10_000, is_bad), is_bad).await;
}

async fn a_thousand_bad_rows_in_ten_thousand_fail_and_no_others(mut world: World) {
    things(&world).await;
    world.start().await;
    let is_bad = |n: u64| n % 10 == 3;
    check_bad(&world, &some_bad(10_000, is_bad), is_bad).await;
}

async fn elements_that_cannot_be_rows_are_failed_items(mut world: World) {
    world.start().await;
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let text = format!(
        r#"[{{"id":"good"}}, 7, null, {{"id":"nul","t":"a\u0000b"}}, {{"id":"deep","d":{deep}}},
           {{"id":"long","n":{}}}, {{"id":"power","n":1e100000}}, {{"id":"half","t":"\ud800"}},
           {{"no":"key"}}, {{"id":null}}, {{"id":"also good"}}]"#,
        "9".repeat(100_000)
    );
    let body = format!(
        r#"{{"config":{{"table":"ads","operation":"upsert","conflict_key":"id"}},
            "source":{{"type":"inline","data":{text}}}}}"#
    );
    let sent = world.http().post(format!("{}/process", world.base()));
    let sent = sent.header("x-api-key", crate::support::KEY).body(body).send().await.unwrap();
    let answer: Value = serde_json::from_str(&sent.text().await.unwrap()).unwrap();
    let job = world.end_of(answer["job_id"].as_str().unwrap()).await;
    let said: Vec<(u64, String)> =
        failed(&job).iter().map(|(index, item)| (*index, item["error"].to_string())).collect();
    let expected = [
        (1, "not an object"),
        (2, "not an object"),
        (3, "NUL"),
        (4, "nested"),
        (5, "100000 characters"),
        (6, "exponent"),
        (7, "surrogate"),
        (8, "no value for the key"),
        (9, "no value for the key"),
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for ((index, said), (expected, words)) in said.iter().zip(expected) {
        assert_eq!(*index, expected);
        assert!(said.contains(words), "{index}: {said}");
    }
    let rows = world.ask("SELECT id FROM public.ads ORDER BY id").await;
    assert_eq!(json!(rows), json!([["also good"], ["good"]]));
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

async fn a_bad_row_does_not_take_the_one_before_it_along(mut world: World) {
    things(&world).await;
    world.start().await;
    let job = world.run(&inline("things", &json!([
        { "id": 1, "name": "good" }, { "id": 1, "name": null }, { "id": 2, "name": "other" },
    ]))).await;
    assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [1], "{job}");
    let rows = world.ask("SELECT id, name FROM public.things ORDER BY id").await;
    assert_eq!(json!(rows), json!([[1, "good"], [2, "other"]]));
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

async fn an_insert_of_what_is_there_is_a_failed_item(mut world: World) {
    things(&world).await;
    world.execute("INSERT INTO public.things (id, name) VALUES (2, 'old')").await;
    world.start().await;
    let mut order = inline(
        "things",
        &json!([
            { "id": 1, "name": "a" }, { "id": 2, "name": "b" }, { "id": 3, "name": "c" },
        ]),
    );
    order["config"]["operation"] = json!("insert");
    let job = world.run(&order).await;
    let items = failed(&job);
    assert_eq!(items.keys().copied().collect::<Vec<_>>(), [1], "{job}");
    assert!(items[&1]["error"].as_str().unwrap().to_lowercase().contains("duplicate key"), "{job}");
    let rows = world.ask("SELECT id, name FROM public.things ORDER BY id").await;
    assert_eq!(json!(rows), json!([[1, "a"], [2, "old"], [3, "c"]]));
}

async fn of_two_inserts_with_one_key_the_second_is_a_failed_item(mut world: World) {
    world
        .execute(
            "CREATE TABLE public.twins (id INTEGER PRIMARY KEY, a VARCHAR, b INTEGER DEFAULT 7,
                UNIQUE (a, b))",
        )
        .await;
    world.start().await;
    // A key again, another key again, and what only seems to be one: of a row that failed, or none.
    let elements = json!([
        { "id": 1, "a": "x", "b": 1 },
        { "id": 1, "a": "y", "b": 1 },
        { "id": 2, "a": "y", "b": 1 },
        { "id": 3, "a": "x", "b": 1 },
        { "id": 4, "a": null, "b": 1 },
        { "id": 5, "a": null, "b": 1 },
        { "id": 6, "a": "z" },
        { "id": 7, "a": "z", "b": 7 },
        { "id": "6", "a": "last" },
    ]);
    let mut order = inline("twins", &elements);
    order["config"]["operation"] = json!("insert");
    let job = world.run(&order).await;
    let items = failed(&job);
    assert_eq!(items.keys().copied().collect::<Vec<_>>(), [1, 3, 7, 8], "{job}");
    for item in items.values() {
        let said = item["error"].as_str().unwrap().to_lowercase();
        assert!(said.contains("duplicate key"), "{said}");
    }
    let rows = world.ask("SELECT id FROM public.twins ORDER BY id").await;
    assert_eq!(json!(rows), json!([[1], [2], [4], [5], [6]]));
}

async fn a_second_key_that_is_taken_fails_the_row_of_an_upsert(mut world: World) {
    world.execute("CREATE TABLE public.named (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE)").await;
    world.execute("INSERT INTO public.named VALUES (1, 'one')").await;
    world.start().await;
    let mut elements: Vec<Value> =
        (2..1500).map(|n| json!({ "id": n, "name": format!("n{n}") })).collect();
    elements[3]["name"] = json!("one");
    elements[1200]["name"] = json!("n7");
    let job = world.run(&inline("named", &json!(elements))).await;
    assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [3, 1200], "{job}");
    assert_eq!(world.count("public.named").await, 1497);
}

async fn duplicates_among_inserts_cost_little(mut world: World) {
    things(&world).await;
    world.start().await;
    let took = async |world: &World, first: u64, has_duplicates: bool| {
        let id = |n: u64| if has_duplicates && n % 100 == 7 { first + n - 1 } else { first + n };
        let elements: Vec<Value> =
            (0..10_000).map(|n| json!({ "id": id(n), "name": format!("name {n}") })).collect();
        let mut order = inline("things", &json!(elements));
        order["config"]["operation"] = json!("insert");
        let begun = Instant::now();
        let job = world.run(&order).await;
        assert_eq!(failed(&job).len(), if has_duplicates { 100 } else { 0 });
        begun.elapsed()
    };
    let clean = took(&world, 0, false).await;
    let bad = took(&world, 100_000, true).await;
    // Far more than it takes, far less than row by row.
    assert!(bad < clean * 6 + Duration::from_millis(500), "{bad:?}, {clean:?} without");
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

async fn nothing_stored_is_a_failure(mut world: World) {
    things(&world).await;
    world.start().await;
    let job = world.run(&inline("things", &json!([{ "id": "x" }, { "id": "y" }]))).await;
    assert_eq!(job["status"], "failed", "{job}");
    assert_eq!(job["error_code"], "ERROR303");
    assert_eq!(failed(&job).len(), 2);
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

async fn failed_items_beyond_what_is_kept_are_counted(mut world: World) {
    let limits = Limits { failed_items: 15, batch_rows: 10, ..Limits::default() };
    world.start_with(Config { limits, ..World::config() }).await;
    let mut elements: Vec<Value> = (0..40).map(Value::from).collect();
    elements.push(json!({ "id": "good" }));
    let job = world.run(&inline("ads", &json!(elements))).await;
    assert_eq!(job["status"], "partial", "{job}");
    assert_eq!(job["progress"]["failed_count"], 40);
    assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), (0..15).collect::<Vec<_>>());
    assert_eq!(job["failed_items_omitted"], 25);
}
