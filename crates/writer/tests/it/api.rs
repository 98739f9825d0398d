//! The Writer API with the specification's statuses, over real HTTP.

use std::time::Duration;

use lavra_writer::{Config, Limits, Service, router};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Answer, KEY, Site, World, from_url, inline};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_without_the_key_gets_in_and_health_is_open() {
    let mut world = World::on_duckdb().await;
    world.start().await;
    for key in
        [None, Some(""), Some("wrong"), Some("marker-api-key-0001 "), Some("marker-api-key-000")]
    {
        for (path, is_post) in [("/process", true), ("/status/x", false)] {
            let url = format!("{}{path}", world.base());
            let mut request = if is_post { world.http().post(url) } else { world.http().get(url) };
            if let Some(key) = key {
                request = request.header("x-api-key", key);
            }
            let status = request.send().await.unwrap().status();
            // A space at the end of a header is no part of it.
            let is_right = key.is_some_and(|key| key.trim() == KEY);
            assert_eq!(status == 401, !is_right, "{key:?} {path}");
        }
    }
    let health = world.http().get(format!("{}/health", world.base())).send().await.unwrap();
    assert_eq!(health.status(), 200);
    assert_eq!(health.text().await.unwrap(), r#"{"status":"healthy"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_no_web_page_gets_in() {
    let world = World::on_duckdb().await;
    let service = Service::new(&world.database, World::config(), None).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/process", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router(service, None)).await.unwrap() });
    let order = inline("ads", &json!([{ "id": "a" }])).to_string();
    for (header, value, status) in [
        ("x-none", "1", 200),
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("host", "evil.example", 403),
    ] {
        let sent = world.http().post(&url).header("content-type", "text/plain");
        let answer = sent.header(header, value).body(order.clone()).send().await.unwrap();
        assert_eq!(answer.status(), status, "{header}: {value}");
    }
    assert_eq!(world.count("kodus_workflow.writer_jobs").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_has_its_code() {
    let mut world = World::on_duckdb().await;
    let limits = Limits { request_bytes: 2000, ..Limits::default() };
    world.start_with(Config { limits, ..World::config() }).await;
    let good = inline("ads", &json!([]));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut body = good.clone();
        change(&mut body);
        body
    };
    for (body, status, words) in [
        (json!([]), 422, "body"),
        (json!({}), 422, "config"),
        (
            changed(&|body| {
                body["config"].as_object_mut().unwrap().remove("table");
            }),
            422,
            "config.table",
        ),
        (
            changed(&|body| {
                body["config"].as_object_mut().unwrap().remove("operation");
            }),
            422,
            "config.operation",
        ),
        (
            changed(&|body| {
                body["config"].as_object_mut().unwrap().remove("conflict_key");
            }),
            422,
            "config.conflict_key",
        ),
        (changed(&|body| body["config"]["operation"] = json!("drop")), 422, "config.operation"),
        (changed(&|body| body["config"]["typo"] = json!(1)), 422, "typo"),
        (changed(&|body| body["job_id"] = json!("../x")), 422, "job_id"),
        (changed(&|body| body["source"] = json!({ "type": "ftp" })), 422, "source.type"),
        (changed(&|body| body["source"] = json!({ "type": "url" })), 422, "source.url"),
        (changed(&|body| body["source"]["json_path"] = json!("a..b")), 422, "source.json_path"),
        (changed(&|body| body["source"]["data"] = json!("x".repeat(3000))), 413, "too large"),
    ] {
        let (found, answer) = world.post(&body).await;
        assert_eq!(found, status, "{body} {answer}");
        assert!(answer["message"].as_str().unwrap().contains(words), "{answer}");
    }
    let sent = world.http().post(format!("{}/process", world.base())).header("x-api-key", KEY);
    assert_eq!(sent.body("{not json").send().await.unwrap().status(), 400);
    assert_eq!(world.get("/status/nobody").await.0, 404);
    assert_eq!(world.get("/status/not%20one").await.0, 404);
    assert_eq!(world.get("/nothing").await.0, 404);
}

lavra_testkit::on_each_engine!(
    one_id_is_one_job,
    too_many_that_wait_are_told_to_come_later,
    failed_items_are_told_as_far_as_they_fit,
    progress_is_told_while_it_runs,
    headers_reach_the_source_and_nothing_else,
    the_query_of_a_url_reaches_the_source_and_nothing_else,
);

async fn one_id_is_one_job(mut world: World) {
    world.start().await;
    let mut order = inline("ads", &json!([{ "id": "a" }]));
    order["job_id"] = json!("550e8400-e29b-41d4-a716-446655440000");
    let (_, first) = world.post(&order).await;
    world.end_of("550e8400-e29b-41d4-a716-446655440000").await;
    let (status, again) = world.post(&order).await;
    assert_eq!(
        (status, &again["job_id"], &again["created_at"]),
        (200, &first["job_id"], &first["created_at"])
    );
    assert_eq!(again["status"], "completed");
    order["source"]["data"] = json!([{ "id": "other" }]);
    let (status, answer) = world.post(&order).await;
    assert_eq!(status, 422, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("job_id"));
    assert_eq!(world.count("public.ads").await, 1);
    let mut without = order.clone();
    without.as_object_mut().unwrap().remove("job_id");
    let (one, other) = (world.run(&without).await, world.run(&without).await);
    assert_ne!(one["job_id"], other["job_id"], "orders without an id are each their own");
}

async fn too_many_that_wait_are_told_to_come_later(mut world: World) {
    let limits = Limits { waiting: 2, ..Limits::default() };
    let config = Config { limits, ..World::config() };
    // Nobody runs them.
    world.start_as(config, std::sync::Arc::new(lavra_writer::SystemNames), false).await;
    let order = |n: u32| {
        let mut order = inline("ads", &json!([{ "id": n.to_string() }]));
        order["job_id"] = json!(format!("job-{n}"));
        order
    };
    assert_eq!(world.post(&order(1)).await.0, 200);
    assert_eq!(world.post(&order(2)).await.0, 200);
    let sent = world.http().post(format!("{}/process", world.base())).header("x-api-key", KEY);
    let busy = sent.json(&order(3)).send().await.unwrap();
    assert_eq!(busy.status(), 429);
    assert!(
        busy.headers().get("retry-after").unwrap().to_str().unwrap().parse::<u32>().unwrap() > 0
    );
    assert_eq!(world.post(&order(2)).await.0, 200, "one that is known is no new one");
    assert_eq!(world.get("/status/job-3").await.0, 404);
}

async fn failed_items_are_told_as_far_as_they_fit(mut world: World) {
    world.start().await;
    // Each is no ad, and of a million bytes.
    let long: Vec<Value> = (0..8).map(|_| json!("x".repeat(1_000_000))).collect();
    let job = world.run(&inline("ads", &json!(long))).await;
    let id = job["job_id"].as_str().unwrap();
    let indices = |job: &Value| {
        let items = job["failed_items"].as_array().unwrap().clone();
        items.iter().map(|item| item["index"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((indices(&job), &job["failed_items_omitted"]), (vec![0, 1, 2], &json!(5)));
    let (_, next) = world.get(&format!("/status/{id}?failed_after=2")).await;
    assert_eq!((indices(&next), &next["failed_items_omitted"]), (vec![3, 4, 5], &json!(2)));
    let (_, last) = world.get(&format!("/status/{id}?failed_after=5")).await;
    assert_eq!((indices(&last), &last["failed_items_omitted"]), (vec![6, 7], &Value::Null));
}

async fn progress_is_told_while_it_runs(mut world: World) {
    let limits = Limits { batch_rows: 10, ..Limits::default() };
    world.start_with(Config { limits, ..World::config() }).await;
    let elements: Vec<Value> =
        (0..400).map(|n| json!({ "id": n.to_string(), "t": "x".repeat(100) })).collect();
    let body = json!({ "ads": elements }).to_string();
    let site = Site::serve(move |_, _| Answer {
        pause: Some(std::time::Duration::from_millis(60)),
        ..Answer::ok(body.clone())
    })
    .await;
    let (_, answer) = world.post(&from_url("ads", &site.url("/x"), "ads")).await;
    assert_eq!(answer["status"], "processing");
    let id = answer["job_id"].as_str().unwrap();
    let during = world.until(id, |job| job["progress"]["processed"].as_u64() > Some(0)).await;
    assert_eq!(during["status"], "processing", "{during}");
    let (processed, total) = (&during["progress"]["processed"], &during["progress"]["total"]);
    assert!(processed.as_u64() < Some(400) && total.as_u64() >= processed.as_u64(), "{during}");
    let end = world.end_of(id).await;
    assert_eq!(end["progress"]["total"], 400, "{end}");
    assert_eq!(world.count("public.ads").await, 400);
}

async fn headers_reach_the_source_and_nothing_else(mut world: World) {
    world.start().await;
    let site = Site::serve(|path, _| match path {
        "/x" => Answer::ok(r#"[{"id":"a"}]"#),
        _ => Answer::status(401),
    })
    .await;
    for path in ["/x", "/denied"] {
        let mut order = from_url("ads", &site.url(path), "");
        order["source"]["headers"] =
            json!({ "Authorization": "Bearer marker-header-0002", "X-Own": "1" });
        order["job_id"] = json!(format!("job{}", path.replace('/', "-")));
        let (_, posted) = world.post(&order).await;
        let job = world.end_of(posted["job_id"].as_str().unwrap()).await;
        assert!(!format!("{posted}{job}").contains("marker"), "{job}");
        match path {
            "/x" => assert_eq!(job["status"], "completed", "{job}"),
            _ => {
                assert_eq!(job["error_code"], "ERROR401", "{job}");
                assert!(!job.to_string().contains("inner secret page"), "{job}");
            }
        }
    }
    let sent = site.requests().join("\n").to_lowercase();
    assert!(sent.contains("authorization: bearer marker-header-0002"), "{sent}");
    // The end is told before what was sealed is removed.
    world.stop().await;
    let stored = world.all_text().await;
    assert!(!stored.contains("marker"), "{stored}");
    assert!(!stored.contains("writer/"), "what is sealed goes with the job's end: {stored}");
}

/// Signatures of buckets stand in queries.
async fn the_query_of_a_url_reaches_the_source_and_nothing_else(mut world: World) {
    let names = std::sync::Arc::new(lavra_writer::SystemNames);
    // Nobody runs it: it stands in the tables for as long as it likes.
    world.start_as(World::config(), names, false).await;
    let site = Site::serve(|_, _| Answer::ok(r#"[{"id":"a"}]"#)).await;
    let order = |query: &str| {
        let mut order = from_url("ads", &site.url(&format!("/x.json?{query}")), "");
        order["job_id"] = json!("signed");
        order
    };
    let signed = order("part=1&signature=marker-query-0005");
    assert_eq!(world.post(&signed).await.0, 200);
    assert_eq!(world.post(&signed).await.0, 200, "the same one is one job");
    let (status, answer) = world.post(&order("part=2&signature=marker-query-0006")).await;
    assert_eq!(status, 422, "another query is another order: {answer}");
    assert!(!answer.to_string().contains("marker"), "{answer}");
    let waiting = world.all_text().await;
    assert!(waiting.contains("/x.json") && !waiting.contains("marker"), "{waiting}");
    assert_eq!(waiting.matches("writer/signed").count(), 1, "{waiting}");
    world.kill();
    world.start().await;
    let job = world.end_of("signed").await;
    assert_eq!(job["status"], "completed", "{job}");
    assert!(!job.to_string().contains("marker"), "{job}");
    let sent = site.requests().join("\n");
    assert!(sent.contains("GET /x.json?part=1&signature=marker-query-0005 "), "{sent}");
    assert!(!sent.contains("marker-query-0006"), "{sent}");
    world.stop().await;
    let stored = world.all_text().await;
    assert!(!stored.contains("marker"), "{stored}");
    assert!(!stored.contains("writer/signed"), "what is sealed goes with the job's end: {stored}");
}

/// Long bodies are in memory a few at a time, whoever sends them; a short one waits for none of them.
#[tokio::test(flavor = "multi_thread")]
async fn long_bodies_are_read_a_few_at_a_time() {
    let mut world = World::on_duckdb().await;
    world.start().await;
    let address = world.base().trim_start_matches("http://").to_owned();
    let body = inline("ads", &json!([{ "id": "long", "t": "x".repeat(400_000) }])).to_string();
    let begin = async || {
        let mut socket = tokio::net::TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST /process HTTP/1.1\r\nHost: {address}\r\nx-api-key: {KEY}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(&body.as_bytes()[..1000]).await.unwrap();
        socket
    };
    let finish = async |mut socket: tokio::net::TcpStream, millis: u64| {
        let mut answer = String::new();
        let sent = async {
            socket.write_all(&body.as_bytes()[1000..]).await.unwrap();
            socket.read_to_string(&mut answer).await.unwrap();
        };
        tokio::time::timeout(Duration::from_millis(millis), sent).await.map(|()| answer)
    };
    let mut half = Vec::new();
    for _ in 0..4 {
        half.push(begin().await);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let waits = finish(begin().await, 1500).await;
    assert!(waits.is_err(), "it was read as the fifth: {waits:?}");
    let job = world.run(&inline("ads", &json!([{ "id": "short" }]))).await;
    assert_eq!(job["status"], "completed", "{job}");
    half.clear();
    let told = finish(begin().await, 20_000).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
}
