//! The settings and orders.

use async_trait::async_trait;
use lavra_tasks::model::TaskId;

use super::Memory;
use crate::error::Result;
use crate::settings::Adjustable;
use crate::store::{Adjusts, Control};

#[async_trait]
impl Adjusts for Memory {
    async fn settings(&self) -> Result<Adjustable> {
        Ok(self.tables().adjustable)
    }

    async fn set_settings(&self, settings: Adjustable) -> Result<()> {
        self.tables().adjustable = settings;
        Ok(())
    }

    async fn control(&self) -> Result<Control> {
        Ok(self.tables().control)
    }

    async fn set_control(&self, control: Control, seen: Option<TaskId>) -> Result<bool> {
        let mut tables = self.tables();
        let is_as_seen = tables.control.task_id == seen;
        if is_as_seen {
            tables.control = control;
        }
        Ok(is_as_seen)
    }
}
