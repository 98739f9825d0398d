//! Exactly the elements that cannot be stored are failed items, the same on each engine.

use std::time::{Duration, Instant};

use lavra_writer::{Config, Limits};
use serde_json::{Value, json};

use crate::support::{World, failed, inline, things};

lavra_testkit::on_each_engine!(
    exactly_the_bad_rows_fail,
    no_bad_row_in_ten_thousand_and_none_fails,
    one_bad_row_in_ten_thousand_fails_alone,
    ten_bad_rows_in_ten_thousand_fail_and_no_others,
    a_thousand_bad_rows_in_ten_thousand_fail_and_no_others,
    elements_that_cannot_be_rows_are_failed_items,
    rows_that_a_check_on_several_columns_refuses_fail_and_no_others,
    a_bad_row_does_not_take_the_one_before_it_along,
    a_bad_row_that_a_later_one_of_its_key_replaces_does_not_fail,
    many_bad_rows_of_one_key_cost_little,
    an_insert_of_what_is_there_is_a_failed_item,
    of_two_inserts_with_one_key_the_second_is_a_failed_item,
    the_first_of_two_inserts_is_stored_however_strange_it_looks,
    a_second_key_that_is_taken_fails_the_later_row_of_an_upsert,
    duplicates_among_inserts_cost_little,
    nothing_stored_is_a_failure_that_tells_no_values,
    failed_items_beyond_what_is_kept_are_counted,
);

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

/// Beside others whose values are bad by themselves, and where not all of its columns are filled.
async fn rows_that_a_check_on_several_columns_refuses_fail_and_no_others(mut world: World) {
    world
        .execute(
            "CREATE TABLE public.bounds (\"N\" INTEGER PRIMARY KEY, v2 INTEGER, \"at most\" INTEGER,
                note VARCHAR, CHECK (v2 <= \"at most\"), CHECK (length(note) < 5))",
        )
        .await;
    world.start().await;
    let elements: Vec<Value> = (0..5000)
        .map(|n| match n % 500 {
            0 => json!({ "N": n, "v2": 8, "at most": 7 }),
            1 => json!({ "N": n, "v2": 7, "at most": 7, "note": "too long" }),
            2 => json!({ "N": n, "v2": "seven", "at most": 7 }),
            3 => json!({ "N": n, "v2": 8 }),
            4 => json!({ "N": n, "v2": 8, "at most": null, "note": null }),
            _ => json!({ "N": n, "v2": 7, "at most": 7, "note": "well" }),
        })
        .collect();
    let mut order = inline("bounds", &json!(elements));
    for operation in ["insert", "upsert"] {
        order["config"]["operation"] = json!(operation);
        order["config"]["conflict_key"] = json!("N");
        let job = world.run(&order).await;
        let bad: Vec<u64> = (0..5000).filter(|n| n % 500 < 3).collect();
        assert_eq!(failed(&job).into_keys().collect::<Vec<_>>(), bad, "{operation}");
        assert_eq!(world.count("public.bounds").await, 4970, "{operation}");
        world.execute("DELETE FROM public.bounds").await;
    }
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

/// Whatever else is in the batch, and however far apart they are.
async fn a_bad_row_that_a_later_one_of_its_key_replaces_does_not_fail(mut world: World) {
    things(&world).await;
    world.start().await;
    // Alone, beside one that looks bad, beside one that only the table finds bad, and far from its successor.
    let others = [
        None,
        Some(json!({ "id": 2, "name": null })),
        Some(json!({ "id": 2, "name": "b", "price": -1 })),
    ];
    for (round, other) in others.iter().enumerate() {
        for between in [0, 1500] {
            let mut elements = vec![
                json!({ "id": 1, "name": null }),
                json!({ "id": 1, "name": "a", "price": -1 }),
                json!({ "id": 1, "name": "kept", "note": format!("said {round}") }),
                json!({ "id": 1, "name": "bad", "price": -1, "note": "never" }),
            ];
            elements.extend((0..between).map(|n| json!({ "id": 10 + n, "name": "x" })));
            elements.extend(other.clone());
            elements.push(json!({ "id": 1, "name": "last", "price": 1.5 }));
            let job = world.run(&inline("things", &json!(elements))).await;
            // What it says of the note nobody says after it.
            let mut expected = vec![3];
            expected.extend(other.iter().map(|_| 4 + between));
            let indices: Vec<u64> = failed(&job).into_keys().collect();
            assert_eq!(indices, expected, "{round}, {between}");
            assert_eq!(job["progress"]["duplicate_count"], 4, "{job}");
            let rows = world
                .ask("SELECT name, price = 1.5 AS p, note FROM public.things WHERE id = 1")
                .await;
            assert_eq!(json!(rows), json!([["last", true, format!("said {round}")]]));
        }
    }
}

async fn many_bad_rows_of_one_key_cost_little(mut world: World) {
    things(&world).await;
    world.start().await;
    let mut elements = vec![json!({ "id": 1, "name": "good" })];
    elements.extend((0..400).map(|n| json!({ "id": 1, "name": "bad", "price": -1 - n })));
    elements.extend((0..5000).map(|n| json!({ "id": 10 + n, "name": "x" })));
    let begun = Instant::now();
    let job = world.run(&inline("things", &json!(elements))).await;
    assert_eq!(failed(&job).into_keys().collect::<Vec<u64>>(), (1..=400).collect::<Vec<_>>());
    // Each of them is looked at once, and not all others along with it.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let rows = world.ask("SELECT name FROM public.things WHERE id = 1").await;
    assert_eq!(json!(rows), json!([["good"]]));
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

/// An engine reads more dates than there are ways to write one. The row must not be put behind others for
/// that, nor for the bad ones about it.
async fn the_first_of_two_inserts_is_stored_however_strange_it_looks(mut world: World) {
    world.execute("CREATE TABLE public.days (id INTEGER PRIMARY KEY, day DATE)").await;
    world.start().await;
    let elements = json!([
        { "id": 1, "day": "2026-11-18" },
        { "id": 2, "day": "2026/11/18" },
        { "id": 3, "day": "never" },
        { "id": 2, "day": "2026-11-19" },
        { "id": 4, "day": "2026-11-18" },
    ]);
    let mut order = inline("days", &elements);
    order["config"]["operation"] = json!("insert");
    let job = world.run(&order).await;
    assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [2, 3], "{job}");
    let rows = world.ask("SELECT id, CAST(day AS VARCHAR) FROM public.days ORDER BY id").await;
    let day = "2026-11-18";
    assert_eq!(json!(rows), json!([[1, day], [2, day], [4, day]]));
}

async fn a_second_key_that_is_taken_fails_the_later_row_of_an_upsert(mut world: World) {
    world.execute("CREATE TABLE public.named (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE)").await;
    world.execute("INSERT INTO public.named VALUES (1, 'one')").await;
    world.start().await;
    let mut elements: Vec<Value> =
        (2..3000).map(|n| json!({ "id": n, "name": format!("n{n}") })).collect();
    elements[3]["name"] = json!("one");
    elements[1200]["name"] = json!("n7");
    elements[2900]["name"] = json!("n1500");
    let job = world.run(&inline("named", &json!(elements))).await;
    assert_eq!(failed(&job).keys().copied().collect::<Vec<_>>(), [3, 1200, 2900], "{job}");
    assert_eq!(world.count("public.named").await, 2996);
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
    let bad = took(&world, 100_000, true).await.min(took(&world, 200_000, true).await);
    // Far more than it takes, far less than row by row.
    assert!(bad < clean * 6 + Duration::from_millis(500), "{bad:?}, {clean:?} without");
}

async fn nothing_stored_is_a_failure_that_tells_no_values(mut world: World) {
    things(&world).await;
    world.start().await;
    let elements = json!([{ "id": "marker-1" }, { "id": 1, "name": "x", "price": "marker-2" }]);
    let job = world.run(&inline("things", &elements)).await;
    assert_eq!(job["status"], "failed", "{job}");
    assert_eq!(job["error_code"], "ERROR303");
    let said = job["error_message"].as_str().unwrap();
    assert!(said.contains("failed_items") && !said.contains("marker"), "{said}");
    assert_eq!(failed(&job).len(), 2);
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
