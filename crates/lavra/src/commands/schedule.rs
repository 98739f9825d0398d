//! `lavra schedule …`.

use axum::http::Method;
use jiff::Timestamp;
use lavra_tasks::next_time;
use serde_json::{Value, json};

use super::json as parse;
use super::task::text;
use crate::cli::Schedule;
use crate::client::Client;
use crate::exit::{BadUsage, Exit};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    command: Schedule,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    // What makes no sense is told before anything is opened.
    if let Schedule::Set { cron, .. } = &command {
        next_time(cron, Timestamp::now()).map_err(|error| BadUsage(error.to_string()))?;
    }
    let client = Client::open(settings).await?;
    match command {
        Schedule::List => {
            let page = client.get("/schedules").await?;
            let items = page.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            table(&page, &items, printer);
        }
        Schedule::Set { name, kind, cron, payload } => {
            let body =
                json!({ "type": kind, "cron": cron, "payload": parse("--payload", &payload)? });
            let path = format!("/schedules/{name}");
            let schedule = client.call(Method::PUT, &path, Some(body), None).await?;
            table(&schedule, std::slice::from_ref(&schedule), printer);
        }
        Schedule::Remove { name } => {
            client.call(Method::DELETE, &format!("/schedules/{name}"), None, None).await?;
        }
    }
    Ok(Exit::Done)
}

fn table(answer: &Value, schedules: &[Value], printer: &Printer) {
    let rows = schedules.iter().map(|schedule| {
        ["name", "type", "cron", "enabled", "next_at", "last_task"]
            .map(|name| text(schedule, name))
            .to_vec()
    });
    let head = ["NAME", "TYPE", "CRON", "ON", "NEXT", "LAST TASK"];
    printer.table(answer, &head, rows.collect());
}
