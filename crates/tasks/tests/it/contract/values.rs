//! Text and JSON come back as they went in, on both engines.

use lavra_tasks::machine::Happening;
use lavra_tasks::store::{NewRow, Schedule};
use serde_json::{Value, json};

use crate::support::shorthand::{QUIET, fail, hash, key, step};
use crate::support::{World, on_each_engine};

on_each_engine!(
    text_survives_in_every_column,
    json_survives_in_every_column,
    eight_kilobytes_of_metadata_survive,
    deep_json_survives,
    a_large_payload_survives,
);

/// Quotes, backslashes, SQL, JSON, placeholders, controls, scripts, emoji with joiners, a BOM.
const NASTY: &str = "it's \"quoted\" \\ \\u0041 '; DROP TABLE tasks; -- {\"a\": [1, 2]} $1 ? % _ \
    \t\n\r\u{1}\u{1f}\u{7f} não ção Ω 漢字 עברית 👩‍👩‍👧 \u{feff}\u{fffd}\u{10ffff} end ";

fn nasty() -> Value {
    json!({
        NASTY: NASTY,
        "": [null, true, false, "", " ", [], {}, [[[]]]],
        "numbers": [0, -1, i64::MIN, i64::MAX, u64::MAX, 0.1, -1.5e-7, 1e20, 123_456_789.123_456_79],
        "text": "null",
    })
}

async fn text_survives_in_every_column(world: World) {
    let row = NewRow { input_hash: Some(hash(1)), key: Some(key(NASTY, 1)), ..world.row(NASTY) };
    let again = NewRow { input_hash: None, ..NewRow { id: world.row("a").id, ..row.clone() } };
    world.make(vec![row.clone()]).await;
    let made = world.create(vec![again], QUIET).await.unwrap();
    assert_eq!(made, [lavra_tasks::store::Made::Existing(row.id)]);
    world.declare(vec![NASTY.into()]).await.unwrap();
    assert_eq!(world.declared().await.unwrap(), [NASTY]);

    let claimed = world.take(&[NASTY], 1).await.remove(0);
    assert_eq!(claimed.kind, NASTY);
    let task = world.happen(row.id, &step(1, NASTY)).await;
    assert_eq!((task.kind.as_str(), task.state.as_str()), (NASTY, NASTY));
    let failure = Happening::Fail { error: NASTY.into(), retry_in: None };
    assert_eq!(world.happen(row.id, &failure).await.error.as_deref(), Some(NASTY));
    let letter = world.dead_letters(None, 1).await.unwrap().remove(0);
    assert_eq!((letter.reason.as_str(), letter.kind.as_deref()), (NASTY, Some(NASTY)));
    let events = world.history(row.id).await;
    assert_eq!(events[2].state.as_deref(), Some(NASTY));
    assert_eq!(events[3].detail, Some(json!({"action": "fail", "error": NASTY})));

    let schedule = Schedule {
        name: NASTY.into(),
        kind: NASTY.into(),
        cron: NASTY.into(),
        payload: nasty(),
        enabled: true,
        next_at: world.clock().now().round(jiff::Unit::Microsecond).unwrap(),
        last_task: None,
    };
    world.put_schedule(schedule.clone()).await.unwrap();
    assert_eq!(world.schedules().await.unwrap(), [schedule]);
}

async fn json_survives_in_every_column(world: World) {
    let row = NewRow {
        metadata: nasty().to_string(),
        payload: nasty().to_string(),
        detail: nasty().to_string(),
        ..world.row("a")
    };
    world.make(vec![row.clone()]).await;
    let claimed = world.take(&["a"], 1).await.remove(0);
    assert_eq!(serde_json::from_str::<Value>(claimed.payload.get()).unwrap(), nasty());
    assert_eq!(claimed.metadata, nasty());
    let mut write = world.decide(row.id, &Happening::Complete).await;
    write.next.detail = nasty();
    write.metadata = Some(json!({"added": nasty()}));
    write.result = Some(nasty());
    world.write_one(write).await;

    let mut merged = nasty();
    merged["added"] = nasty();
    assert_eq!(world.read(row.id).await.metadata, merged);
    assert_eq!(world.input(row.id).await.unwrap(), Some(nasty()));
    assert_eq!(world.result(row.id).await.unwrap().unwrap().payload, nasty());
    let events = world.history(row.id).await;
    assert_eq!((&events[0].detail, &events[2].detail), (&Some(nasty()), &Some(nasty())));
    for plain in [json!(null), json!("text"), json!(7), json!([]), json!(true)] {
        let row = NewRow { payload: plain.to_string(), ..world.row("b") };
        world.make(vec![row.clone()]).await;
        assert_eq!(world.input(row.id).await.unwrap(), Some(plain.clone()));
        let claimed = world.take(&["b"], 1).await.remove(0);
        assert_eq!(claimed.payload.get(), plain.to_string());
    }
}

async fn eight_kilobytes_of_metadata_survive(world: World) {
    let metadata = json!({ "long": "é'\"".repeat(2000) });
    assert!(metadata.to_string().len() > 8 * 1024);
    let row = NewRow { metadata: metadata.to_string(), ..world.row("a") };
    world.make(vec![row.clone()]).await;
    world.take(&["a"], 1).await;
    world.happen(row.id, &fail(Some(0))).await;
    assert_eq!(world.read(row.id).await.metadata, metadata);
}

async fn deep_json_survives(world: World) {
    let deep = (0..100).fold(json!("bottom"), |inner, n| {
        if n % 2 == 0 { json!([inner]) } else { json!({ "in": inner }) }
    });
    let row = NewRow { payload: deep.to_string(), metadata: deep.to_string(), ..world.row("a") };
    world.make(vec![row.clone()]).await;
    assert_eq!(world.input(row.id).await.unwrap(), Some(deep.clone()));
    let claimed = world.take(&["a"], 1).await.remove(0);
    assert_eq!(serde_json::from_str::<Value>(claimed.payload.get()).unwrap(), deep);
    assert_eq!(claimed.metadata, deep);
}

async fn a_large_payload_survives(world: World) {
    let large = json!({ "rows": vec!["x".repeat(1000); 2000] });
    let row = NewRow { payload: large.to_string(), ..world.row("a") };
    world.make(vec![row.clone()]).await;
    assert_eq!(world.input(row.id).await.unwrap(), Some(large));
}
