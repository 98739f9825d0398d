//! What nobody would write, in every parameter and path of the description: refused or answered, and
//! never a failure of the server.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    odd_texts_in_every_query_and_path_break_nothing,
    odd_values_in_every_body_break_nothing,
);

const AT_ONCE: usize = 16;

fn odd_texts() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        " ",
        "\0",
        "a\0b",
        "\u{202e}txt.exe",
        "\u{fdfa}",
        "é\u{301}\u{200d}\u{1f469}\u{200d}\u{1f4bb}",
        "\u{feff}",
        "\u{ffff}",
        "\r\nSet-Cookie: a=b",
        "'; DROP TABLE public.missions; --",
        "\" OR \"\"=\"",
        "%",
        "%%",
        "_",
        "\\",
        "../../etc/passwd",
        "..%2f..%2f",
        "{{7*7}}",
        "${jndi:ldap://x}",
        "<script>alert(1)</script>",
        "-1",
        "0",
        "-0",
        "1e9",
        "1e400",
        "NaN",
        "Infinity",
        "0x10",
        "2147483647",
        "2147483648",
        "-2147483649",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "100000000000000000000000000000000",
        "true",
        "null",
        "undefined",
        "[]",
        "{}",
        "0000-00-00",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "-009999-01-01",
        "+009999-12-31",
        "2024-02-30",
        "0000-01",
        "9999-12",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-30T22:00:00.999999999Z",
        "9999-12-31T23:59:59Z",
        "-009999-01-02T01:59:59Z",
        "2024-01-01T00:00:00",
        "2024-01-01T25:00:00Z",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "mis_",
        "mis_'",
        "a:b",
        ":retry",
        "a,b,,c",
        ",",
        "0-x",
        "99999999999999999-log_x",
        "100000000000000000-log_x",
        "999999-x",
        "1000000-x",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push("x".repeat(10_000));
    all.push("9".repeat(400));
    all.push("é".repeat(3_000));
    all
}

/// A text as a part of a URL.
fn encoded(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        write!(encoded, "%{byte:02X}").unwrap();
        encoded
    })
}

/// A server with something in it, so that questions have rows to look at.
async fn filled(place: Place) -> Server {
    let server = Server::on(place).await;
    lavra_db::migrate(&server.database, &lavra_extract::migrations("pncp")).await.unwrap();
    server.tasks.declare(vec!["extract".into(), "fleet".into()]).await.unwrap();
    server.create(KIND, &json!({ "a": 1 })).await;
    let order = json!({
        "from": "2025-01-01", "to": "2025-01-03", "media_types": ["all"], "languages": [["pt"]],
    });
    server.post("/missions", &order).await.expect(201);
    server
}

fn operations(document: &Value) -> Vec<(Method, String, Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(move |(method, operation)| {
            (method.to_uppercase().parse().unwrap(), path.clone(), operation.clone())
        })
    });
    // Streams that have begun do not end.
    operations.filter(|(_, path, _)| !path.ends_with("/stream")).collect()
}

/// Requests, some at a time.
#[derive(Default)]
struct Storm {
    under_way: JoinSet<()>,
    sent: usize,
}

impl Storm {
    async fn send(&mut self, request: reqwest::RequestBuilder, what: String) {
        if self.under_way.len() >= AT_ONCE {
            self.under_way.join_next().await.unwrap().unwrap();
        }
        self.sent += 1;
        self.under_way.spawn(async move {
            let response = request.timeout(Duration::from_secs(25)).send().await;
            let response = response.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let status = response.status();
            let text = response.text().await.unwrap();
            assert!(!status.is_server_error(), "{what}: {status} {text}");
        });
    }

    async fn end(mut self) {
        while let Some(ended) = self.under_way.join_next().await {
            ended.unwrap();
        }
        assert!(self.sent > 5000, "{}", self.sent);
    }
}

fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(40).collect::<String>())
}

async fn odd_texts_in_every_query_and_path_break_nothing(place: Place) {
    let server = filled(place).await;
    let document = server.get("/openapi.json").await.expect(200);
    let odd = odd_texts();
    let mut storm = Storm::default();
    for (method, path, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let named = |place: &str| {
            let of = parameters.iter().filter(|parameter| parameter["in"] == place);
            of.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let (in_path, in_query) = (named("path"), named("query"));
        let usual = |path: &str| {
            let path = path.replace("{source}", "pncp").replace("{name}", "nightly");
            path.replace("{id}", "0193a1b2-0000-7000-8000-000000000001").replace("{task_id}", "x")
        };
        for text in &odd {
            for name in &in_path {
                let odd = path.replace(&format!("{{{name}}}"), &encoded(text));
                let request = server.request(method.clone(), &usual(&odd)).json(&json!({}));
                let what = format!("{method} {path} {name}={}", shown(text));
                storm.send(request, what).await;
            }
            for name in &in_query {
                let path = usual(&path);
                let odd = format!("{path}?{name}={}", encoded(text));
                let request = server.request(method.clone(), &odd).json(&json!({}));
                storm.send(request, format!("{method} {path}?{name}={}", shown(text))).await;
            }
        }
    }
    storm.end().await;
}

/// Odd JSON values, lone surrogates apart: those are no text that a program here can hold.
fn odd_values() -> Vec<String> {
    let texts = odd_texts().into_iter().step_by(2).map(|text| Value::String(text).to_string());
    let others = [
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e308",
        "-1e308",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "[]",
        "{}",
        "[null]",
        "[[]]",
        "[{}]",
        "{\"a\":1}",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "[\"\"]",
        "[[\"\"]]",
        "[\"a\\u0000b\"]",
        "[[\"\\u0000\"]]",
    ];
    texts.chain(others.map(str::to_owned)).collect()
}

async fn odd_values_in_every_body_break_nothing(place: Place) {
    let server = filled(place).await;
    let document = server.get("/openapi.json").await.expect(200);
    let mut storm = Storm::default();
    for (method, path, operation) in operations(&document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let Some(schema) = schema.as_str() else { continue };
        let schema = document.pointer(schema.trim_start_matches('#')).unwrap();
        let example = schema["example"].as_object().unwrap();
        let fields = schema["properties"].as_object().unwrap();
        let path = path.replace("{source}", "pncp").replace("{name}", "nightly");
        let path = path.replace("{id}", "0193a1b2-0000-7000-8000-000000000001");
        for field in fields.keys() {
            for value in odd_values() {
                // Written out: not everything that is odd is a value here.
                let is_other = |name: &str| name != field && name != "wait_seconds";
                let others = example.iter().filter(|(name, _)| is_other(name));
                let others = others.map(|(name, value)| format!("{name:?}:{value}"));
                let fields: Vec<String> = others.chain([format!("{field:?}:{value}")]).collect();
                let body = format!("{{{}}}", fields.join(","));
                let request = server.request(method.clone(), &path);
                let request = request.header("content-type", "application/json").body(body);
                let what = format!("{method} {path} {field}={}", shown(&value));
                storm.send(request, what).await;
            }
        }
    }
    storm.end().await;
}
