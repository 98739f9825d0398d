//! `lavra demo`: the service on loopback with a DuckDB file in a fresh directory, some work for
//! it, and a look at what came of it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lavra_tasks::model::Status;
use lavra_tasks::{Context, Failure, Handler, NewTask, Outcome, Tasks};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::on_signal;
use crate::cli::{Demo, Options};
use crate::exit::Exit;
use crate::node::{Node, Parts, listen};
use crate::printer::Printer;
use crate::settings::Settings;

/// `count`: counts to `to`, a step at a time; fails on its first attempts if asked to.
#[derive(Debug)]
pub(crate) struct Count;

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CountInput {
    to: u32,
    step_ms: u64,
    fail_attempts: i32,
}

impl Default for CountInput {
    fn default() -> Self {
        Self { to: 10, step_ms: 100, fail_attempts: 0 }
    }
}

impl Handler for Count {
    type Input = CountInput;

    const KIND: &'static str = "count";

    async fn run(&self, input: CountInput, context: Context) -> Outcome {
        context.step("Counting", json!({ "to": input.to }));
        for number in 1..=input.to {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(input.step_ms)) => {}
                _ = context.stopped() => return Err(Failure::Stopped),
            }
            context.progress(
                (number * 100 / input.to.max(1)) as i16,
                format!("Counted {number}/{}", input.to),
            );
            if context.attempt() <= input.fail_attempts && number * 2 > input.to {
                return Err(Failure::Retry {
                    error: "the demonstration asked for a failure".into(),
                    after: None,
                });
            }
        }
        Ok(Some(json!({ "counted": input.to, "attempt": context.attempt() })))
    }
}

pub(crate) async fn run(args: &Demo, printer: &Printer) -> anyhow::Result<Exit> {
    let directory = std::env::temp_dir().join(format!("lavra-demo-{}", std::process::id()));
    std::fs::create_dir_all(&directory).context("no directory for the demonstration")?;
    let file = directory.join("lavra.duckdb");
    let options = Options {
        database: Some(file.to_string_lossy().into_owned()),
        artefacts: Some(directory.join("artefacts").to_string_lossy().into_owned()),
        ..Options::default()
    };
    let mut settings = Settings::load(&options)?;
    settings.backoff.first = Duration::from_millis(500);
    let parts = Parts {
        serve: true,
        run: true,
        demo_types: true,
        private_allowed: true,
        ..Parts::default()
    };
    let node = Node::open(&settings, parts).await?;
    let listener = match listen(&settings.listen).await {
        Ok(listener) => listener,
        Err(_) => listen("127.0.0.1:0").await?,
    };
    let url = format!("http://{}", listener.local_addr()?);
    printer.note(&format!("lavra serves {url} on {}", file.display()));
    let tasks = node.tasks.clone();
    let told = on_signal()?;
    let stop = CancellationToken::new();
    let running = tokio::spawn(node.run(Some(listener), stop.clone()));

    let outcome = tokio::select! {
        outcome = work(&tasks, &url, args.tasks, printer) => Some(outcome?),
        () = told.cancelled() => None,
    };
    if let Some(bad) = outcome {
        printer.note(&format!(
            "\nTry, in another terminal:\n  lavra --server {url} task list\n  lavra --server {url} task create count --payload '{{\"to\": 50}}' --wait\n  curl {url}/openapi.json"
        ));
        if !args.exit {
            printer.note("Ctrl-C ends the demonstration.");
            told.cancelled().await;
        }
        stop.cancel();
        running.await??;
        if bad > 0 {
            return Ok(Exit::WorkRemains(format!("{bad} tasks did not complete")));
        }
        return Ok(Exit::Done);
    }
    stop.cancel();
    running.await??;
    Ok(Exit::Interrupted)
}

/// Submits the work, watches it, and prints what came of it. Returns how many went wrong.
async fn work(tasks: &Tasks, url: &str, count: usize, printer: &Printer) -> anyhow::Result<usize> {
    let begun = Instant::now();
    let mut requests: Vec<NewTask> = (0..count)
        .map(|number| NewTask {
            kind: "count".into(),
            payload: json!({ "to": 10 + number, "step_ms": 60 + 10 * (number % 5), "fail_attempts": i32::from(number % 4 == 3) }),
            metadata: Some(json!({ "demo": number })),
            ..NewTask::default()
        })
        .collect();
    requests.push(NewTask {
        kind: "http".into(),
        payload: json!({ "url": format!("{url}/openapi.json") }),
        idempotent: true,
        ..NewTask::default()
    });
    let created = tasks.create_all(requests).await?;
    printer.note(&format!(
        "{} tasks were created; every fourth fails on its first attempt",
        created.len()
    ));
    let bars = Bars::new(printer, created.len());
    let mut ended = Vec::new();
    for made in &created {
        loop {
            let task = tasks.task(made.id).await?;
            bars.show(&task);
            if task.status.is_terminal() {
                bars.overall.inc(1);
                ended.push(task);
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    bars.close();
    let rows = ended.iter().map(|task| {
        vec![
            task.id.to_string(),
            task.kind.clone(),
            task.status.to_string(),
            task.attempts.to_string(),
            // The first one makes the version 0.
            (task.version + 1).to_string(),
        ]
    });
    printer.table(&json!(ended), &["ID", "TYPE", "STATUS", "ATTEMPTS", "EVENTS"], rows.collect());
    printer.note(&format!("{} tasks ended in {:.1} s", ended.len(), begun.elapsed().as_secs_f32()));
    if let Some(last) = ended.last() {
        let result = tasks.result(last.id).await;
        if let Ok(result) = result {
            printer.note(&format!("result of {}: {}", last.id, result.payload));
        }
    }
    Ok(ended.iter().filter(|task| task.status != Status::Completed).count())
}

struct Bars {
    overall: ProgressBar,
    current: ProgressBar,
}

impl Bars {
    fn new(printer: &Printer, count: usize) -> Self {
        let bars = MultiProgress::new();
        let make = |length: usize, template: &str| {
            if !printer.is_watched() {
                return ProgressBar::hidden();
            }
            let bar = bars.add(ProgressBar::new(length as u64));
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        };
        Self {
            overall: make(count, "all   {bar:30.cyan} {pos}/{len} {elapsed}"),
            current: make(100, "task  {bar:30.green} {pos:>3}% {msg}"),
        }
    }

    fn show(&self, task: &lavra_tasks::model::Task) {
        self.current.set_position(task.progress.max(0) as u64);
        self.current.set_message(format!("{} {}", task.status, task.state));
    }

    fn close(&self) {
        self.current.finish_and_clear();
        self.overall.abandon();
    }
}
