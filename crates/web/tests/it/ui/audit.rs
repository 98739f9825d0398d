//! The audit: the log and its filters, page by page, and the reports.

use jiff::SignedDuration;
use lavra_fleet::model::EventKind;
use serde_json::json;

use super::store::{entry, log};
use crate::support::browser::{Browser, ODD};
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    the_log_is_read_page_by_page_without_a_gap,
    the_log_is_narrowed_by_every_filter,
    failures_come_with_their_mission,
    the_reports_show_workers_and_proxies,
    a_mission_s_timeline_is_found_by_its_id,
    odd_addresses_are_no_fault_of_the_server,
);

async fn mission(server: &Server) -> String {
    let order = json!({
        "from": "2025-01-01", "to": "2025-01-01", "media_types": ["all"], "languages": [["pt"]],
        "queue": true,
    });
    let made = server.post("/missions", &order).await.expect(201);
    made["added"][0].as_str().unwrap().to_owned()
}

/// Where the page says that the next one is.
fn next(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("rel=\"next\" href=\"")?;
    Some(rest.split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&"))
}

async fn the_log_is_read_page_by_page_without_a_gap(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let empty = browser.get("/ui/audit").await;
    assert!(empty.text.contains("Nothing has happened yet"), "{}", empty.text);
    let now = server.now();
    // Many of a moment.
    let say = |number: i64| {
        let at = now + SignedDuration::from_micros(number / 40);
        entry(None, EventKind::SessionReady, json!({ "mark": format!("<{number}>") }), at)
    };
    log(&server, (0..120).map(say).collect()).await;
    let (mut path, mut seen, mut pages) = ("/ui/audit?without_mission=yes".to_owned(), 0, 0);
    let mut marks = std::collections::BTreeSet::new();
    loop {
        let page = browser.get(&path).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        let found = page.text.split("&#60;").skip(1);
        for mark in found.filter_map(|rest| rest.split("&#62;").next()) {
            marks.insert(mark.to_owned());
            seen += 1;
        }
        pages += 1;
        match next(&page.text) {
            Some(next) => path = next,
            None => break,
        }
    }
    assert_eq!((seen, marks.len(), pages), (120, 120, 3));
}

async fn the_log_is_narrowed_by_every_filter(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let id = mission(&server).await;
    let now = server.now();
    let hours = |hours| now - SignedDuration::from_hours(hours);
    let of = |event, mark: &str, hours_ago| {
        entry(Some(&id), event, json!({ "mark": mark }), hours(hours_ago))
    };
    log(
        &server,
        vec![
            of(EventKind::ScrapeStarted, "<started>", 1),
            of(EventKind::ScrapeProgress, "<old>", 50),
            entry(
                None,
                EventKind::SessionFailed,
                json!({ "mark": "<apart>", "worker_id": "wrk_1", "proxy_name": "p 1", "error_code": "ERROR101" }),
                hours(2),
            ),
        ],
    )
    .await;
    let since = hours(3).strftime("%Y-%m-%dT%H:%M").to_string();
    let until = hours(40).strftime("%Y-%m-%dT%H:%M").to_string();
    let all = ["started", "old", "apart"];
    for (query, expected) in [
        (String::new(), &all[..]),
        (format!("mission={id}"), &["started", "old"]),
        ("without_mission=yes".into(), &["apart"]),
        ("event=scrape_started&event=session_failed".into(), &["started", "apart"]),
        ("worker=wrk_1".into(), &["apart"]),
        ("proxy=p+1".into(), &["apart"]),
        ("error=ERROR101".into(), &["apart"]),
        (format!("since={since}"), &["started", "apart"]),
        (format!("until={until}"), &["old"]),
        ("mission=&event=&worker=&error=&since=&until=".into(), &all),
    ] {
        let page = browser.get(&format!("/ui/audit?{query}")).await;
        assert_eq!(page.status, 200, "{query}: {page:?}");
        for mark in all {
            let is_there = page.text.contains(&format!("&#60;{mark}&#62;"));
            assert_eq!(is_there, expected.contains(&mark), "{query} {mark}");
        }
    }
    let none = browser.get("/ui/audit?worker=wrk_2").await;
    assert!(none.text.contains("No entry matches this"), "{}", none.text);
}

async fn failures_come_with_their_mission(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let id = mission(&server).await;
    let none = browser.get("/ui/audit/failures").await;
    assert!(none.text.contains("No mission failed in this window"), "{}", none.text);
    let details = json!({ "error_code": "ERROR203", "error_message": "<gone>", "retry_count": 2 });
    let now = server.now();
    let at = now - SignedDuration::from_hours(30);
    log(&server, vec![entry(Some(&id), EventKind::MissionFailed, details, at)]).await;
    assert!(!browser.get("/ui/audit/failures").await.text.contains("ERROR203</code></a>"));
    let page = browser.get("/ui/audit/failures?hours=72").await;
    for text in [
        "href=\"/ui/help/errors#ERROR203\"",
        "&#60;gone&#62;",
        &format!("href=\"/ui/missions/{id}\""),
        "href=\"/fleet/reports/failures?hours=72\"",
    ] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
}

async fn the_reports_show_workers_and_proxies(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let worker = json!({ "name": "w<1>", "url": "http://127.0.0.1:1", "api_key": "k" });
    let worker = server.post("/fleet/workers", &worker).await.expect(201)["id"].clone();
    server.post("/fleet/proxies", &json!({ "name": "p<1>", "host": "h" })).await.expect(201);
    let now = server.now();
    let done = json!({ "worker_id": worker, "duration_ms": 61_000 });
    let failed = json!({ "proxy_name": "p<1>", "worker_id": worker });
    log(
        &server,
        vec![
            entry(None, EventKind::ScrapeCompleted, done.clone(), now),
            entry(None, EventKind::ScrapeCompleted, done.clone(), now),
            entry(None, EventKind::ScrapeCompleted, done, now - SignedDuration::from_hours(9)),
            entry(None, EventKind::ScrapeFailed, failed.clone(), now),
            entry(None, EventKind::SessionFailed, failed, now),
        ],
    )
    .await;
    let page = browser.get("/ui/audit/workers?hours=6").await;
    for text in ["w&#60;1&#62;", "1 min 1 s", "66 %", "value=\"6\" selected"] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    let page = browser.get("/ui/audit/workers").await;
    assert!(page.text.contains("75 %"), "{}", page.text);
    let page = browser.get("/ui/audit/proxies").await;
    assert!(page.text.contains("p&#60;1&#62;") && page.text.contains("Active"), "{}", page.text);
}

async fn a_mission_s_timeline_is_found_by_its_id(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    let id = mission(&server).await;
    assert!(browser.get("/ui/audit/timeline").await.text.contains("Which mission?"));
    let page = browser.get(&format!("/ui/audit/timeline?mission=+{id}+")).await;
    assert!(page.text.contains("mission_queued") && page.text.contains("2025-01-01"));
    let page = browser.get("/ui/audit/timeline?mission=mis_0").await;
    assert!(page.text.contains("There is no mission with this id"), "{}", page.text);
}

async fn odd_addresses_are_no_fault_of_the_server(place: Place) {
    let server = Server::on(place).await;
    let mut browser = Browser::new(&server);
    mission(&server).await;
    let long = "x".repeat(10_000);
    for odd in ODD.iter().copied().chain([long.as_str()]) {
        let value: String = url::form_urlencoded::byte_serialize(odd.as_bytes()).collect();
        let fields =
            ["mission", "without_mission", "event", "worker", "proxy", "error", "since", "until"];
        let window = ["hours", "since", "before"];
        let of_log = fields.iter().chain(&["before"]).map(|name| ("/ui/audit", *name));
        let of_reports = ["failures", "workers", "proxies"].into_iter();
        let paths = of_log
            .map(|(path, name)| format!("{path}?{name}={value}"))
            .chain(of_reports.flat_map(|report| {
                let value = value.clone();
                window.map(|name| format!("/ui/audit/{report}?{name}={value}"))
            }))
            .chain([format!("/ui/audit/timeline?mission={value}"), format!("/ui/audit/{value}")]);
        for path in paths {
            let page = browser.get(&path).await;
            assert!(page.status.as_u16() < 500, "{path}: {page:?}");
            assert!(!page.text.contains("<script>alert"), "{path}");
        }
    }
}
