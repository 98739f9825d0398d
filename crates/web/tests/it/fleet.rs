//! The fleet over HTTP, on both engines.

use serde_json::{Value, json};

use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    missions_are_made_once_queued_canceled_and_listed,
    what_makes_no_sense_is_refused_with_the_reason,
    workers_proxies_and_writers_never_show_their_secrets,
    settings_are_changed_one_by_one_within_their_range,
);

async fn missions_are_made_once_queued_canceled_and_listed(place: Place) {
    let server = Server::on(place).await;
    let order = json!({
        "from": "2025-01-01", "to": "2025-01-03", "media_types": ["video", "image"],
        "languages": [["pt"], ["en", "es"]],
    });
    let made = server.post("/missions", &order).await.expect(201);
    assert_eq!(made["added"].as_array().unwrap().len(), 12);
    let again = server.post("/missions", &order).await.expect(201);
    assert_eq!((&again["added"], &again["known"]), (&json!([]), &json!(12)));

    let page = server.get("/missions?in_bank=true&limit=5").await.expect(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 5);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/missions?limit=500&cursor={cursor}")).await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 7);

    let filter = json!({ "filter": { "media_type": "video" } });
    let queued = server.post("/missions:queue", &filter).await.expect(200);
    assert_eq!(queued["done"].as_array().unwrap().len(), 6);
    let id = queued["done"][0].as_str().unwrap();
    let twice = server.post("/missions:queue", &json!({ "ids": [id, "nobody"] })).await.expect(200);
    assert_eq!(twice["done"], json!([]));
    let told = twice["refused"].to_string();
    assert!(told.contains("is in the queue already") && told.contains("is not there"), "{told}");

    server.post("/missions:cancel", &json!({ "ids": [id] })).await.expect(200);
    let shown = server.get(&format!("/missions/{id}")).await.expect(200);
    assert_eq!(shown["status"], "canceled");
    let log = server.get(&format!("/missions/{id}/log")).await.expect(200);
    let events: Vec<&Value> =
        log["items"].as_array().unwrap().iter().map(|entry| &entry["event"]).collect();
    assert_eq!(events, ["mission_queued", "mission_canceled"]);
    let copy = server.post(&format!("/missions/{id}:copy"), &json!({ "queue": true })).await;
    assert_ne!(copy.expect(201)["id"], id);
    let counts = server.get("/fleet").await.expect(200)["counts"].clone();
    assert_eq!(
        (&counts["bank"], &counts["queued"], &counts["canceled"]),
        (&json!(6), &json!(6), &json!(1))
    );
}

async fn what_makes_no_sense_is_refused_with_the_reason(place: Place) {
    let server = Server::on(place).await;
    let order = |from: &str, media: &str, languages: Value| json!({ "from": from, "to": "2025-01-31", "media_types": [media], "languages": languages });
    for (body, word) in [
        (order("2025-02-01", "all", json!([["pt"]])), "ends before it begins"),
        (order("2025-02-30", "all", json!([["pt"]])), "from"),
        (order("2025-01-01", "gif", json!([["pt"]])), "media_types"),
        (order("2025-01-01", "all", json!([])), "language"),
        (order("2025-01-01", "all", json!([[]])), "language"),
    ] {
        let problem = server.post("/missions", &body).await.expect(422);
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    let service = |url: &str| json!({ "name": "w", "url": url, "api_key": "k" });
    for (path, body, word) in [
        ("/fleet/workers", service("w.example.com"), "no scheme"),
        ("/fleet/workers", service("https://u:p@w.example.com"), "credentials"),
        ("/fleet/proxies", json!({ "name": "p", "host": "h", "port": 70_000 }), "65535"),
        ("/fleet/proxies", json!({ "name": "", "host": "h" }), "name"),
        ("/fleet/proxies", json!({ "host": "h" }), "name"),
        ("/missions:queue", json!({}), "ids or filter"),
    ] {
        let problem = server.post(path, &body).await.expect(422);
        assert!(problem["detail"].as_str().unwrap().contains(word), "{path}: {problem}");
    }
    server.get("/missions/nobody").await.expect(404);
    server.get("/fleet/robots").await.expect(404);
    let csv = json!({ "csv": "date_start,date_end,media_type,languages\n2025-01-01,x,all,pt\n" });
    let problem = server.post("/missions:import", &csv).await.expect(422);
    assert!(problem["detail"].as_str().unwrap().contains("line 2"), "{problem}");
    server.post("/fleet/drain", &json!({})).await.expect(409);
}

async fn workers_proxies_and_writers_never_show_their_secrets(place: Place) {
    let server = Server::on(place).await;
    let worker = json!({
        "name": "w1", "url": "http://127.0.0.1:1/w", "api_key": "MARKER-KEY",
        "storage_domain": "storage.example.com",
    });
    server.post("/fleet/workers", &worker).await.expect(201);
    let taken = server.post("/fleet/workers", &worker).await.expect(409);
    assert!(taken["detail"].as_str().unwrap().contains("name"), "{taken}");
    let same_url = json!({ "name": "w2", "url": "http://127.0.0.1:1/w", "api_key": "k" });
    let taken = server.post("/fleet/workers", &same_url).await.expect(409);
    assert!(taken["detail"].as_str().unwrap().contains("URL"), "{taken}");
    let proxy = json!({
        "name": "p1", "host": "127.0.0.1", "port": 1, "username": "u", "password": "MARKER-PASS",
    });
    server.post("/fleet/proxies", &proxy).await.expect(201);
    let writer = json!({ "name": "r1", "url": "http://127.0.0.1:1", "api_key": "MARKER-WKEY" });
    server.post("/fleet/writers", &writer).await.expect(201);
    let all = server.get("/fleet").await.expect(200).to_string();
    assert!(!all.contains("MARKER") && all.contains("\"w1\""), "{all}");
    let sql = "SELECT api_key AS s FROM public.workers UNION ALL SELECT password FROM \
               public.proxies UNION ALL SELECT api_key FROM public.writers";
    let stored = server.database.ask(sql, 10).await.unwrap();
    let stored = json!(stored.rows).to_string();
    assert!(!stored.contains("MARKER") && stored.contains("secret:"), "{stored}");

    let tested = server.ask("/fleet/workers/w1:test").await.expect(200);
    assert_eq!(tested["ok"], false);
    let worker = server.put("/fleet/workers/w1", &json!({ "active": false })).await.expect(200);
    assert_eq!(worker["active"], false);
    server.ask("/fleet/proxies/p1:deactivate").await.expect(200);
    let proxy = server.ask("/fleet/proxies/p1:reactivate").await.expect(200);
    assert_eq!((&proxy["active"], &proxy["fail_count"]), (&json!(true), &json!(0)));
    server.delete("/fleet/workers/w1").await.expect(204);
    server.delete("/fleet/workers/w1").await.expect(404);
}

async fn settings_are_changed_one_by_one_within_their_range(place: Place) {
    let server = Server::on(place).await;
    let all = server.get("/fleet/settings").await.expect(200);
    assert_eq!(all, json!({ "session_limit": 5, "max_retries": 2, "proxy_failures": "total" }));
    let changed = server.put("/fleet/settings", &json!({ "max_retries": 0 })).await.expect(200);
    assert_eq!((&changed["session_limit"], &changed["max_retries"]), (&json!(5), &json!(0)));
    for wrong in [json!({ "session_limit": 0 }), json!({ "max_retries": 21 }), json!({ "x": 1 })] {
        server.put("/fleet/settings", &wrong).await.expect(422);
    }
}
