//! The one row of settings and orders.

use lavra_db::duckdb::{self, Connection};
use lavra_tasks::model::TaskId;
use uuid::Uuid;

use super::{DuckDb, first, run, wrong};
use crate::error::Result;
use crate::model::Mode;
use crate::settings::{Adjustable, ProxyFailures};
use crate::store::Control;

pub(super) const CONTROL: &str = "SELECT mode, task_id FROM kodus_workflow.fleet_settings";

pub(super) fn control(connection: &Connection, sql: &str) -> duckdb::Result<Control> {
    let found: Option<(String, Option<Uuid>)> =
        first(connection, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match found {
        Some((mode, task)) => {
            Control { mode: mode.parse().map_err(wrong)?, task_id: task.map(TaskId) }
        }
        None => Control { mode: Mode::Off, task_id: None },
    })
}

impl DuckDb {
    pub(super) async fn adjustable(&self) -> Result<Adjustable> {
        let sql = "SELECT session_limit, max_retries, proxy_failures
                   FROM kodus_workflow.fleet_settings";
        let found = self.select("read the settings", sql, (), |row| {
            let word: String = row.get(2)?;
            Ok(Adjustable {
                session_limit: row.get(0)?,
                max_retries: row.get(1)?,
                proxy_failures: word.parse::<ProxyFailures>().map_err(wrong)?,
            })
        });
        Ok(found.await?.into_iter().next().unwrap_or_default())
    }

    pub(super) async fn adjust(&self, settings: Adjustable) -> Result<()> {
        let sql = self.sql(
            "UPDATE kodus_workflow.fleet_settings
             SET session_limit = $1, max_retries = $2, proxy_failures = $3",
        );
        let Adjustable { session_limit, max_retries, proxy_failures } = settings;
        let job = move |tx: &Connection| {
            run(tx, &sql, (session_limit, max_retries, proxy_failures.as_str())).map(|_| ())
        };
        Ok(self.duck.write("change the settings", job).await?)
    }

    pub(super) async fn orders(&self) -> Result<Control> {
        let sql = self.sql(CONTROL);
        let job = move |connection: &Connection| control(connection, &sql);
        Ok(self.duck.read("read the orders", job).await?)
    }

    pub(super) async fn order(&self, control: Control) -> Result<()> {
        let sql =
            self.sql("UPDATE kodus_workflow.fleet_settings SET mode = $1, task_id = $2::UUID");
        let job = move |tx: &Connection| {
            run(tx, &sql, (control.mode.as_str(), control.task_id.map(|id| id.0))).map(|_| ())
        };
        Ok(self.duck.write("give orders", job).await?)
    }
}
