//! `lavra webhook …`.

use anyhow::Context;
use axum::http::Method;
use lavra_db::Keyring;
use serde_json::{Map, Value, json};

use super::fleet::segment;
use super::task::text;
use crate::cli::{Webhook, WebhookChange};
use crate::client::Client;
use crate::exit::{BadUsage, Exit};
use crate::printer::{Cell, Color, Printer};
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    command: Webhook,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let client = Client::open(settings).await?;
    match command {
        Webhook::List => {
            let answer = client.get("/webhooks").await?;
            let items = answer.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            table(&answer, &items, printer);
        }
        Webhook::Add { name, url, events, secret_from_stdin } => {
            let secret = if secret_from_stdin { Secret::given()? } else { Secret::made() };
            let mut body = json!({ "name": name, "url": url, "secret": secret.text });
            if !events.is_empty() {
                body["events"] = json!(events);
            }
            let added = client.post("/webhooks", body).await?;
            show(added, Some(secret), printer);
        }
        Webhook::Change(args) => {
            let (changes, secret) = changes(&args)?;
            let path = format!("/webhooks/{}", segment(&args.webhook));
            let webhook = client.call(Method::PUT, &path, Some(changes), None).await?;
            show(webhook, secret, printer);
        }
        Webhook::Remove { webhook } => {
            let path = format!("/webhooks/{}", segment(&webhook));
            client.call(Method::DELETE, &path, None, None).await?;
        }
        Webhook::Test { webhook } => {
            let path = format!("/webhooks/{}:test", segment(&webhook));
            let answer = client.post(&path, json!({})).await?;
            let is_ok = answer.get("ok").and_then(Value::as_bool) == Some(true);
            let word = if is_ok { "ok" } else { "failed" };
            let row = vec![word.to_owned(), text(&answer, "said")];
            printer.table(&answer, &["TEST", "SAID"], vec![row]);
            if !is_ok {
                return Ok(Exit::WorkRemains(format!("{webhook} did not take the ping")));
            }
        }
    }
    Ok(Exit::Done)
}

/// What requests are signed with. Only one that was made here is shown, and only once.
struct Secret {
    text: String,
    is_made: bool,
}

impl Secret {
    fn made() -> Self {
        Self { text: Keyring::generate(), is_made: true }
    }

    fn given() -> anyhow::Result<Self> {
        let text = std::io::read_to_string(std::io::stdin()).context("the secret from stdin")?;
        let text = text.trim_end_matches(['\r', '\n']).to_owned();
        Ok(Self { text, is_made: false })
    }
}

fn changes(args: &WebhookChange) -> anyhow::Result<(Value, Option<Secret>)> {
    let secret = match (args.new_secret, args.secret_from_stdin) {
        (true, _) => Some(Secret::made()),
        (false, true) => Some(Secret::given()?),
        (false, false) => None,
    };
    let active = match (args.activate, args.deactivate) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    let mut changes = Map::new();
    for (name, value) in [
        ("name", args.name.as_ref().map(|name| json!(name))),
        ("url", args.url.as_ref().map(|url| json!(url))),
        ("events", (!args.events.is_empty()).then(|| json!(args.events))),
        ("secret", secret.as_ref().map(|secret| json!(secret.text))),
        ("active", active.map(|active| json!(active))),
    ] {
        changes.extend(value.map(|value| (name.to_owned(), value)));
    }
    if changes.is_empty() {
        let text = "say what is to be changed: --name, --url, --event, --new-secret, \
                    --secret-from-stdin, --activate or --deactivate";
        return Err(BadUsage(text.into()).into());
    }
    Ok((Value::Object(changes), secret))
}

fn show(mut webhook: Value, secret: Option<Secret>, printer: &Printer) {
    let Some(secret) = secret.filter(|secret| secret.is_made) else {
        return table(&webhook, std::slice::from_ref(&webhook), printer);
    };
    webhook["secret"] = json!(secret.text);
    let row = vec![text(&webhook, "id"), text(&webhook, "name"), secret.text];
    printer.table(&webhook, &["ID", "NAME", "SECRET"], vec![row]);
    printer.note("the secret is shown only now: give it to the receiver");
}

fn table(answer: &Value, webhooks: &[Value], printer: &Printer) {
    let rows = webhooks.iter().map(|webhook| {
        let events = webhook.get("events").and_then(Value::as_array).cloned().unwrap_or_default();
        let events: Vec<&str> = events.iter().filter_map(Value::as_str).collect();
        let is_active = webhook.get("active").and_then(Value::as_bool) == Some(true);
        let active = if is_active { Cell::new("yes") } else { Cell::new("no").fg(Color::Yellow) };
        vec![
            Cell::new(text(webhook, "name")),
            Cell::new(text(webhook, "url")),
            active,
            Cell::new(events.join(" ")),
            Cell::new(text(webhook, "last_ok_at")),
            Cell::new(text(webhook, "last_error")).fg(Color::Red),
        ]
    });
    let head = ["WEBHOOK", "URL", "ACTIVE", "EVENTS", "LAST OK", "ERROR SINCE"];
    printer.cells(answer, &head, rows.collect());
}
