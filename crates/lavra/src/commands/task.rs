//! `lavra task …`.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::{json as parse, wait};
use crate::cli::{Task, TaskCreate, TaskList};
use crate::client::Client;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    command: Task,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let client = Client::open(settings).await?;
    match command {
        Task::Create(args) => return create(&client, args, printer).await,
        Task::List(args) => list(&client, &args, printer).await?,
        Task::Show { id } => show(&client.get(&format!("/tasks/{id}")).await?, printer),
        Task::Events { id, limit } => {
            let events = client.get(&format!("/tasks/{id}/events?limit={limit}")).await?;
            events_table(&events, printer);
        }
        Task::Result { id } => printer.json(&client.get(&format!("/tasks/{id}/result")).await?),
        Task::Input { id } => printer.json(&client.get(&format!("/tasks/{id}/input")).await?),
        Task::Retry { id, if_version } => {
            let path = format!("/tasks/{id}:retry");
            show(&client.call(Method::POST, &path, None, if_version).await?, printer);
        }
        Task::Cancel { id, if_version } => {
            let path = format!("/tasks/{id}:cancel");
            show(&client.call(Method::POST, &path, None, if_version).await?, printer);
        }
        Task::Wait { ids } => return wait::until_ended(&client, &ids, printer).await,
    }
    Ok(Exit::Done)
}

async fn create(client: &Client, args: TaskCreate, printer: &Printer) -> anyhow::Result<Exit> {
    let mut body = Map::new();
    body.insert("type".into(), json!(args.kind));
    body.insert("payload".into(), parse("--payload", &args.payload)?);
    body.insert("idempotent".into(), json!(args.idempotent));
    if let Some(metadata) = &args.metadata {
        body.insert("metadata".into(), parse("--metadata", metadata)?);
    }
    for (name, value) in [
        ("priority", args.priority.map(|value| json!(value))),
        ("max_retries", args.max_retries.map(|value| json!(value))),
        ("delay_seconds", args.delay.map(|value| json!(value))),
    ] {
        body.extend(value.map(|value| (name.to_owned(), value)));
    }
    let task = client.post("/tasks", Value::Object(body)).await?;
    let id = text(&task, "id");
    if args.wait {
        printer.note(&format!("created {id}"));
        return wait::until_ended(client, &[id], printer).await;
    }
    if printer.is_json() {
        printer.json(&task);
    } else {
        printer.data(&id);
    }
    if client.is_alone() && !printer.is_json() {
        printer.note("it waits: no server holds this database; `lavra serve` runs it");
    }
    Ok(Exit::Done)
}

async fn list(client: &Client, args: &TaskList, printer: &Printer) -> anyhow::Result<()> {
    let query = query([
        ("type", args.kind.clone()),
        ("status", args.status.clone()),
        ("created_after", args.after.map(|time| time.to_string())),
        ("created_before", args.before.map(|time| time.to_string())),
        ("limit", Some(args.limit.to_string())),
        ("cursor", args.cursor.clone()),
    ]);
    let page = client.get(&format!("/tasks?{query}")).await?;
    let items = page.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let rows = items.iter().map(|task| {
        ["id", "type", "status", "progress", "state", "created_at"]
            .map(|name| text(task, name))
            .to_vec()
    });
    let head = ["ID", "TYPE", "STATUS", "%", "STATE", "CREATED"];
    printer.table(&page, &head, rows.collect());
    note_more(&page, printer);
    Ok(())
}

/// The query string of those that have a value.
pub(super) fn query<const N: usize>(pairs: [(&str, Option<String>); N]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        if let Some(value) = value {
            query.append_pair(name, &value);
        }
    }
    query.finish()
}

/// Says how to go on after a page that is not the last.
pub(super) fn note_more(page: &Value, printer: &Printer) {
    let cursor = page.get("next_cursor").and_then(Value::as_str);
    if let (Some(cursor), false) = (cursor, printer.is_json()) {
        printer.note(&format!("more: --cursor {cursor}"));
    }
}

pub(super) fn show(task: &Value, printer: &Printer) {
    let Some(fields) = task.as_object() else { return printer.json(task) };
    let order = [
        "id",
        "type",
        "status",
        "state",
        "progress",
        "priority",
        "error",
        "retry_count",
        "max_retries",
        "attempts",
        "created_at",
        "updated_at",
        "run_at",
        "version",
        "metadata",
    ];
    let shown =
        order.iter().filter(|name| fields.get(**name).is_some_and(|value| !value.is_null()));
    let rows = shown.map(|name| vec![(*name).to_owned(), text(task, name)]).collect();
    printer.table(task, &["FIELD", "VALUE"], rows);
}

fn events_table(events: &Value, printer: &Printer) {
    let items = events.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let rows = items.iter().map(|event| {
        ["version", "created_at", "status", "state", "actor", "detail"]
            .map(|name| text(event, name))
            .to_vec()
    });
    printer.table(events, &["#", "AT", "STATUS", "STATE", "ACTOR", "DETAIL"], rows.collect());
}

/// A field as a person reads it: strings without quotes, nothing for null.
pub(super) fn text(value: &Value, name: &str) -> String {
    match value.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
