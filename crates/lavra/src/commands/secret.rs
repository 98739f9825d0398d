//! `lavra secret …`: values come from stdin and are never shown. The key is the one that servers use.

use std::time::Duration;

use lavra_db::{Database, Keyring, Secrets};
use lavra_fleet::keys::MayMake;
use serde_json::json;

use super::typed;
use crate::cli::Secret;
use crate::exit::{BadUsage, Exit};
use crate::migrations;
use crate::node::keyring;
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
    let database =
        Database::open(&settings.target, settings.schema.clone(), Duration::from_secs(3)).await?;
    migrations::apply(&database, &[]).await?;
    let may_make = match command {
        Secret::Set { .. } => MayMake::Yes,
        Secret::GenerateKey | Secret::List | Secret::Remove { .. } => MayMake::No,
    };
    let keyring = keyring(&database, settings.key_file.as_deref(), may_make)?.ok_or_else(|| {
        let name = Variable::SecretKey.name();
        BadUsage(match &database {
            Database::Postgres(_) => {
                format!("{name} is not set; `lavra secret generate-key` makes one")
            }
            Database::Duck(_) => {
                format!("there is no key: {name} is not set, and no secret was stored here yet")
            }
        })
    })?;
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
