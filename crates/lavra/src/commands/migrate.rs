//! `lavra migrate [--print]`.

use std::time::Duration;

use lavra_db::{Database, IDEMPOTENCY, migrate, print_migrations};
use lavra_tasks::MIGRATIONS;
use serde_json::json;

use crate::cli::Migrate;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) async fn run(
    settings: &Settings,
    args: &Migrate,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let all = [
        MIGRATIONS,
        lavra_fleet::MIGRATIONS,
        lavra_notify::MIGRATIONS,
        lavra_web::MIGRATIONS,
        lavra_writer::MIGRATIONS,
        &[IDEMPOTENCY],
    ]
    .concat();
    if args.print {
        printer.data(print_migrations(&all, &settings.schema).trim_end());
        return Ok(Exit::Done);
    }
    let database =
        Database::open(&settings.target, settings.schema.clone(), Duration::from_secs(30)).await?;
    let mut applied = migrate(&database, &all).await?;
    let of_sources = lavra_extract::migrations_here(&database).await?;
    applied.extend(migrate(&database, &of_sources).await?);
    if printer.is_json() {
        printer.json(&json!({ "applied": applied }));
    } else if applied.is_empty() {
        printer.note(&format!("{} is up to date", settings.target));
    } else {
        printer.data(&applied.join("\n"));
    }
    Ok(Exit::Done)
}
