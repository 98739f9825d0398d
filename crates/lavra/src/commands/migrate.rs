//! `lavra migrate [--print]`.

use std::time::Duration;

use lavra_db::{Database, print_migrations};
use serde_json::json;

use crate::cli::Migrate;
use crate::exit::Exit;
use crate::migrations;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    args: &Migrate,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    if args.print {
        printer.data(print_migrations(&migrations::all(), &settings.schema).trim_end());
        return Ok(Exit::Done);
    }
    let database =
        Database::open(&settings.target, settings.schema.clone(), Duration::from_secs(30)).await?;
    let applied = migrations::apply(&database, &[]).await?;
    if printer.is_json() {
        printer.json(&json!({ "applied": applied }));
    } else if applied.is_empty() {
        printer.note(&format!("{} is up to date", settings.target));
    } else {
        printer.data(&applied.join("\n"));
    }
    Ok(Exit::Done)
}
