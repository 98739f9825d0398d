//! `lavra extract status`: endpoints down, months across, and what each cell means by its colour.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{is_of, month};
use crate::cli::ExtractStatus;
use crate::client::Client;
use crate::commands::task::{query, text};
use crate::exit::{BadUsage, Exit};
use crate::printer::{Cell, Color, Printer};
use crate::settings::Settings;

/// The most months side by side, fewer where a terminal is narrow; the latest are shown.
const MOST_MONTHS: usize = 12;
/// What a month takes of a line.
const MONTH_WIDTH: usize = "2024-01".len() + 2;

pub(super) async fn run(
    settings: &Settings,
    args: ExtractStatus,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let client = Client::open(settings).await?;
    let all = plan(&client, &args).await?;
    let names: BTreeSet<String> = all.iter().map(|item| text(item, "endpoint_name")).collect();
    let items: Vec<Value> = all
        .into_iter()
        .filter(|item| {
            let name = text(item, "endpoint_name");
            args.endpoint.as_deref().is_none_or(|endpoint| is_of(endpoint, &name))
        })
        .collect();
    if items.is_empty()
        && let Some(endpoint) = &args.endpoint
    {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let there = if names.is_empty() { "nothing".to_owned() } else { names };
        return Err(BadUsage(format!(
            "--endpoint {endpoint}: nothing of it is there; there is: {there}"
        ))
        .into());
    }
    let answer = json!({ "items": items });
    let mut grid: BTreeMap<(String, u64), BTreeMap<String, &Value>> = BTreeMap::new();
    let mut months = BTreeSet::new();
    for item in &items {
        let month: String = text(item, "data_date").chars().take("2024-01".len()).collect();
        months.insert(month.clone());
        grid.entry(in_order(&text(item, "endpoint_name"))).or_default().insert(month, item);
    }
    let names = grid.keys().map(name).collect::<Vec<_>>();
    let longest = names.iter().map(String::len).max().unwrap_or(0) + 2;
    let room = printer.width().map(|width| width.saturating_sub(longest) / MONTH_WIDTH);
    let hidden = months.len().saturating_sub(room.unwrap_or(MOST_MONTHS).clamp(1, MOST_MONTHS));
    let shown: Vec<String> = months.into_iter().skip(hidden).collect();
    let head: Vec<&str> =
        std::iter::once("ENDPOINT").chain(shown.iter().map(String::as_str)).collect();
    let rows = grid.values().zip(&names).map(|(by_month, endpoint)| {
        let cells =
            shown.iter().map(|month| by_month.get(month).map_or(Cell::new(""), |i| cell(i)));
        std::iter::once(Cell::new(endpoint)).chain(cells).collect()
    });
    printer.cells(&answer, &head, rows.collect());
    if !printer.is_json() {
        note(&items, hidden, printer);
    }
    Ok(Exit::Done)
}

/// A name with the number at its end apart: 2 comes before 10.
fn in_order(endpoint: &str) -> (String, u64) {
    let apart = endpoint.rsplit_once('_').and_then(|(name, end)| Some((name, end.parse().ok()?)));
    apart.map_or((endpoint.to_owned(), 0), |(name, number)| (format!("{name}_"), number))
}

fn name((name, number): &(String, u64)) -> String {
    if name.ends_with('_') { format!("{name}{number}") } else { name.clone() }
}

/// All of it, page by page.
async fn plan(client: &Client, args: &ExtractStatus) -> anyhow::Result<Vec<Value>> {
    let named = |flag, text: &Option<String>| {
        text.as_deref().map(|text| month(flag, text).map(|month| month.to_string())).transpose()
    };
    let months = (named("from", &args.from)?, named("to", &args.to)?);
    if let (Some(from), Some(to)) = &months
        && from > to
    {
        let text = format!("from {from} to {to} is no time: it ends before it begins");
        return Err(BadUsage(text).into());
    }
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let query = query([
            ("from", months.0.clone()),
            ("to", months.1.clone()),
            ("limit", Some("1000".to_owned())),
            ("cursor", cursor),
        ]);
        let page = client.get(&format!("/extractions/{}?{query}", args.name)).await?;
        items.extend(page.get("items").and_then(Value::as_array).cloned().unwrap_or_default());
        match text(&page, "next_cursor") {
            last if last.is_empty() => return Ok(items),
            next => cursor = Some(next),
        }
    }
}

/// A month of an endpoint in a few characters.
fn cell(item: &Value) -> Cell {
    let number = |name: &str| item.get(name).and_then(Value::as_i64).unwrap_or(0);
    let share = || {
        let (pages, all) = (number("pages"), number("total_pages").max(1));
        format!("{}%", (pages.min(all) * 100 / all).min(99))
    };
    match text(item, "status").as_str() {
        "COMPLETE" if number("total_records") == 0 => Cell::new("none").fg(Color::DarkGrey),
        "COMPLETE" => Cell::new(number("records")).fg(Color::Green),
        "FAILED" => Cell::new("failed").fg(Color::Red),
        "PARTIAL" => Cell::new(share()).fg(Color::Yellow),
        "FETCHING" => Cell::new(share()).fg(Color::Cyan),
        "DISCOVERING" => Cell::new("…").fg(Color::Cyan),
        _ => Cell::new("·").fg(Color::DarkGrey),
    }
}

fn note(items: &[Value], hidden: usize, printer: &Printer) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in items {
        *counts.entry(text(item, "status")).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    printer.note(&counts.join(", "));
    if hidden > 0 {
        printer.note(&format!("{hidden} earlier months are not shown: --from and --to choose"));
    }
    for item in items.iter().filter(|item| text(item, "status") == "FAILED").take(10) {
        printer.note(&format!("{}: {}", text(item, "task_id"), text(item, "last_error")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_stand_in_the_order_of_their_numbers() {
        let mut names = ["a_10", "a_2", "a", "a_publicacao", "b_1"].map(in_order);
        names.sort();
        let names: Vec<String> = names.iter().map(name).collect();
        assert_eq!(names, ["a", "a_2", "a_10", "a_publicacao", "b_1"]);
    }
}
