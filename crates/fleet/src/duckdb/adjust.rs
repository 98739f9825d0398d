//! The one row of settings and orders.

use async_trait::async_trait;
use lavra_db::duckdb::{self, Connection};
use lavra_tasks::model::TaskId;
use uuid::Uuid;

use super::{DuckDb, change, first, row, run, wrong};
use crate::error::Result;
use crate::model::Mode;
use crate::settings::Adjustable;
use crate::store::{Adjusts, Control};

pub(super) fn control(connection: &Connection) -> duckdb::Result<Control> {
    let sql = "SELECT mode, task_id FROM public.fleet_settings";
    let found: Option<(String, Option<Uuid>)> =
        first(connection, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match found {
        Some((mode, task)) => {
            Control { mode: mode.parse().map_err(wrong)?, task_id: task.map(TaskId) }
        }
        None => Control { mode: Mode::Off, task_id: None },
    })
}

#[async_trait]
impl Adjusts for DuckDb {
    async fn settings(&self) -> Result<Adjustable> {
        let sql = "SELECT adjustable::VARCHAR FROM public.fleet_settings";
        let found = self.select("read the fleet's settings", sql, (), row::read).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    async fn set_settings(&self, settings: Adjustable) -> Result<()> {
        let job = move |tx: &Connection| {
            let text = serde_json::to_string(&settings).map_err(wrong)?;
            run(tx, "UPDATE public.fleet_settings SET adjustable = $1", (text,))
        };
        Ok(self.duck.write("change the fleet's settings", job).await?)
    }

    async fn control(&self) -> Result<Control> {
        Ok(self.duck.read("read what the fleet is to do", control).await?)
    }

    async fn set_control(&self, control: Control, seen: Option<TaskId>) -> Result<bool> {
        let sql = "UPDATE public.fleet_settings SET mode = $1, task_id = $2::UUID
                   WHERE task_id IS NOT DISTINCT FROM $3::UUID";
        let (task, seen) = (control.task_id.map(|id| id.0), seen.map(|id| id.0));
        let job = move |tx: &Connection| {
            change(tx, sql, (control.mode.as_str(), task, seen)).map(|written| written > 0)
        };
        Ok(self.duck.write("say what the fleet is to do", job).await?)
    }
}
