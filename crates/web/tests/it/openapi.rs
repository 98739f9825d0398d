//! The description of the interface: whole, true, and changed only on purpose.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn the_description_changes_only_on_purpose() {
    let server = Server::file().await;
    let reply = server.get("/openapi.json").await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    insta::assert_json_snapshot!(reply.expect(200));
}

fn operations(document: &Value) -> Vec<(Method, String, Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(move |(method, operation)| {
            (method.to_uppercase().parse().unwrap(), path.clone(), operation.clone())
        })
    });
    operations.collect()
}

#[tokio::test]
async fn every_route_that_is_described_answers() {
    let server = Server::file().await;
    let document = server.get("/openapi.json").await.expect(200);
    let all = operations(&document);
    assert!(all.len() >= 88, "{}", all.len());
    for (method, path, operation) in all {
        let path = path.replace("{id}", "0193a1b2-0000-7000-8000-000000000001");
        let path = path.replace("{name}", "nightly").replace("{source}", "pncp");
        let path = path.replace("{task_id}", "contratos_publicacao_2024-01-01");
        let mut request = server.request(method.clone(), &path);
        if operation.get("requestBody").is_some() {
            request = request.json(&json!({}));
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        if path.ends_with("/stream") && status == 200 {
            continue;
        }
        let is_problem = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind == "application/problem+json");
        let text = response.text().await.unwrap();
        let is_known = !is_problem || !text.contains("no_such_route");
        assert!(is_known, "{method} {path}: {text}");
        assert!(status != 405 && status.as_u16() < 500, "{method} {path}: {status} {text}");
        let answers = operation["responses"].as_object().unwrap();
        let described = answers.contains_key(status.as_str()) || answers.contains_key("default");
        assert!(described, "{method} {path} answers {status}, which is not described");
    }
}

/// The schema that is meant, wherever it stands.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Whether somebody who reads it sees what it looks like: by an example of its own, or those of its
/// parts.
fn is_shown(document: &Value, schema: &Value) -> bool {
    let schema = resolved(document, schema);
    let parts = schema["properties"].as_object().into_iter().flat_map(|all| all.values());
    let parts = parts.filter(|part| part["$ref"].is_string() || part["items"].is_object());
    !schema["example"].is_null()
        || schema["items"].is_object() && is_shown(document, &schema["items"])
        || parts.clone().count() > 0 && parts.clone().all(|part| is_shown(document, part))
}

#[tokio::test]
async fn operations_have_names_of_their_own_and_examples() {
    let server = Server::file().await;
    let document = server.get("/openapi.json").await.expect(200);
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name} stands twice");
        assert!(operation["summary"].is_string(), "{method} {path} says nothing of itself");
        assert!(operation["tags"].is_array(), "{method} {path} belongs nowhere");
        let bodies = [("requests", &operation["requestBody"])];
        let answers = operation["responses"].as_object().unwrap().iter();
        let answers = answers.filter(|(status, _)| status.starts_with('2'));
        for (what, body) in bodies.into_iter().chain(answers.map(|(s, body)| (s.as_str(), body))) {
            for (kind, content) in body["content"].as_object().into_iter().flatten() {
                let is_text = kind.starts_with("text/") && content["example"].is_null();
                let is_document = path == "/openapi.json";
                let is_example = !content["example"].is_null()
                    || is_shown(&document, &content["schema"])
                    || (is_text && !kind.contains("csv"))
                    || is_document;
                assert!(is_example, "{method} {path}: {what} as {kind} has no example");
            }
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let schema = parameter["schema"].to_string();
            assert!(!schema.contains("null"), "{method} {path}: {parameter}");
        }
    }
    // Every reference leads somewhere.
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
    // Nothing is only said to be an object, but for what has no other shape.
    let free: BTreeSet<&str> = document["components"]["schemas"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, schema)| schema["type"] == "object" && schema["properties"].is_null())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(free, BTreeSet::new());
}

#[tokio::test]
async fn every_code_is_explained() {
    let server = Server::file().await;
    let page = server.get("/docs/errors").await;
    assert_eq!(page.status, 200);
    for code in lavra_web::Code::ALL {
        assert!(page.text.contains(&format!("id=\"{}\"", code.as_str())), "{code:?}");
        assert!(!code.title().is_empty() && !code.advice().is_empty());
    }
}

/// The exit codes are held against the command line's own tests.
#[test]
fn the_documented_codes_are_those_that_there_are() {
    let rows = include_str!("../../../../docs/errors.md").lines();
    let rows = rows.filter(|line| line.starts_with("| `")).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        [cells[0], cells[1], cells[3], cells[4]].map(str::to_owned)
    });
    let documented: Vec<[String; 4]> = rows.filter(|[_, status, ..]| !status.is_empty()).collect();
    let codes = lavra_web::Code::ALL.iter().map(|code| {
        let name = format!("`{}`", code.as_str());
        [name, code.status().as_u16().to_string(), code.title().into(), code.advice().into()]
    });
    assert_eq!(documented, codes.collect::<Vec<_>>());
}
