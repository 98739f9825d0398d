//! What nobody would write, in every parameter and path of the description: refused or answered, and
//! never a failure of the server.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::odd::{self, Odd, shown};
use crate::support::server::KIND;
use crate::support::storm::Storm;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(
    odd_texts_in_every_query_and_path_break_nothing,
    odd_values_in_every_body_break_nothing,
);

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

async fn odd_texts_in_every_query_and_path_break_nothing(place: Place) {
    let server = filled(place).await;
    let document = server.get("/openapi.json").await.expect(200);
    let odd = odd::texts();
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
    storm.end(5000).await;
}

/// How many odd bodies each operation gets at least.
const LEAST: usize = 500;

/// An object of JSON as it is written: a program here could not hold all that is odd.
fn written(fields: &[(&str, &str)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// Each odd value in each field of an example, then what is wrong in several ways at once.
fn odd_bodies(seed: &str, names: &[&str], example: &[(&str, String)]) -> Vec<String> {
    let with = |place: &str, value: &str| {
        let others = example.iter().filter(|(name, _)| *name != place);
        let others = others.map(|(name, value)| (*name, value.as_str()));
        written(&others.chain([(place, value)]).collect::<Vec<_>>())
    };
    let values = odd::values();
    let each = names.iter().flat_map(|name| values.iter().map(|value| with(name, value)));
    let mut bodies: Vec<String> = each.collect();
    let mut odd = Odd::new(seed);
    for number in 0..LEAST.saturating_sub(bodies.len()).max(LEAST / 5) {
        let mut fields: Vec<(&str, String)> = example.to_vec();
        let place = odd.below(fields.len().max(1));
        match number % 5 {
            0 => fields.iter_mut().for_each(|(_, value)| *value = odd.value()),
            1 => drop(fields.drain(place.min(fields.len())..)),
            2 => fields.extend(names.iter().map(|name| (*name, odd.value()))),
            3 => fields.push(("nobody_s", odd.value())),
            _ => {
                let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, &**v)).collect();
                let whole = written(&fields);
                let end = (0..=odd.below(whole.len())).rev().find(|at| whole.is_char_boundary(*at));
                bodies.push(format!("{}{}", &whole[..end.unwrap_or(0)], odd.text()));
                continue;
            }
        }
        let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, &**v)).collect();
        bodies.push(written(&fields));
    }
    bodies
}

async fn odd_values_in_every_body_break_nothing(place: Place) {
    let server = filled(place).await;
    let document = server.get("/openapi.json").await.expect(200);
    let mut storm = Storm::default();
    for (method, path, operation) in operations(&document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let Some(schema) = schema.as_str() else { continue };
        let schema = document.pointer(schema.trim_start_matches('#')).unwrap();
        let example = schema["example"].as_object().unwrap().iter();
        // Whoever waits for a task would keep the test waiting.
        let example = example.filter(|(name, _)| *name != "wait_seconds");
        let example: Vec<_> = example.map(|(name, value)| (&**name, value.to_string())).collect();
        let fields = schema["properties"].as_object().unwrap().keys();
        let fields: Vec<&str> = fields.map(String::as_str).collect();
        let path = path.replace("{source}", "pncp").replace("{name}", "nightly");
        let path = path.replace("{id}", "0193a1b2-0000-7000-8000-000000000001");
        let bodies = odd_bodies(&format!("{method} {path}"), &fields, &example);
        assert!(bodies.len() >= LEAST, "{method} {path}: {}", bodies.len());
        for body in bodies {
            let request = server.request(method.clone(), &path);
            let what = format!("{method} {path} {}", shown(&body));
            let request = request.header("content-type", "application/json").body(body);
            storm.send(request, what).await;
        }
    }
    storm.end(5000).await;
}
