//! The one row of settings.

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::Type;
use lavra_tasks::model::TaskId;
use serde_json::Value;
use uuid::Uuid;

use super::{Postgres, get};
use crate::error::{Error, Result};
use crate::model::Mode;
use crate::settings::Adjustable;
use crate::store::{Adjusts, Control};

fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::Unreadable(format!("the fleet's settings: {error}"))
}

#[async_trait]
impl Adjusts for Postgres {
    async fn settings(&self) -> Result<Adjustable> {
        let operation = "read the fleet's settings";
        let sql = "SELECT adjustable FROM public.fleet_settings";
        let rows = self.pg.query(operation, sql, &[]).await?;
        let Some(row) = rows.first() else { return Ok(Adjustable::default()) };
        serde_json::from_value(get::<Value>(operation, row, 0)?).map_err(unreadable)
    }

    async fn set_settings(&self, settings: Adjustable) -> Result<()> {
        let value = serde_json::to_value(settings).map_err(unreadable)?;
        let sql = "INSERT INTO public.fleet_settings (adjustable) VALUES ($1)
                   ON CONFLICT (id) DO UPDATE SET adjustable = excluded.adjustable";
        let params = [(&value as _, Type::JSONB)];
        self.pg.query("change the fleet's settings", sql, &params).await?;
        Ok(())
    }

    async fn control(&self) -> Result<Control> {
        let operation = "read what the fleet is to do";
        let sql = "SELECT mode, task_id FROM public.fleet_settings";
        let rows = self.pg.query(operation, sql, &[]).await?;
        let Some(row) = rows.first() else { return Ok(Control { mode: Mode::Off, task_id: None }) };
        let mode = get::<String>(operation, row, 0)?.parse().map_err(unreadable)?;
        let task_id = get::<Option<Uuid>>(operation, row, 1)?.map(TaskId);
        Ok(Control { mode, task_id })
    }

    async fn set_control(&self, control: Control, seen: Option<TaskId>) -> Result<bool> {
        let sql = "INSERT INTO public.fleet_settings AS s (mode, task_id) VALUES ($1, $2)
                   ON CONFLICT (id) DO UPDATE SET mode = excluded.mode, task_id = excluded.task_id
                   WHERE s.task_id IS NOT DISTINCT FROM $3
                   RETURNING s.id";
        let (task, seen) = (control.task_id.map(|id| id.0), seen.map(|id| id.0));
        let mode = control.mode.as_str();
        let params = [(&mode as _, Type::TEXT), (&task as _, Type::UUID), (&seen as _, Type::UUID)];
        let rows = self.pg.query("say what the fleet is to do", sql, &params).await?;
        Ok(!rows.is_empty())
    }
}
