//! Bodies and files that are packed, lines, and sources that have trouble.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::{Answer, Site, World, from_url};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn brotli(text: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut packed, 4096, 5, 20);
    encoder.write_all(text).unwrap();
    drop(encoder);
    packed
}

fn elements(count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| json!({ "id": n.to_string(), "text": format!("number {n} {}", n * 7919) }))
        .collect()
}

fn lines(count: usize) -> String {
    let lines: Vec<String> = elements(count).iter().map(Value::to_string).collect();
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_packing_and_every_form_gives_the_same_rows() {
    let mut world = World::on_duckdb().await;
    let text = json!({ "data": { "items": elements(500) } }).to_string().into_bytes();
    let files = world.directory.path().join("files");
    std::fs::create_dir(&files).unwrap();
    for (name, body) in [
        ("plain.json", text.clone()),
        ("packed.json.gz", gzip(&text)),
        ("two.json.gz", [gzip(&text[..1000]), gzip(&text[1000..])].concat()),
        ("packed.json.zst", zstd::encode_all(text.as_slice(), 3).unwrap()),
        ("packed.json.br", brotli(&text)),
        ("lines.jsonl.gz", gzip(lines(500).as_bytes())),
    ] {
        std::fs::write(files.join(name), body).unwrap();
    }
    let mut config = World::config();
    config.access.directories = vec![files.clone()];
    world.start_with(config).await;
    let bodies = [
        ("/plain", None, text.clone()),
        ("/gzip", Some("gzip"), gzip(&text)),
        ("/zstd", Some("zstd"), zstd::encode_all(text.as_slice(), 3).unwrap()),
        ("/br", Some("br"), brotli(&text)),
        ("/unsaid", None, gzip(&text)),
        ("/name.json.br", None, brotli(&text)),
        ("/lines", None, lines(500).into_bytes()),
    ];
    let served = bodies.clone();
    let site = Site::serve(move |path, _| {
        let (_, encoding, body) = served.iter().find(|(name, ..)| *name == path).unwrap();
        let answer = Answer::ok(body.clone());
        match encoding {
            None => answer,
            Some(encoding) => answer.with("Content-Encoding", *encoding),
        }
    })
    .await;
    let mut orders: Vec<(String, Value)> = bodies
        .iter()
        .map(|(name, ..)| {
            let path = if *name == "/lines" { "" } else { "data.items" };
            ((*name).to_owned(), from_url("ads", &site.url(name), path))
        })
        .collect();
    for name in [
        "plain.json",
        "packed.json.gz",
        "two.json.gz",
        "packed.json.zst",
        "packed.json.br",
        "lines.jsonl.gz",
    ] {
        let mut order = from_url("ads", "", "");
        let path = if name.starts_with("lines") { "" } else { "data.items" };
        order["source"] = json!({ "type": "file", "path": name, "json_path": path });
        orders.push((name.to_owned(), order));
    }
    for (name, order) in orders {
        let job = world.run(&order).await;
        assert_eq!(
            (&job["status"], &job["progress"]["success_count"]),
            (&json!("completed"), &json!(500)),
            "{name}: {job}"
        );
    }
    let rows = world.ask("SELECT id, data FROM public.ads ORDER BY CAST(id AS INTEGER)").await;
    for (row, element) in rows.iter().zip(elements(500)) {
        assert_eq!(row[1], element);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_has_trouble_in_passing_is_asked_again() {
    let mut world = World::on_duckdb().await;
    world.start().await;
    let body = json!(elements(300)).to_string();
    let site = Site::serve(move |_, before| match before {
        0 => Answer::status(503),
        1 => Answer { cut: Some(5000), ..Answer::ok(body.clone()) },
        _ => Answer::ok(body.clone()),
    })
    .await;
    let job = world.run(&from_url("ads", &site.url("/x"), "")).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(job["progress"]["success_count"], 300);
    assert_eq!(site.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_no_json_says_so_and_shows_nothing_of_it() {
    let mut world = World::on_duckdb().await;
    world.start().await;
    let site = Site::serve(|path, _| match path {
        "/html" => Answer::ok("<html>an inner secret page</html>"),
        "/broken" => Answer::ok("[{\"id\": \"a\"}, {\"id\" oops an inner secret]"),
        "/bad.gz" => {
            Answer::ok("this is no gzip: an inner secret").with("Content-Encoding", "gzip")
        }
        "/odd" => Answer::ok("[]").with("Content-Encoding", "compress"),
        _ => Answer::ok(""),
    })
    .await;
    for path in ["/html", "/broken", "/bad.gz", "/odd", "/empty"] {
        let job = world.run(&from_url("ads", &site.url(path), "")).await;
        assert_eq!(
            (&job["status"], &job["error_code"]),
            (&json!("failed"), &json!("ERROR400")),
            "{path}: {job}"
        );
        assert!(!job.to_string().contains("inner secret"), "{path}: {job}");
    }
}

/// As if the line had been cut where nobody notices: the body has an end, but not its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_packed_body_that_ends_early_is_asked_for_again() {
    let mut world = World::on_duckdb().await;
    world.start().await;
    let text = json!(elements(3000)).to_string().into_bytes();
    for (encoding, body) in [
        ("gzip", gzip(&text)),
        ("zstd", zstd::encode_all(text.as_slice(), 3).unwrap()),
        ("br", brotli(&text)),
    ] {
        let site = Site::serve(move |_, before| {
            let length = if before == 0 { body.len() / 2 } else { body.len() };
            Answer::ok(&body[..length]).with("Content-Encoding", encoding)
        })
        .await;
        let job = world.run(&from_url("ads", &site.url("/x"), "")).await;
        assert_eq!(job["status"], "completed", "{encoding}: {job}");
        assert_eq!(job["progress"]["success_count"], 3000, "{encoding}: {job}");
        assert_eq!(site.requests().len(), 2, "{encoding}");
    }
}

/// More than those of RFC 9659 would take 128 MB, by a few bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_zstd_window_is_taken_up_to_eight_megabytes() {
    let mut world = World::on_duckdb().await;
    world.start().await;
    let text = json!(elements(3000)).to_string().into_bytes();
    let packed = |level: i32, window: u32| {
        let mut encoder = zstd::Encoder::new(Vec::new(), level).unwrap();
        encoder.window_log(window).unwrap();
        encoder.write_all(&text).unwrap();
        encoder.finish().unwrap()
    };
    let bodies = [
        ("/default", zstd::encode_all(text.as_slice(), 0).unwrap()),
        ("/high", zstd::encode_all(text.as_slice(), 19).unwrap()),
        ("/8", packed(3, 23)),
        ("/16", packed(3, 24)),
        ("/128", packed(3, 27)),
    ];
    let site = Site::serve(move |path, _| {
        let (_, body) = bodies.iter().find(|(name, _)| *name == path).unwrap();
        Answer::ok(body.clone())
    })
    .await;
    for path in ["/default", "/high", "/8"] {
        let job = world.run(&from_url("ads", &site.url(path), "")).await;
        assert_eq!(job["status"], "completed", "{path}: {job}");
    }
    for path in ["/16", "/128"] {
        let job = world.run(&from_url("ads", &site.url(path), "")).await;
        assert_eq!(job["error_code"], "ERROR400", "{path}: {job}");
        assert!(job["error_message"].as_str().unwrap().contains("window of 8 MB"), "{job}");
    }
}
