//! Which elements are the same row, the same on each engine.

use serde_json::json;

use crate::support::{World, failed, from_file, inline, things, with_files};

lavra_testkit::on_each_engine!(
    the_last_of_one_key_wins_and_the_others_are_counted,
    what_only_an_earlier_element_of_a_key_says_stays,
    one_key_written_in_two_ways_is_one_key_whatever_else_is_said,
    keys_of_a_type_that_is_not_known_are_written_in_their_order,
    a_key_without_a_unique_index_is_a_schema_error,
    several_columns_can_be_the_key,
);

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
