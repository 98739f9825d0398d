//! `lavra dead-letter …`.

use axum::http::Method;
use serde_json::Value;

use super::task::{note_more, query, show, text};
use crate::cli::DeadLetter;
use crate::client::Client;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    command: DeadLetter,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let client = Client::open(settings).await?;
    match command {
        DeadLetter::List { limit, cursor } => {
            let query = query([("limit", Some(limit.to_string())), ("cursor", cursor)]);
            let page = client.get(&format!("/dead-letters?{query}")).await?;
            let items = page.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            let rows = items.iter().map(|letter| {
                ["id", "task_id", "type", "reason", "created_at"]
                    .map(|name| text(letter, name))
                    .to_vec()
            });
            printer.table(&page, &["ID", "TASK", "TYPE", "REASON", "CREATED"], rows.collect());
            note_more(&page, printer);
        }
        DeadLetter::Redrive { id } => {
            let path = format!("/dead-letters/{id}:redrive");
            show(&client.call(Method::POST, &path, None, None).await?, printer);
        }
        DeadLetter::Remove { id } => {
            client.call(Method::DELETE, &format!("/dead-letters/{id}"), None, None).await?;
        }
    }
    Ok(Exit::Done)
}
