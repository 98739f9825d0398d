//! `lavra extract …`

mod again;
mod audit;
pub(crate) mod bars;
mod export;
mod job;
mod run;
mod status;

use std::path::Path;

use lavra_db::Target;
use lavra_extract::Month;
use lavra_extract::plan::{Plan, plan};
use lavra_extract::source::{Endpoint, Source};
use lavra_extract::task::{Order, scope_of};
use serde_json::{Value, json};

use super::read_file;
use super::task::text;
use crate::cli::{Extract, ExtractRetry, ExtractRun, ScopeArgs, SourceArgs};
use crate::client::Client;
use crate::exit::{BadUsage, Exit};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    command: Extract,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    match command {
        Extract::Check { file } => check(&file, printer),
        Extract::Status(args) => status::run(settings, args, printer).await,
        Extract::Run(args) => {
            let order = order(&args)?;
            let source = order.source().map_err(|error| BadUsage(error.to_string()))?;
            // What makes no sense is told before anything is opened.
            let planned = plan(&source, &order.wanted(), jiff::Timestamp::now())
                .map_err(|error| BadUsage(error.to_string()))?;
            tell_what_is_left_out(&order, &planned, printer);
            if args.dry_run {
                return dry_run(settings, &order, &source, &planned, printer).await;
            }
            run::run(settings, order, printer).await
        }
        Extract::Retry(args) => run::run(settings, retry(&args)?, printer).await,
        Extract::Audit(args) => audit::run(settings, args, printer).await,
        Extract::Export(args) => export::run(settings, args, printer).await,
    }
}

fn read(file: &Path) -> Result<String, BadUsage> {
    read_file("the source file", file)
}

fn check(file: &Path, printer: &Printer) -> anyhow::Result<Exit> {
    match Source::parse(&read(file)?) {
        Ok(source) => {
            let series = source.endpoints.iter().flat_map(Endpoint::all_series).count();
            let value = json!({
                "source": source.name,
                "endpoints": source.endpoints.len(),
                "series": series,
            });
            if printer.is_json() {
                printer.json(&value);
            } else {
                let endpoints = match source.endpoints.len() {
                    1 => "1 endpoint".to_owned(),
                    many => format!("{many} endpoints"),
                };
                let name = source.name;
                printer.data(&format!("{name} is valid: {endpoints}, {series} series a month"));
            }
            Ok(Exit::Done)
        }
        Err(mistakes) => {
            let lines: Vec<String> = mistakes
                .0
                .iter()
                .map(|mistake| format!("{}:{}: {}", file.display(), mistake.line, mistake.text))
                .collect();
            Err(BadUsage(lines.join("\n")).into())
        }
    }
}

/// A source as it was named: its name, and the text of its file where it has one.
struct Named {
    name: String,
    definition: Option<String>,
}

fn named(args: &SourceArgs) -> anyhow::Result<Named> {
    let definition = args.source.as_deref().map(read).transpose()?;
    let name = match (&args.name, &definition) {
        (Some(name), _) => name.clone(),
        (None, Some(text)) => {
            let file = args.source.as_deref().unwrap_or(Path::new("")).display();
            Source::parse(text).map_err(|mistakes| BadUsage(format!("{file}: {mistakes}")))?.name
        }
        (None, None) => return Err(BadUsage("which source? pncp is built in".into()).into()),
    };
    Ok(Named { name, definition })
}

fn month(flag: &str, text: &str) -> anyhow::Result<Month> {
    text.parse().map_err(|error| BadUsage(format!("--{flag}: {error}")).into())
}

/// The months of a scope, as far as they were named.
fn months(args: &ScopeArgs) -> anyhow::Result<(Option<Month>, Option<Month>)> {
    let read = |flag, text: &Option<String>| text.as_deref().map(|t| month(flag, t)).transpose();
    Ok((read("from", &args.from)?, read("to", &args.to)?))
}

fn order(args: &ExtractRun) -> anyhow::Result<Order> {
    let Named { name, definition } = named(&args.source)?;
    Ok(Order {
        source: name,
        definition,
        from: month("from", &args.from)?,
        to: month("to", &args.to)?,
        endpoints: args.endpoints.clone(),
        refresh: args.refresh,
        retry: false,
        base_url: args.base_url.clone(),
    })
}

fn retry(args: &ExtractRetry) -> anyhow::Result<Order> {
    let Named { name, definition } = named(&args.source)?;
    let (from, to) = months(&args.scope)?;
    let order = Order {
        source: name,
        definition,
        from: from.unwrap_or(Month::FIRST),
        to: to.unwrap_or(Month::LAST),
        endpoints: args.scope.endpoints.clone(),
        refresh: false,
        retry: true,
        base_url: args.base_url.clone(),
    };
    let usage = |error: lavra_extract::Error| BadUsage(error.to_string());
    let source = order.source().map_err(usage)?;
    scope_of(&source, from, to, &order.endpoints).map_err(usage)?;
    Ok(order)
}

/// Whether an endpoint is the one that was named, with or without the value of its fan-out.
fn is_of(name: &str, endpoint: &str) -> bool {
    endpoint.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Endpoints and months that were asked for, and of which nothing is planned.
fn tell_what_is_left_out(order: &Order, plan: &Plan, printer: &Printer) {
    for name in &order.endpoints {
        if !plan.tasks.iter().any(|task| is_of(name, &task.endpoint_name)) {
            printer.note(&format!(
                "{name}: there is nothing of it from {} to {}",
                order.from, order.to
            ));
        }
    }
    let now = Month::of(jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date());
    if order.to > now {
        printer.note(&format!("months after {now} have not begun: nothing of them is planned"));
    }
}

/// The plan and what it would cost: of a database that is there, for what it lacks.
async fn dry_run(
    settings: &Settings,
    order: &Order,
    source: &Source,
    plan: &Plan,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let is_there = settings.server.is_some()
        || match &settings.target {
            Target::File(path) => path.exists(),
            Target::Postgres(_) => true,
        };
    if !is_there {
        show_plan(source, plan, printer);
        return Ok(Exit::Done);
    }
    let mut body = json!(order);
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|name, _| name != "source" && name != "retry");
    }
    let path = format!("/extractions/{}:plan", order.source);
    let answer = Client::open(settings).await?.post(&path, body).await?;
    let tasks = answer.get("tasks").and_then(Value::as_array).cloned().unwrap_or_default();
    let rows = tasks.iter().map(|task| {
        let of = |name| text(task, name);
        let status = Some(of("status")).filter(|status| !status.is_empty());
        let status = status.unwrap_or_else(|| "new".to_owned());
        vec![of("task_id"), of("endpoint_name"), of("data_date"), status, of("requests_at_least")]
    });
    let head = ["TASK", "ENDPOINT", "FROM", "STATUS", "REQUESTS"];
    printer.table(&answer, &head, rows.collect());
    let of = |name| text(&answer, name);
    printer.note(&format!(
        "{} tasks, {} of them new: at least {} requests, at most {} at once",
        of("total"),
        of("new"),
        of("requests_at_least"),
        of("requests_at_once")
    ));
    Ok(Exit::Done)
}

fn show_plan(source: &Source, plan: &Plan, printer: &Printer) {
    let rows: Vec<Vec<String>> = plan
        .tasks
        .iter()
        .map(|task| {
            let size = source.series(&task.endpoint_name).map_or(0, |s| s.endpoint.page_size);
            let days = size.to_string();
            vec![
                task.task_id.0.clone(),
                task.endpoint_name.clone(),
                task.data_date.to_string(),
                days,
            ]
        })
        .collect();
    let value = json!({ "source": source.name, "tasks": plan.tasks });
    printer.table(&value, &["TASK", "ENDPOINT", "FROM", "PAGE SIZE"], rows);
    printer.note(&format!(
        "{} tasks: at least {} requests to find out their totals, at most {} at once",
        plan.tasks.len(),
        plan.tasks.len(),
        source.limits.in_flight
    ));
}
