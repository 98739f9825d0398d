//! `lavra secret …`: values come from stdin and are never shown.

use std::time::Duration;

use lavra_db::{Database, Keyring, Secrets, migrate};
use lavra_tasks::MIGRATIONS;
use serde_json::json;

use super::typed;
use crate::cli::Secret;
use crate::exit::{BadUsage, Exit};
use crate::printer::Printer;
use crate::settings::Settings;
use crate::variables::Variable;

pub(crate) async fn run(
    settings: &Settings,
    command: Secret,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    if matches!(command, Secret::GenerateKey) {
        printer.data(&Keyring::generate());
        return Ok(Exit::Done);
    }
    let keys = Variable::SecretKey.read().ok_or_else(|| {
        BadUsage("LAVRA_SECRET_KEY is not set; `lavra secret generate-key` makes one".into())
    })?;
    let keyring = Keyring::parse(&keys.into())?;
    let database =
        Database::open(&settings.target, settings.schema.clone(), Duration::from_secs(3)).await?;
    migrate(&database, MIGRATIONS).await?;
    let secrets = Secrets::new(database, keyring);
    match command {
        Secret::GenerateKey => {}
        Secret::List => {
            let list = secrets.list().await?;
            let value = json!(
                list.iter()
                    .map(|(name, at)| json!({ "name": name, "updated_at": at }))
                    .collect::<Vec<_>>()
            );
            let rows = list.into_iter().map(|(name, at)| vec![name, at.to_string()]).collect();
            printer.table(&value, &["NAME", "CHANGED"], rows);
        }
        Secret::Set { name } => {
            let value = typed("value", printer)?;
            secrets.put(&name, &value.into()).await?;
            printer.note(&format!("{name} is set"));
        }
        Secret::Remove { name } => {
            if !secrets.remove(&name).await? {
                return Err(BadUsage(format!("there is no secret {name}")).into());
            }
        }
    }
    Ok(Exit::Done)
}
