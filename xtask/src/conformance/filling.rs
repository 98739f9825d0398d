//! Something of everything, so that ids exist. Names are those of the description's examples.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::http;

const WORKER: &str = "9f1c2d3e-4b5a-4678-9abc-def012345678";

/// Fills the server, and says which ids there are below which paths.
pub(super) fn fill(port: u16) -> Result<Value> {
    let api = Api(port);
    let tasks = tasks(&api)?;
    let missions = missions(&api)?;
    let nowhere = "http://127.0.0.1:9";
    let worker = json!({
        "name": "worker-1", "url": nowhere, "api_key": "k", "storage_domain": "storage.example.com",
    });
    api.post("/fleet/workers", &worker)?;
    api.post("/fleet/proxies", &json!({ "name": "proxy-br-1", "host": "127.0.0.1", "port": 9 }))?;
    api.post("/fleet/writers", &json!({ "name": "writer-1", "url": nowhere, "api_key": "k" }))?;
    let schedule = json!({ "type": "wordcount", "cron": "17 3 * * *" });
    api.send("PUT", "/schedules/nightly-report", &schedule)?;
    let letters = api.send("GET", "/dead-letters", &Value::Null)?;
    let letters: Vec<&Value> =
        letters["items"].as_array().into_iter().flatten().map(|letter| &letter["id"]).collect();
    ensure!(!letters.is_empty(), "no dead letter came of a task that failed");
    Ok(json!({
        "/tasks/": tasks,
        "/missions/": missions,
        "/dead-letters/": letters,
        "/workers/": [WORKER],
    }))
}

/// Some that wait, one that a worker has, one that is done, and one that failed for good.
fn tasks(api: &Api) -> Result<Vec<String>> {
    let claim = json!({ "worker": WORKER, "types": ["wordcount"], "limit": 3 });
    api.post("/tasks:claim", &claim)?;
    let mut ids = Vec::new();
    for number in 0..8 {
        let task = json!({ "type": "wordcount", "payload": { "number": number } });
        ids.push(text(&api.post("/tasks", &task)?, "id")?);
    }
    let held = api.post("/tasks:claim", &claim)?;
    let held = held["tasks"].as_array().context("no tasks were claimed")?;
    let [done, failed, _] = held.as_slice() else { anyhow::bail!("three should be claimed") };
    let path = |task: &Value, verb: &str| {
        Ok::<_, anyhow::Error>(format!("/tasks/{}:{verb}", text(task, "id")?))
    };
    let complete = json!({ "token": done["token"], "result": { "words": 42 } });
    api.post(&path(done, "complete")?, &complete)?;
    let fail = json!({ "token": failed["token"], "error": "no words", "retryable": false });
    api.post(&path(failed, "fail")?, &fail)?;
    Ok(ids)
}

/// A month of them: in the bank, in the queue, and canceled.
fn missions(api: &Api) -> Result<Vec<String>> {
    let order = json!({
        "from": "2025-01-01", "to": "2025-01-31", "media_types": ["video"], "languages": [["pt"]],
    });
    let made = api.post("/missions", &order)?;
    let ids: Vec<String> =
        serde_json::from_value(made["added"].clone()).context("ids of missions")?;
    let (queued, canceled) = (ids.get(..20), ids.get(..5));
    api.post("/missions:queue", &json!({ "ids": queued }))?;
    api.post("/missions:cancel", &json!({ "ids": canceled }))?;
    Ok(ids)
}

fn text(value: &Value, name: &str) -> Result<String> {
    let text = value[name].as_str().with_context(|| format!("no {name} in {value}"))?;
    Ok(text.to_owned())
}

struct Api(u16);

impl Api {
    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", path, body)
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, said) = http::send(self.0, method, path, &[], &body)?;
        ensure!((200..300).contains(&status), "{method} {path}: {status} {said}");
        serde_json::from_str(&said).with_context(|| format!("{method} {path}: {said}"))
    }
}
