//! Waiting for tasks: a bar for each on a terminal, plain lines elsewhere.

use std::collections::HashMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::on_signal;
use super::task::text;
use crate::client::Client;
use crate::exit::Exit;
use crate::printer::Printer;

const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) async fn until_ended(
    client: &Client,
    ids: &[String],
    printer: &Printer,
) -> anyhow::Result<Exit> {
    if client.is_alone() {
        printer
            .note("no server holds this database: what waits runs when one does (`lavra serve`)");
    }
    let told = on_signal()?;
    let mut watch = Watch::new(printer);
    let mut ended: Vec<Value> = Vec::new();
    let mut open: Vec<String> = ids.to_vec();
    while !open.is_empty() {
        let mut still = Vec::new();
        for id in open {
            let task = client.get(&format!("/tasks/{id}")).await?;
            watch.show(&id, &task);
            if matches!(text(&task, "status").as_str(), "COMPLETED" | "FAILED" | "CANCELLED") {
                ended.push(task);
            } else {
                still.push(id);
            }
        }
        open = still;
        if open.is_empty() {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = told.cancelled() => return Ok(Exit::Interrupted),
        }
    }
    watch.close();
    let rows = ended
        .iter()
        .map(|task| ["id", "type", "status", "error"].map(|name| text(task, name)).to_vec());
    printer.table(&json!(ended), &["ID", "TYPE", "STATUS", "ERROR"], rows.collect());
    let bad = ended.iter().filter(|task| text(task, "status") != "COMPLETED").count();
    if bad > 0 {
        return Ok(Exit::WorkRemains(format!(
            "{bad} of {} did not complete; `lavra task retry ID` tries one again",
            ended.len()
        )));
    }
    Ok(Exit::Done)
}

/// The task when it has ended; `None` when someone did not want to wait.
pub(crate) async fn until_one_ended(
    client: &Client,
    id: &str,
    printer: &Printer,
) -> anyhow::Result<Option<Value>> {
    let told = on_signal()?;
    let mut watch = Watch::new(printer);
    loop {
        let task = client.get(&format!("/tasks/{id}")).await?;
        watch.show(id, &task);
        if matches!(text(&task, "status").as_str(), "COMPLETED" | "FAILED" | "CANCELLED") {
            watch.close();
            return Ok(Some(task));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = told.cancelled() => return Ok(None),
        }
    }
}

/// What a person sees meanwhile.
struct Watch<'a> {
    printer: &'a Printer,
    bars: MultiProgress,
    shown: HashMap<String, (ProgressBar, String)>,
}

impl<'a> Watch<'a> {
    fn new(printer: &'a Printer) -> Self {
        Self { printer, bars: MultiProgress::new(), shown: HashMap::new() }
    }

    fn show(&mut self, id: &str, task: &Value) {
        let state = format!("{} {}", text(task, "status"), text(task, "state"));
        let progress = task.get("progress").and_then(Value::as_u64).unwrap_or(0);
        let watched = self.printer.is_watched();
        let bars = &self.bars;
        let (bar, last) = self.shown.entry(id.to_owned()).or_insert_with(|| {
            let bar = if watched { bars.add(bar(id)) } else { ProgressBar::hidden() };
            (bar, String::new())
        });
        bar.set_position(progress);
        bar.set_message(state.clone());
        if *last != state && !watched && !self.printer.is_json() {
            self.printer.note(&format!("{id} {progress:>3}% {state}"));
        }
        *last = state;
        if text(task, "status") != "PENDING" && text(task, "status") != "IN_PROGRESS" {
            bar.abandon();
        }
    }

    fn close(&self) {
        self.shown.values().for_each(|(bar, _)| bar.abandon());
    }
}

fn bar(id: &str) -> ProgressBar {
    let bar = ProgressBar::new(100);
    let style =
        ProgressStyle::with_template("{prefix} {bar:30.green} {pos:>3}% {elapsed:>4} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(
        id.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect::<String>(),
    );
    bar
}
