//! `lavra sql 'SELECT …'`: read-only, also while a server holds the file.

use serde_json::{Value, json};

use crate::cli::Sql;
use crate::client::Client;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    args: &Sql,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let client = Client::open(settings).await?;
    let answer = client.post("/sql", json!({ "query": args.query, "limit": args.limit })).await?;
    let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let columns: Vec<String> = list("columns").iter().map(cell).collect();
    let rows: Vec<Vec<Value>> =
        list("rows").iter().map(|row| row.as_array().cloned().unwrap_or_default()).collect();
    show(&columns, &rows, printer);
    if answer.get("truncated").and_then(Value::as_bool) == Some(true) && !printer.is_json() {
        printer.note(&format!("only the first {} rows; --limit shows more", args.limit));
    }
    Ok(Exit::Done)
}

/// An answer as a table, or as a list of objects.
pub(crate) fn show(columns: &[String], rows: &[Vec<Value>], printer: &Printer) {
    let objects: Vec<Value> =
        rows.iter().map(|row| columns.iter().cloned().zip(row.iter().cloned()).collect()).collect();
    let head: Vec<&str> = columns.iter().map(String::as_str).collect();
    let cells = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    printer.table(&json!(objects), &head, cells);
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
