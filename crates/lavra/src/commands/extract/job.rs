//! Work that a command does itself where it may open the database, and lets the process do that has
//! it otherwise.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use lavra_tasks::model::Status;
use lavra_tasks::store::ListFilter;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::commands::task::text;
use crate::commands::{on_signal, wait};
use crate::exit::{Exit, ServerUnreachable};
use crate::node::{Node, Parts, listen_anywhere};
use crate::printer::Printer;
use crate::settings::Settings;

/// How long a process that ends may still have the file.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// What came of it, or how it ended without.
pub(super) type Outcome = Result<Value, Exit>;

/// What a job has while it runs.
pub(super) struct Job {
    pub(super) stop: CancellationToken,
    bar: ProgressBar,
}

impl Job {
    pub(super) fn tell(&self, done: usize, all: usize) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
    }
}

/// Runs `here` with an open database, or a task of `kind` with `payload` in the process that has it.
pub(super) async fn run<F>(
    settings: &Settings,
    kind: &str,
    payload: Value,
    printer: &Printer,
    here: impl FnOnce(&Node, Job) -> F,
) -> anyhow::Result<Outcome>
where
    F: Future<Output = anyhow::Result<Value>>,
{
    if settings.server.is_some() {
        return there(&Client::open(settings).await?, kind, payload, printer).await;
    }
    let parts = Parts { private_allowed: true, ..Parts::default() };
    // Since when whoever has the file does not answer.
    let mut silent: Option<Instant> = None;
    let node = loop {
        let error = match Node::open(settings, parts).await {
            Ok(node) => break node,
            Err(error) => error,
        };
        let Some(holder) = Client::of_holder(&error) else { return Err(error) };
        if silent.is_some_and(|since| since.elapsed() > PATIENCE) {
            return Err(error);
        }
        match there(&holder, kind, payload.clone(), printer).await {
            // A command had the file, and ends without doing it: it does not answer any more, and has
            // the file for a moment longer.
            Err(error) if error.is::<ServerUnreachable>() => {
                silent.get_or_insert_with(Instant::now);
            }
            done => return done,
        }
        tokio::time::sleep(PAUSE).await;
    };
    if silent.is_some() {
        let left = ListFilter {
            kind: Some(kind.into()),
            status: Some(Status::Pending),
            limit: 100,
            ..ListFilter::default()
        };
        for task in node.tasks.store().list(left).await? {
            if node.tasks.input(task.id).await? == payload {
                node.tasks.cancel(task.id, None).await?;
            }
        }
    }
    let told = on_signal()?;
    let stop = CancellationToken::new();
    let bar = if printer.is_watched() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{bar:30.green} {pos}/{len} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let job = Job { stop: stop.clone(), bar: bar.clone() };
    let working = here(&node, job);
    // Whoever asks for the file meanwhile is answered.
    let ended = CancellationToken::new();
    let serving = tokio::spawn(node.run(Some(listen_anywhere().await?), ended.clone()));
    tokio::pin!(working);
    let worked = tokio::select! {
        worked = &mut working => worked,
        () = told.cancelled() => {
            stop.cancel();
            working.await
        }
    };
    bar.finish_and_clear();
    ended.cancel();
    serving.await??;
    let value = worked?;
    Ok(if stop.is_cancelled() { Err(Exit::Interrupted) } else { Ok(value) })
}

/// Somewhere else: the task is made there, and watched.
async fn there(
    client: &Client,
    kind: &str,
    payload: Value,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let body = json!({ "type": kind, "payload": payload });
    let id = text(&client.post("/tasks", body).await?, "id");
    let Some(task) = wait::until_one_ended(client, &id, printer).await? else {
        client.post(&format!("/tasks/{id}:cancel"), Value::Null).await?;
        return Ok(Err(Exit::Interrupted));
    };
    match text(&task, "status").as_str() {
        "COMPLETED" => {
            let result = client.get(&format!("/tasks/{id}/result")).await?;
            Ok(Ok(result.get("payload").cloned().unwrap_or_default()))
        }
        "CANCELLED" => bail!("task {id} was cancelled"),
        _ => bail!("task {id}: {}", text(&task, "error")),
    }
}
