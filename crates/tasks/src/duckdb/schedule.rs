//! Schedules, and the task that each due time makes exactly once.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::duckdb::{Connection, Row};
use lavra_db::{micros, timestamp};
use uuid::Uuid;

use super::create::Creation;
use super::read::json_at;
use super::{DuckDb, all, run};
use crate::error::Result;
use crate::model::{Actor, TaskId};
use crate::store::{NewRow, Schedule, Schedules};

#[async_trait]
impl Schedules for DuckDb {
    async fn schedules(&self) -> Result<Vec<Schedule>> {
        let sql = "SELECT name, type, cron, payload, enabled, epoch_us(next_at), last_task
                   FROM kodus_workflow.task_schedules ORDER BY name";
        let read = |row: &Row<'_>| {
            let last: Option<Uuid> = row.get(6)?;
            Ok(Schedule {
                name: row.get(0)?,
                kind: row.get(1)?,
                cron: row.get(2)?,
                payload: json_at(row, 3)?,
                enabled: row.get(4)?,
                next_at: timestamp(row.get(5)?),
                last_task: last.map(TaskId),
            })
        };
        self.select("read the schedules", sql, (), read).await
    }

    async fn put_schedule(&self, schedule: Schedule) -> Result<()> {
        let sql = self.sql(
            "INSERT INTO kodus_workflow.task_schedules (name, type, cron, payload, enabled, next_at)
             VALUES ($1, $2, $3, $4::JSON, $5, make_timestamp($6))
             ON CONFLICT (name) DO UPDATE SET type = excluded.type, cron = excluded.cron,
                 payload = excluded.payload, enabled = excluded.enabled,
                 next_at = excluded.next_at",
        );
        let (payload, next) = (schedule.payload.to_string(), micros(schedule.next_at));
        let job = move |tx: &Connection| {
            let Schedule { name, kind, cron, enabled, .. } = &schedule;
            run(tx, &sql, (name, kind, cron, &payload, enabled, next))
        };
        Ok(self.duck.write("store a schedule", job).await?)
    }

    async fn remove_schedule(&self, name: String) -> Result<bool> {
        let sql =
            self.sql("DELETE FROM kodus_workflow.task_schedules WHERE name = $1 RETURNING name");
        let job = move |tx: &Connection| all(tx, &sql, (&name,), |_| Ok(()));
        Ok(!self.duck.write("remove a schedule", job).await?.is_empty())
    }

    async fn enable_schedule(
        &self,
        name: String,
        enabled: bool,
        next_at: Timestamp,
    ) -> Result<bool> {
        let sql = self.sql(
            "UPDATE kodus_workflow.task_schedules SET enabled = $2, next_at = make_timestamp($3)
             WHERE name = $1 RETURNING name",
        );
        let next = micros(next_at);
        let job = move |tx: &Connection| all(tx, &sql, (&name, enabled, next), |_| Ok(()));
        Ok(!self.duck.write("enable a schedule", job).await?.is_empty())
    }

    async fn fire(
        &self,
        name: String,
        from: Timestamp,
        to: Option<Timestamp>,
        row: NewRow,
        announce: bool,
    ) -> Result<bool> {
        let due = self.sql(
            "SELECT epoch_us(next_at), enabled FROM kodus_workflow.task_schedules WHERE name = $1",
        );
        let moved = self.sql(
            "UPDATE kodus_workflow.task_schedules
             SET next_at = make_timestamp($2), enabled = $3, last_task = $4 WHERE name = $1",
        );
        let creation = Creation::new(self, Actor::System, announce.then_some(0));
        let (from, to, goes_on) = (micros(from), micros(to.unwrap_or(from)), to.is_some());
        // The schedule's task is another one each time, and at once.
        let row = NewRow { input_hash: None, key: None, delay: None, ..row };
        let job = move |tx: &Connection| {
            let found: Vec<(i64, bool)> =
                all(tx, &due, (&name,), |row| Ok((row.get(0)?, row.get(1)?)))?;
            if found != [(from, true)] {
                return Ok(false);
            }
            run(tx, &moved, (&name, to, goes_on, row.id.0))?;
            creation.make(tx, &[&row])?;
            Ok(true)
        };
        Ok(self.duck.write("fire a schedule", job).await?)
    }
}
