//! `lavra key …`: the key itself goes to stdout, once, so that it can be piped; advice to stderr.

use axum::http::Method;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit};
use serde_json::{Value, json};

use super::task::text;
use crate::cli::Key;
use crate::client::Client;
use crate::exit::{BadUsage, Exit};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    command: Key,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    match command {
        Key::Create { name, role, expires } => {
            let seconds = expires.as_deref().map(seconds).transpose()?;
            let order = json!({ "name": name, "role": role, "expires_in_seconds": seconds });
            let made = Client::open(settings).await?.post("/keys", order).await?;
            if printer.is_json() {
                printer.json(&made);
            } else {
                printer.data(&text(&made, "key"));
            }
            let id = text(&made, "id");
            printer.note(&format!(
                "That is the key, shown this once: keep it where secrets are kept. Programs send it as \
                 Authorization: Bearer, lavra itself from LAVRA_API_KEY, people log in with it. \
                 `lavra key revoke {id}` ends it."
            ));
        }
        Key::List => {
            let page = Client::open(settings).await?.get("/keys").await?;
            let items = page.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            table(&page, &items, printer);
        }
        Key::Revoke { id } => {
            let client = Client::open(settings).await?;
            let key = client.call(Method::DELETE, &format!("/keys/{id}"), None, None).await?;
            table(&key, std::slice::from_ref(&key), printer);
        }
    }
    Ok(Exit::Done)
}

/// 90d, 12h, 1y 6mo.
fn seconds(text: &str) -> Result<i64, BadUsage> {
    let wrong = || BadUsage(format!("--expires {text}: it is a time such as 90d or 12h"));
    let span: Span = text.parse().map_err(|_| wrong())?;
    // How long a month is depends on the day it begins; here that matters little.
    let from = Timestamp::now().to_zoned(TimeZone::UTC);
    let total = span.total((Unit::Second, &from)).map_err(|_| wrong())?;
    if total >= 1.0 { Ok(total as i64) } else { Err(wrong()) }
}

fn table(answer: &Value, keys: &[Value], printer: &Printer) {
    let rows = keys.iter().map(|key| {
        ["id", "name", "role", "standing", "created_at", "last_used_at", "expires_at"]
            .map(|name| text(key, name))
            .to_vec()
    });
    let head = ["ID", "NAME", "ROLE", "STANDING", "CREATED", "LAST USED", "EXPIRES"];
    printer.table(answer, &head, rows.collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_people_write_it() {
        for (text, expected) in [("90d", 7_776_000), ("12h", 43_200), ("2w", 1_209_600)] {
            assert_eq!(seconds(text).unwrap(), expected, "{text}");
        }
        assert!((31_536_000..=31_622_400).contains(&seconds("1y").unwrap()));
        for wrong in ["", "90", "soon", "-5d", "0s", "1e9y"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
