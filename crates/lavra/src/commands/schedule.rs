//! `lavra schedule …`.

use axum::http::Method;
use serde_json::{Value, json};

use super::json as parse;
use super::task::{show, text};
use crate::cli::Schedule;
use crate::client::Client;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    command: Schedule,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let client = Client::open(settings).await?;
    match command {
        Schedule::List => {
            let page = client.get("/schedules").await?;
            let items = page.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            let rows = items.iter().map(|schedule| {
                ["name", "type", "cron", "enabled", "next_at", "last_task"]
                    .map(|name| text(schedule, name))
                    .to_vec()
            });
            printer.table(
                &page,
                &["NAME", "TYPE", "CRON", "ON", "NEXT", "LAST TASK"],
                rows.collect(),
            );
        }
        Schedule::Set { name, kind, cron, payload } => {
            let body =
                json!({ "type": kind, "cron": cron, "payload": parse("--payload", &payload)? });
            let path = format!("/schedules/{name}");
            show(&client.call(Method::PUT, &path, Some(body), None).await?, printer);
        }
        Schedule::Remove { name } => {
            client.call(Method::DELETE, &format!("/schedules/{name}"), None, None).await?;
        }
    }
    Ok(Exit::Done)
}
