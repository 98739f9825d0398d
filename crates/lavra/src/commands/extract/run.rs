//! A run of extraction, in this process or in the one that has the database.

use std::time::Duration;

use anyhow::Context;
use axum::http::Method;
use lavra_db::Database;
use lavra_extract::event::Event;
use lavra_extract::task::{Extract as Handler, Order, Told};
use lavra_tasks::model::Status;
use lavra_tasks::{Handler as _, NewTask};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::again;
use super::bars::{self, Bars};
use crate::client::Client;
use crate::commands::task::text;
use crate::commands::{on_signal, wait};
use crate::exit::Exit;
use crate::node::{Node, Parts, listen_anywhere};
use crate::printer::Printer;
use crate::settings::Settings;
use crate::work::Work;

/// How long a run is left to the process that was told to run it; if that dies before, it is anybody's.
const TO_BEGIN: Duration = Duration::from_secs(60);

pub(super) async fn run(
    settings: &Settings,
    order: Order,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let parts = Parts { work: Work::EXTRACTIONS, private_allowed: true, ..Parts::default() };
    let payload = serde_json::to_value(&order)?;
    if settings.server.is_some() {
        return there(&Client::open(settings).await?, payload, &order, printer).await;
    }
    let tables = lavra_extract::migrations(&order.source()?.name);
    match Node::open_for(settings, parts, &tables).await {
        Ok(node) => here(node, payload, &order, printer).await,
        Err(error) => match Client::of_holder(&error) {
            // A server has the file: it extracts.
            Some(holder) => there(&holder, payload, &order, printer).await,
            None => Err(error),
        },
    }
}

/// Somewhere else: the task is made there, and watched.
async fn there(
    client: &Client,
    payload: Value,
    order: &Order,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let body = json!({ "type": Handler::KIND, "payload": payload });
    let task = client.call(Method::POST, "/tasks", Some(body), None).await?;
    let id = text(&task, "id");
    printer.note(&format!("the server runs it: task {id}"));
    let (task, is_told) = match wait::until_one_ended(client, &id, printer).await? {
        Some(task) => (task, false),
        None => {
            printer.note("stopping: the server finishes and stores what is under way");
            (client.post(&format!("/tasks/{id}:cancel"), Value::Null).await?, true)
        }
    };
    let summary = task.pointer("/metadata/summary").cloned().unwrap_or_default();
    let error = Some(text(&task, "error")).filter(|error| !error.is_empty());
    let ended = Ended { id, status: text(&task, "status"), error };
    Ok(end(&ended, &summary, is_told, order, printer))
}

/// In this process, which also serves the database meanwhile. The run is its own: another runner may not
/// be allowed to call where it was told to.
async fn here(
    mut node: Node,
    payload: Value,
    order: &Order,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let told_to_stop = on_signal()?;
    let (tasks, mut told) = (node.tasks.clone(), node.extract.watch());
    let listener = listen_anywhere().await?;
    let stop = CancellationToken::new();
    let left_behind = match &node.database {
        Database::Duck(_) => tasks.left_behind(Handler::KIND, &payload).await?,
        Database::Postgres(_) => None,
    };
    let id = match left_behind {
        Some(id) => id,
        None => {
            let (kind, delay_seconds) = (Handler::KIND.into(), Some(TO_BEGIN.as_secs()));
            let new = NewTask { kind, payload, delay_seconds, ..NewTask::default() };
            tasks.create(new).await?.id
        }
    };
    node.only = Some(id);
    let running = tokio::spawn(node.run(Some(listener), stop.clone()));
    let mut bars = Bars::new(printer, &order.source);
    let mut look = tokio::time::interval(Duration::from_millis(200));
    let (mut is_told, mut ended) = (false, None);
    let claims = tasks.task(id).await?.attempts;
    let task = loop {
        tokio::select! {
            heard = told.recv() => match heard {
                Ok(Told { task, event: Event::Ended { summary }, .. }) if task == id => {
                    ended = Some(summary);
                    // The task says so in a moment.
                    look = tokio::time::interval(Duration::from_millis(5));
                }
                Ok(Told { task, event, condition }) if task == id => bars.show(&event, &condition),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break tasks.task(id).await?,
            },
            _ = look.tick() => {
                let task = tasks.task(id).await?;
                // A cancelled task has ended at once, and its run when it has drained, if it had begun.
                let is_draining = task.status == Status::Cancelled && task.attempts > claims;
                let is_over = ended.is_some() || !is_draining;
                if task.status.is_terminal() && is_over {
                    break task;
                }
            }
            () = told_to_stop.cancelled(), if !is_told => {
                is_told = true;
                bars.say("stopping: what is under way is finished and stored; again to stop at once");
                tasks.cancel(id, None).await?;
            }
        }
    };
    stop.cancel();
    running.await.context("the process's parts ended")??;
    bars.close();
    // Another process may have run it: then the task has the summary.
    let summary = ended.map(|summary| json!(summary));
    let summary = summary.or_else(|| task.metadata.get("summary").cloned()).unwrap_or_default();
    let ended =
        Ended { id: task.id.to_string(), status: task.status.to_string(), error: task.error };
    Ok(end(&ended, &summary, is_told, order, printer))
}

/// A run that is over, wherever it ran.
struct Ended {
    id: String,
    status: String,
    error: Option<String>,
}

fn end(task: &Ended, summary: &Value, is_told: bool, order: &Order, printer: &Printer) -> Exit {
    if printer.is_json() {
        printer.json(
            &json!({ "task": task.id, "status": task.status, "error": task.error, "summary": summary }),
        );
    } else if !summary.is_null() {
        bars::summary(summary, printer);
    }
    let has_failed = summary.get("failed").and_then(Value::as_u64).unwrap_or(0) > 0;
    let again = if has_failed { again::retry() } else { again::same() };
    match task.status.as_str() {
        "COMPLETED" => {
            printer.note(&format!(
                "next: lavra{} sql \"SELECT * FROM psa.{}_extraction_tasks\"",
                again::database(),
                order.source
            ));
            Exit::Done
        }
        _ if is_told => {
            printer.note(&format!("to go on: {again}"));
            Exit::Interrupted
        }
        _ => {
            let reason = task.error.clone().unwrap_or_default();
            Exit::WorkRemains(format!("work remains: {reason}; to go on: {again}"))
        }
    }
}
