//! `lavra mission …`.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::read_file;
use super::task::{note_more, query, text};
use crate::cli::{Mission, MissionAdd, MissionChoice, MissionFilter, MissionList, Phase};
use crate::client::Client;
use crate::exit::{BadUsage, Exit};
use crate::printer::{Cell, Color, Printer};
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    command: Mission,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    // What makes no sense is told before anything is opened.
    if let Mission::Add(MissionAdd { from, to, .. }) = &command
        && from > to
    {
        return Err(BadUsage(format!("--from {from} --to {to}: it ends before it begins")).into());
    }
    let client = Client::open(settings).await?;
    match command {
        Mission::Add(args) => add(&client, &args, printer).await?,
        Mission::Import { file, queue } => {
            let body = json!({ "csv": read_file("the CSV file", &file)?, "queue": queue });
            made(&client.post("/missions:import", body).await?, printer);
        }
        Mission::List(args) => list(&client, &args, printer).await?,
        Mission::Show { id } => show(&client.get(&format!("/missions/{id}")).await?, printer),
        Mission::Log { id } => log(&timeline(&client, &id).await?, printer),
        Mission::Copy { id, queue } => {
            let path = format!("/missions/{id}:copy");
            let copy = client.post(&path, json!({ "queue": queue })).await?;
            printer.table(&copy, &["ID"], vec![vec![text(&copy, "id")]]);
        }
        Mission::Queue(choice) => {
            return wish(&client, "queue", &choice, false, "queued", printer).await;
        }
        Mission::Cancel(choice) => {
            return wish(&client, "cancel", &choice, false, "canceled", printer).await;
        }
        Mission::Retry { choice, again_from } => {
            let from_scrape = again_from == Some(Phase::Scrape);
            return wish(&client, "retry", &choice, from_scrape, "queued again", printer).await;
        }
    }
    Ok(Exit::Done)
}

async fn add(client: &Client, args: &MissionAdd, printer: &Printer) -> anyhow::Result<()> {
    let languages: Vec<Vec<&str>> =
        args.languages.iter().map(|set| set.split(',').map(str::trim).collect()).collect();
    let body = json!({
        "from": args.from.to_string(), "to": args.to.to_string(), "every": args.every, "media_types": args.media_types,
        "languages": languages, "queue": args.queue,
    });
    made(&client.post("/missions", body).await?, printer);
    Ok(())
}

fn made(answer: &Value, printer: &Printer) {
    if printer.is_json() {
        return printer.json(answer);
    }
    let added = answer.get("added").and_then(Value::as_array).map_or(0, Vec::len);
    let (known, queued) = (text(answer, "known"), text(answer, "queued"));
    printer.data(&format!("{added} missions made, {known} were there already, {queued} queued"));
    if added > 0 && queued == "0" {
        printer.note("next: lavra mission queue --bank, then lavra fleet start");
    }
}

fn conditions(filter: &MissionFilter) -> Map<String, Value> {
    let mut conditions = Map::new();
    for (name, value) in [
        ("status", &filter.status),
        ("checkpoint", &filter.checkpoint),
        ("error_code", &filter.error_code),
        ("media_type", &filter.media_type),
        ("language", &filter.language),
        ("worker", &filter.worker),
        ("from", &filter.from.map(|day| day.to_string())),
        ("to", &filter.to.map(|day| day.to_string())),
    ] {
        if let Some(value) = value {
            conditions.insert(name.into(), json!(value));
        }
    }
    if filter.bank {
        conditions.insert("in_bank".into(), json!(true));
    }
    conditions
}

async fn list(client: &Client, args: &MissionList, printer: &Printer) -> anyhow::Result<()> {
    let filter = conditions(&args.filter);
    let named = |name: &str| {
        filter.get(name).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    };
    let query = query([
        ("status", named("status")),
        ("in_bank", named("in_bank")),
        ("checkpoint", named("checkpoint")),
        ("error_code", named("error_code")),
        ("media_type", named("media_type")),
        ("language", named("language")),
        ("worker", named("worker")),
        ("from", named("from")),
        ("to", named("to")),
        ("limit", Some(args.limit.to_string())),
        ("cursor", args.cursor.clone()),
    ]);
    let page = client.get(&format!("/missions?{query}")).await?;
    let items = page.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let rows = items.iter().map(|mission| {
        let days = match (text(mission, "date_start"), text(mission, "date_end")) {
            (start, end) if start == end => start,
            (start, end) => format!("{start}..{end}"),
        };
        vec![
            Cell::new(text(mission, "id")),
            Cell::new(days),
            Cell::new(text(mission, "media_type")),
            Cell::new(languages(mission)),
            status_cell(mission),
            Cell::new(text(mission, "checkpoint")),
            Cell::new(text(mission, "ads_count")),
            Cell::new(why(mission)),
        ]
    });
    let head = ["ID", "DAYS", "MEDIA", "LANGUAGES", "STATUS", "CHECKPOINT", "ADS", "WHY"];
    printer.cells(&page, &head, rows.collect());
    note_more(&page, printer);
    Ok(())
}

fn languages(mission: &Value) -> String {
    let list = mission.get("languages").and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

/// The status as people see it: what was never queued is in the bank.
fn status_cell(mission: &Value) -> Cell {
    let status = text(mission, "status");
    let in_bank = status == "queued" && mission.get("queued_at").is_none_or(Value::is_null);
    let cell = Cell::new(if in_bank { "bank".to_owned() } else { status.clone() });
    match status.as_str() {
        "completed" => cell.fg(Color::Green),
        "failed" => cell.fg(Color::Red),
        "running" => cell.fg(Color::Cyan),
        _ => cell,
    }
}

/// The error, or what it waits for.
fn why(mission: &Value) -> String {
    let (code, message) = (text(mission, "error_code"), text(mission, "error_message"));
    if !code.is_empty() {
        let short: String = message.chars().take(60).collect();
        return format!("{code} {short}").trim().to_owned();
    }
    let waiting = text(mission, "waiting");
    let known: Option<lavra_fleet::model::Waiting> = waiting.parse().ok();
    known.map_or(waiting, |waiting| format!("waits for {}", waiting.says()))
}

fn show(mission: &Value, printer: &Printer) {
    let order = [
        "id",
        "date_start",
        "date_end",
        "media_type",
        "languages",
        "status",
        "checkpoint",
        "waiting",
        "worker_id",
        "worker_job_id",
        "worker_data_url",
        "proxy_used",
        "writer_id",
        "writer_job_id",
        "ads_count",
        "error_code",
        "error_message",
        "retry_count",
        "attempts",
        "created_at",
        "queued_at",
        "started_at",
        "finished_at",
        "next_attempt_at",
    ];
    let is_there = |name: &&&str| mission.get(**name).is_some_and(|value| !value.is_null());
    let rows = order.iter().filter(is_there).map(|name| {
        let value = if *name == "languages" { languages(mission) } else { text(mission, name) };
        vec![(*name).to_owned(), value]
    });
    printer.table(mission, &["FIELD", "VALUE"], rows.collect());
    let code = text(mission, "error_code");
    if !code.is_empty() && !printer.is_json() {
        printer.note(&format!("about {code}: docs/fleet-errors.md#{}", code.to_lowercase()));
    }
}

/// All of a mission's log, page by page.
async fn timeline(client: &Client, id: &str) -> anyhow::Result<Value> {
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let query = query([("cursor", cursor)]);
        let page = client.get(&format!("/missions/{id}/log?{query}")).await?;
        items.extend(page.get("items").and_then(Value::as_array).cloned().unwrap_or_default());
        match text(&page, "next_cursor") {
            last if last.is_empty() => return Ok(json!({ "items": items })),
            next => cursor = Some(next),
        }
    }
}

/// The timeline of a mission.
fn log(answer: &Value, printer: &Printer) {
    let items = answer.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let rows = items.iter().map(|entry| {
        let at = text(entry, "timestamp");
        let at = at.get(..19).unwrap_or(&at).replace('T', " ");
        let details = entry.get("details").and_then(Value::as_object).cloned().unwrap_or_default();
        let shown: Vec<String> = details
            .iter()
            .filter(|(name, value)| !value.is_null() && *name != "failed_items")
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        vec![at, text(entry, "event"), format!("{{ {} }}", shown.join(", "))]
    });
    printer.table(answer, &["TIMESTAMP", "EVENT", "DETAILS"], rows.collect());
}

async fn wish(
    client: &Client,
    what: &str,
    choice: &MissionChoice,
    from_scrape: bool,
    done: &str,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let body = json!({
        "ids": choice.ids, "filter": conditions(&choice.filter), "all": choice.all,
        "from_scrape": from_scrape,
    });
    let answer = client.call(Method::POST, &format!("/missions:{what}"), Some(body), None).await?;
    let refused = answer.get("refused").and_then(Value::as_array).cloned().unwrap_or_default();
    if printer.is_json() {
        printer.json(&answer);
    } else {
        let count = answer.get("done").and_then(Value::as_array).map_or(0, Vec::len);
        printer.data(&format!("{count} missions {done}"));
        for pair in &refused {
            let part = |place: usize| pair.get(place).and_then(Value::as_str).unwrap_or_default();
            printer.note(&format!("{} {}", part(0), part(1)));
        }
        if what == "queue" && count > 0 {
            printer.note("next: lavra fleet start");
        }
    }
    Ok(match refused.len() {
        0 => Exit::Done,
        count => Exit::WorkRemains(format!("{count} missions were refused")),
    })
}
