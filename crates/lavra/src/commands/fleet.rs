//! `lavra fleet …`.

use std::time::Duration;

use anyhow::Context;
use axum::http::Method;
use serde_json::{Map, Value, json};

use super::task::{note_more, query, text};
use super::{typed, wait};
use crate::cli::{Fleet, FleetLog, ProxyAdd, Things, WorkerAdd, WriterAdd};
use crate::client::Client;
use crate::exit::{BadUsage, Exit};
use crate::printer::{Cell, Color, Printer};
use crate::settings::Settings;
use crate::variables::Variable;

const WATCH: Duration = Duration::from_secs(2);

pub(crate) async fn run(
    settings: &Settings,
    command: Fleet,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let client = Client::open(settings).await?;
    match command {
        Fleet::Start { wait } => return start(&client, wait, printer).await,
        Fleet::Drain => mode(&client, "drain", printer).await?,
        Fleet::Stop => mode(&client, "stop", printer).await?,
        Fleet::Status { watch } => return status(&client, watch, printer).await,
        Fleet::Worker(command) => things(&client, "workers", command, printer).await?,
        Fleet::Proxy(command) => things(&client, "proxies", command, printer).await?,
        Fleet::Writer(command) => things(&client, "writers", command, printer).await?,
        Fleet::Settings { session_limit, max_retries, proxy_failures } => {
            let mut changes = Map::new();
            for (name, value) in [
                ("session_limit", session_limit.map(|value| json!(value))),
                ("max_retries", max_retries.map(|value| json!(value))),
                ("proxy_failures", proxy_failures.map(|value| json!(value))),
            ] {
                changes.extend(value.map(|value| (name.to_owned(), value)));
            }
            let settings = if changes.is_empty() {
                client.get("/fleet/settings").await?
            } else {
                let body = Some(Value::Object(changes));
                client.call(Method::PUT, "/fleet/settings", body, None).await?
            };
            let names = ["session_limit", "max_retries", "proxy_failures"];
            let rows = names.map(|name| vec![name.to_owned(), text(&settings, name)]);
            printer.table(&settings, &["SETTING", "VALUE"], rows.to_vec());
        }
        Fleet::Log(args) => log(&client, &args, printer).await?,
        Fleet::Report { name, hours } => {
            let query = query([("hours", hours.map(|hours| hours.to_string()))]);
            let path = format!("/fleet/reports/{}?{query}", name.as_str());
            report(&client.get(&path).await?, printer);
        }
    }
    Ok(Exit::Done)
}

async fn start(client: &Client, waits: bool, printer: &Printer) -> anyhow::Result<Exit> {
    let run = client.post("/fleet/start", json!({})).await?;
    let id = text(&run, "task_id");
    if waits {
        printer.note(&format!("the run is {id}"));
        return wait::until_ended(client, &[id], printer).await;
    }
    if printer.is_json() {
        printer.json(&run);
    } else {
        printer.data(&id);
    }
    if client.is_alone() && !printer.is_json() {
        printer.note("it waits: no server holds this database; `lavra serve` runs it");
    }
    Ok(Exit::Done)
}

async fn mode(client: &Client, what: &str, printer: &Printer) -> anyhow::Result<()> {
    let answer = client.post(&format!("/fleet/{what}"), json!({})).await?;
    printer.table(
        &answer,
        &["MODE", "RUN"],
        vec![vec![text(&answer, "mode"), text(&answer, "task_id")]],
    );
    Ok(())
}

async fn status(client: &Client, watch: bool, printer: &Printer) -> anyhow::Result<Exit> {
    loop {
        let status = client.get("/fleet").await?;
        if watch && !printer.is_json() {
            // Home, and clear what is below: no flicker.
            printer.data("\x1b[H\x1b[J");
        }
        show(&status, printer);
        if !watch {
            return Ok(Exit::Done);
        }
        tokio::select! {
            () = tokio::time::sleep(WATCH) => {}
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.context("Ctrl-C")?;
                return Ok(Exit::Done);
            }
        }
    }
}

fn items(value: &Value, name: &str) -> Vec<Value> {
    value.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn show(status: &Value, printer: &Printer) {
    if printer.is_json() {
        return printer.json(status);
    }
    let empty = Value::Null;
    let (counts, control) =
        (status.get("counts").unwrap_or(&empty), status.get("control").unwrap_or(&empty));
    let count = |name: &str| text(counts, name);
    printer.data(&format!(
        "{}   bank {}   queued {}   scraping {}   storing {}   completed {}   failed {}   canceled {}\n",
        match text(control, "mode").as_str() {
            "run" => "running",
            "drain" => "draining",
            "stop" => "stopping",
            _ => "not running",
        },
        count("bank"),
        count("queued"),
        count("extracao"),
        count("armazenamento"),
        count("completed"),
        count("failed"),
        count("canceled"),
    ));
    workers(&json!({ "items": status.get("workers") }), printer);
    printer.data("");
    proxies(&json!({ "items": status.get("proxies") }), printer);
    printer.data("");
    writers(&json!({ "items": status.get("writers") }), printer);
    if items(status, "workers").is_empty() {
        printer.note("next: lavra fleet worker add NAME --url URL --storage-domain DOMAIN");
    }
}

fn yes(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool) == Some(true)
}

fn tested(value: &Value) -> Cell {
    match value.get("last_test_ok").and_then(Value::as_bool) {
        None => Cell::new(""),
        Some(true) => Cell::new("ok").fg(Color::Green),
        Some(false) => Cell::new("no answer").fg(Color::Red),
    }
}

fn active(value: &Value) -> Cell {
    if yes(value, "active") { Cell::new("yes") } else { Cell::new("no").fg(Color::Yellow) }
}

fn workers(answer: &Value, printer: &Printer) {
    let rows = items(answer, "items").into_iter().map(|worker| {
        let status = text(&worker, "status");
        let colour = match status.as_str() {
            "scraping" => Color::Cyan,
            "ready" => Color::Green,
            "error" => Color::Red,
            _ => Color::Reset,
        };
        let error = match text(&worker, "error_code") {
            code if code.is_empty() => String::new(),
            code => format!("{code} {}", text(&worker, "error_message")),
        };
        let waiting: Option<lavra_fleet::model::Waiting> = text(&worker, "waiting").parse().ok();
        vec![
            Cell::new(text(&worker, "name")),
            Cell::new(status).fg(colour),
            active(&worker),
            Cell::new(text(&worker, "session_count")),
            Cell::new(text(&worker, "current_mission_id")),
            Cell::new(waiting.map_or("", lavra_fleet::model::Waiting::says)),
            tested(&worker),
            Cell::new(error),
        ]
    });
    let head = ["WORKER", "STATUS", "ACTIVE", "DONE", "MISSION", "WAITS FOR", "TEST", "ERROR"];
    printer.cells(answer, &head, rows.collect());
}

fn proxies(answer: &Value, printer: &Printer) {
    let rows = items(answer, "items").into_iter().map(|proxy| {
        let port = text(&proxy, "port");
        let host = text(&proxy, "host");
        let server = if port.is_empty() { host } else { format!("{host}:{port}") };
        vec![
            Cell::new(text(&proxy, "name")),
            Cell::new(server),
            active(&proxy),
            Cell::new(text(&proxy, "fail_count")),
            Cell::new(text(&proxy, "in_use_by_worker_id")),
            tested(&proxy),
        ]
    });
    let head = ["PROXY", "SERVER", "ACTIVE", "FAILURES", "USED BY", "TEST"];
    printer.cells(answer, &head, rows.collect());
}

fn writers(answer: &Value, printer: &Printer) {
    let rows = items(answer, "items").into_iter().map(|writer| {
        vec![
            Cell::new(text(&writer, "name")),
            Cell::new(text(&writer, "url")),
            active(&writer),
            tested(&writer),
        ]
    });
    printer.cells(answer, &["WRITER", "URL", "ACTIVE", "TEST"], rows.collect());
}

async fn things<A: Order>(
    client: &Client,
    kinds: &str,
    command: Things<A>,
    printer: &Printer,
) -> anyhow::Result<()> {
    match command {
        Things::List => {
            let answer = client.get(&format!("/fleet/{kinds}")).await?;
            match kinds {
                "workers" => workers(&answer, printer),
                "proxies" => proxies(&answer, printer),
                _ => writers(&answer, printer),
            }
        }
        Things::Add(order) => {
            let answer = client.post(&format!("/fleet/{kinds}"), order.body(printer)?).await?;
            printer.table(&answer, &["ID"], vec![vec![text(&answer, "id")]]);
        }
        Things::Activate { name } => {
            verb(client, kinds, &name, "activate").await?;
        }
        Things::Deactivate { name } => {
            verb(client, kinds, &name, "deactivate").await?;
        }
        Things::Remove { name } => {
            let path = format!("/fleet/{kinds}/{}", segment(&name));
            client.call(Method::DELETE, &path, None, None).await?;
        }
        Things::Test { name } => {
            let answer = verb(client, kinds, &name, "test").await?;
            let word = if yes(&answer, "ok") { "ok" } else { "no answer" };
            printer.table(
                &answer,
                &["TEST", "SAID"],
                vec![vec![word.into(), text(&answer, "said")]],
            );
        }
    }
    Ok(())
}

async fn verb(client: &Client, kinds: &str, name: &str, verb: &str) -> anyhow::Result<Value> {
    client.call(Method::POST, &format!("/fleet/{kinds}/{}:{verb}", segment(name)), None, None).await
}

pub(super) fn segment(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

/// Secrets come from stdin: what is typed as a flag stays in a shell's history.
fn secret(what: &str, variable: Variable, printer: &Printer) -> anyhow::Result<String> {
    if let Some(value) = variable.read() {
        return Ok(value);
    }
    let text = typed(what, printer)?;
    if text.is_empty() {
        return Err(BadUsage(format!("give the {what} by stdin, or in {}", variable.name())).into());
    }
    Ok(text)
}

/// One that is added, as the interface takes it.
trait Order: clap::Args {
    fn body(&self, printer: &Printer) -> anyhow::Result<Value>;
}

impl Order for WorkerAdd {
    fn body(&self, printer: &Printer) -> anyhow::Result<Value> {
        let mut body = service(&self.name, &self.url, printer)?;
        if let Some(domain) = &self.storage_domain {
            body["storage_domain"] = json!(domain);
        }
        Ok(body)
    }
}

impl Order for WriterAdd {
    fn body(&self, printer: &Printer) -> anyhow::Result<Value> {
        service(&self.name, &self.url, printer)
    }
}

fn service(name: &str, url: &str, printer: &Printer) -> anyhow::Result<Value> {
    let key = secret("API key", Variable::FleetApiKey, printer)?;
    Ok(json!({ "name": name, "url": url, "api_key": key }))
}

impl Order for ProxyAdd {
    fn body(&self, printer: &Printer) -> anyhow::Result<Value> {
        let mut body = json!({ "name": self.name, "host": self.host });
        if let Some(port) = self.port {
            body["port"] = json!(port);
        }
        if let Some(username) = &self.username {
            body["username"] = json!(username);
            body["password"] = json!(secret("password", Variable::FleetPassword, printer)?);
        }
        Ok(body)
    }
}

async fn log(client: &Client, args: &FleetLog, printer: &Printer) -> anyhow::Result<()> {
    let query = query([
        ("mission", args.mission.clone()),
        ("without_mission", args.without_mission.then(|| "true".to_owned())),
        ("event", args.event.clone()),
        ("error_code", args.error_code.clone()),
        ("limit", Some(args.limit.to_string())),
        ("cursor", args.cursor.clone()),
    ]);
    let page = client.get(&format!("/fleet/log?{query}")).await?;
    let rows = items(&page, "items").into_iter().map(|entry| {
        ["timestamp", "mission_id", "event", "details"].map(|name| text(&entry, name)).to_vec()
    });
    printer.table(&page, &["AT", "MISSION", "EVENT", "DETAILS"], rows.collect());
    note_more(&page, printer);
    Ok(())
}

fn report(answer: &Value, printer: &Printer) {
    let rows = items(answer, "items");
    let names: Vec<String> = rows
        .first()
        .and_then(Value::as_object)
        .map(|row| row.keys().cloned().collect())
        .unwrap_or_default();
    let head: Vec<String> = names.iter().map(|name| name.to_uppercase()).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let cells = rows.iter().map(|row| names.iter().map(|name| text(row, name)).collect());
    if rows.is_empty() && !printer.is_json() {
        return printer.note("nothing in this time");
    }
    printer.table(answer, &head, cells.collect());
}
