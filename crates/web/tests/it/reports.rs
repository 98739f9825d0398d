//! The audit: the log with its filters, the reports, and both as tables for spreadsheets.

use jiff::{SignedDuration, Timestamp};
use lavra_fleet::machine::{Entry, Step};
use lavra_fleet::model::{EventKind, MissionId};
use lavra_fleet::store::Store;
use lavra_fleet::{DuckDb, Postgres};
use serde_json::{Value, json};

use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    the_log_is_filtered_and_paged,
    reports_have_their_window,
    a_table_is_whole_exact_and_runs_nothing,
);

/// The same tables as the server's.
fn store(server: &Server) -> Box<dyn Store> {
    match &server.database {
        lavra_db::Database::Duck(duck) => Box::new(DuckDb::new(duck.clone())),
        lavra_db::Database::Postgres(pg) => Box::new(Postgres::new(pg.clone())),
    }
}

async fn say(
    server: &Server,
    mission: Option<&str>,
    event: EventKind,
    details: Value,
    at: Timestamp,
) {
    let Value::Object(details) = details else { panic!("details are an object") };
    let mission_id = mission.map(MissionId::from);
    let session_id = Some("ses_1".into());
    let entry = Entry { mission_id, session_id, event, details, at };
    let step = Step { logs: vec![entry], ..Step::default() };
    assert_eq!(store(server).apply(vec![step]).await.unwrap(), [true]);
}

async fn mission(server: &Server) -> String {
    let order = json!({
        "from": "2025-01-01", "to": "2025-01-01", "media_types": ["all"], "languages": [["pt"]],
    });
    let made = server.post("/missions", &order).await.expect(201);
    made["added"][0].as_str().unwrap().to_owned()
}

fn ago(hours: i64) -> Timestamp {
    let now = Timestamp::now() - SignedDuration::from_hours(hours);
    Timestamp::from_microsecond(now.as_microsecond()).unwrap()
}

async fn events(server: &Server, query: &str) -> Vec<String> {
    let page = server.get(&format!("/fleet/log?{query}")).await.expect(200);
    let items = page["items"].as_array().unwrap().iter();
    items.map(|entry| entry["event"].as_str().unwrap().to_owned()).collect()
}

async fn the_log_is_filtered_and_paged(place: Place) {
    let server = Server::on(place).await;
    let id = mission(&server).await;
    let failed = json!({ "proxy_name": "p 1", "error_code": "ERROR100" });
    say(&server, None, EventKind::SessionFailed, failed, ago(5)).await;
    let worker = json!({ "worker_id": "wrk_1" });
    say(&server, Some(&id), EventKind::ScrapeStarted, worker.clone(), ago(4)).await;
    say(&server, Some(&id), EventKind::ScrapeFailed, worker, ago(3)).await;
    let all = ["scrape_failed", "scrape_started", "session_failed"];
    assert_eq!(events(&server, "").await, all);
    for (query, expected) in [
        (format!("mission={id}"), &all[..2]),
        ("without_mission=true".into(), &all[2..]),
        ("event=scrape_started,session_failed".into(), &all[1..]),
        ("event=scrape_failed".into(), &all[..1]),
        ("worker=wrk_1".into(), &all[..2]),
        ("proxy=p%201".into(), &all[2..]),
        ("session=ses_1".into(), &all[..]),
        ("session=ses_2".into(), &[]),
        ("error_code=ERROR100".into(), &all[2..]),
        (format!("since={}", ago(4)), &all[..1]),
        (format!("until={}", ago(4)), &all[1..]),
    ] {
        assert_eq!(events(&server, &query).await, expected, "{query}");
    }
    for wrong in
        ["event=x", "event=scrape_failed,", "since=yesterday", "cursor=x", "limit=0", "x=1"]
    {
        server.get(&format!("/fleet/log?{wrong}")).await.problem(400, "bad_query");
    }
    let mut seen = Vec::new();
    let mut path = "/fleet/log?limit=1".to_owned();
    loop {
        let page = server.get(&path).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/fleet/log?limit=1&cursor={cursor}");
    }
    assert_eq!(seen.len(), 3);
    let first = server.get(&format!("/missions/{id}/log?limit=1")).await.expect(200);
    assert_eq!(first["items"][0]["event"], "scrape_started", "a timeline begins with the oldest");
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/missions/{id}/log?cursor={cursor}")).await.expect(200);
    assert_eq!((&rest["items"][0], &rest["next_cursor"]), (&seen[0], &Value::Null));
    server.get("/missions/nobody/log").await.problem(404, "fleet_not_found");
}

async fn reports_have_their_window(place: Place) {
    let server = Server::on(place).await;
    let id = mission(&server).await;
    let worker = json!({ "name": "w", "url": "http://127.0.0.1:1", "api_key": "k" });
    let worker = server.post("/fleet/workers", &worker).await.expect(201)["id"].clone();
    let proxy = json!({ "name": "p", "host": "10.0.0.1" });
    server.post("/fleet/proxies", &proxy).await.expect(201);
    for hours in [2, 30] {
        let at = ago(hours);
        say(&server, Some(&id), EventKind::MissionFailed, json!({ "n": hours }), at).await;
        let done = json!({ "worker_id": worker, "duration_ms": hours * 100 });
        say(&server, Some(&id), EventKind::ScrapeCompleted, done, at).await;
        let failed = json!({ "proxy_name": "p" });
        say(&server, None, EventKind::SessionFailed, failed, at).await;
    }
    let get = async |path: &str| server.get(&format!("/fleet/reports/{path}")).await.expect(200);
    let count = |report: &Value| report["items"].as_array().unwrap().len();
    let failures = get("failures").await;
    assert_eq!((count(&failures), &failures["items"][0]["details"]["n"]), (1, &json!(2)));
    assert_eq!(failures["items"][0]["id"], id.as_str());
    assert_eq!(count(&get("failures?hours=48").await), 2);
    assert_eq!(count(&get("failures?hours=1").await), 0);
    let until = format!("until={}", ago(10));
    assert_eq!(count(&get(&format!("failures?hours=48&{until}")).await), 1);
    let since = format!("since={}", ago(40));
    assert_eq!(count(&get(&format!("failures?{since}&{until}")).await), 1);
    assert_eq!(count(&get(&format!("failures?since={}&{until}", ago(5))).await), 0, "no time");
    let page = get("failures?hours=48&limit=1").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = get(&format!("failures?hours=48&cursor={cursor}")).await;
    assert_eq!(
        (&rest["items"][0]["details"]["n"], &rest["next_cursor"]),
        (&json!(30), &Value::Null)
    );

    let workers = get("workers").await;
    let row = json!({
        "worker_name": "w", "completed_count": 2, "failed_count": 0, "avg_duration_ms": 1600.0,
        "worker_id": worker,
    });
    assert_eq!(workers["items"], json!([row]));
    assert_eq!(get("workers?hours=3").await["items"][0]["avg_duration_ms"], 200.0);
    assert_eq!(get("proxies").await["items"][0]["session_failures"], 2);
    assert_eq!(get("proxies?hours=3").await["items"][0]["session_failures"], 1);
    server.get("/fleet/reports/robots").await.problem(404, "no_such_route");
    server.get("/fleet/reports/failures?hours=0").await.problem(400, "bad_query");
}

async fn a_table_is_whole_exact_and_runs_nothing(place: Place) {
    let server = Server::on(place).await;
    let id = mission(&server).await;
    let name = "=HYPERLINK(\"http://evil.example\"), \"é\"";
    let worker = json!({ "name": name, "url": "http://127.0.0.1:1", "api_key": "k" });
    let worker = server.post("/fleet/workers", &worker).await.expect(201)["id"].clone();
    let done = json!({ "worker_id": worker, "duration_ms": 7, "text": "a,\"b\"\nc" });
    let entries: Vec<Entry> = (0..2500)
        .map(|number| Entry {
            mission_id: Some(MissionId(id.clone())),
            session_id: None,
            event: EventKind::ScrapeCompleted,
            details: done.as_object().unwrap().clone(),
            at: ago(1) + SignedDuration::from_micros(number),
        })
        .collect();
    let step = Step { logs: entries, ..Step::default() };
    assert_eq!(store(&server).apply(vec![step]).await.unwrap(), [true]);

    let request = server.request(reqwest::Method::GET, "/fleet/reports/workers");
    let reply = server.send(request.header("accept", "text/csv")).await;
    assert_eq!(reply.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(reply.header("content-disposition"), Some("attachment; filename=\"workers.csv\""));
    let mut lines = csv::Reader::from_reader(reply.text.as_bytes());
    let rows: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 1, "{}", reply.text);
    assert_eq!((&rows[0][0], &rows[0][1]), (format!("'{name}").as_str(), "2500"));

    for path in ["/fleet/log?format=csv".to_owned(), format!("/missions/{id}/log?format=csv")] {
        let reply = server.get(&path).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let mut lines = csv::Reader::from_reader(reply.text.as_bytes());
        assert_eq!(&lines.headers().unwrap()[3], "details");
        let rows: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2500, "{path}");
        let ids: std::collections::BTreeSet<&str> = rows.iter().map(|row| &row[5]).collect();
        assert_eq!(ids.len(), 2500, "{path}: each once");
        let is_oldest_first = path.starts_with("/missions");
        let at = |row: &csv::StringRecord| row[0].parse::<Timestamp>().unwrap();
        assert_eq!(rows.is_sorted_by_key(at), is_oldest_first);
        assert_eq!(serde_json::from_str::<Value>(&rows[9][3]).unwrap(), done);
    }
    let failures = server.get("/fleet/reports/failures?format=csv").await;
    let head = "id,status,error_code,error_message,retry_count,failed_at,details\r\n";
    assert_eq!((failures.status.as_u16(), failures.text.as_str()), (200, head));
}
