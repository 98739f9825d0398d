//! What other processes ask the world about itself.

use lavra_world::{Endpoint, Entry, Stats};
use serde_json::{Value, json};

use crate::support::{Served, contratos, date, days, windows, world};

#[tokio::test]
async fn the_truth_is_told_as_lines() {
    let served = Served::new(world()).await;
    for (endpoint, fan_out, query) in windows() {
        let response = served.get(&format!("/_world/truth?path={endpoint}&{query}")).await.unwrap();
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        let lines: Vec<Entry> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (from, to) = days(endpoint);
        let truth = served.world.truth(endpoint, fan_out, from, to);
        assert!(truth.entries().eq(lines), "{endpoint}");
    }
    assert_eq!(served.world.stats().requests, 0);
    let wrong =
        served.get("/_world/truth?path=/v1/contratos&dataInicial=x&dataFinal=y").await.unwrap();
    assert_eq!(wrong.status(), 422);
    assert_eq!(served.get("/_world/truth").await.unwrap().status(), 404);
    assert_eq!(served.get("/_world/else").await.unwrap().status(), 404);
}

#[tokio::test]
async fn switches_are_read_and_set_live() {
    let served = Served::new(world()).await;
    let response = served.put_faults(&json!({"too_many": 1.0, "latency": {"fixed_ms": 1}})).await;
    assert_eq!(response.status(), 200);
    let now: Value = served.get("/_world/faults").await.unwrap().json().await.unwrap();
    assert_eq!((&now["too_many"], &now["latency"]["fixed_ms"]), (&json!(1.0), &json!(1)));
    assert_eq!(served.get(&contratos(1)).await.unwrap().status(), 429);
    for wrong in
        [json!({"too_man": 1.0}), json!({"reset": -1.0}), json!("none"), json!({"drift": [{}]})]
    {
        let refused = served.put_faults(&wrong).await;
        assert_eq!(refused.status(), 400, "{wrong}");
        let reason: Value = refused.json().await.unwrap();
        assert!(!reason["error"].as_str().unwrap().is_empty());
    }
    assert_eq!(served.get(&contratos(1)).await.unwrap().status(), 429);
    assert_eq!(served.put_faults(&json!({})).await.status(), 200);
    assert_eq!(served.get(&contratos(1)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn changes_are_set_live_and_the_truth_follows() {
    let served = Served::new(world()).await;
    let total = || {
        served.world.truth(Endpoint::Contratos, None, date("20240701"), date("20240731")).total()
    };
    let before = total();
    let change = json!({"endpoint": "/v1/contratos", "month": "2024-07", "records": -3, "at": "middle", "after": 1});
    assert_eq!(served.put_faults(&json!({"drift": [change]})).await.status(), 200);
    for _ in 0..2 {
        served.get(&contratos(1)).await.unwrap().bytes().await.unwrap();
    }
    assert_eq!(total(), before - 3);
}

#[tokio::test]
async fn pages_that_arrived_are_in_the_stats_at_once() {
    let served = Served::new(world()).await;
    for page in 1..=5 {
        served.get(&contratos(page)).await.unwrap().bytes().await.unwrap();
        let stats: Stats = served.get("/_world/stats").await.unwrap().json().await.unwrap();
        assert_eq!(stats.whole_pages, page);
        assert_eq!(stats.in_flight, 0);
    }
}
