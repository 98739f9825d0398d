//! Tables that are there, and tables that are made, the same on each engine.

use serde_json::json;

use crate::support::{World, failed, from_file, inline, with_files};

lavra_testkit::on_each_engine!(
    a_missing_table_is_a_schema_error,
    a_missing_table_is_made_when_that_is_asked_for,
    a_table_is_made_with_the_key_of_an_insert,
    a_table_that_is_made_keeps_every_digit,
    generated_columns_are_left_to_the_table,
);

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
