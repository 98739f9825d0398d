//! What becomes of numbers, texts and what they are nested in, the same on each engine.

use serde_json::json;

use crate::support::{World, failed, from_file, inline, with_files};

lavra_testkit::on_each_engine!(
    types_are_those_of_the_table,
    numbers_keep_all_their_digits,
    numbers_within_lists_keep_all_their_digits,
    of_a_key_that_stands_twice_the_last_one_counts,
    what_is_no_whole_number_is_not_rounded_to_one,
);

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
