//! Schedules, and their firing.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Postgres, rows};
use crate::error::Result;
use crate::model::TaskId;
use crate::store::{NewRow, Schedule, Schedules};

#[async_trait]
impl Schedules for Postgres {
    async fn schedules(&self) -> Result<Vec<Schedule>> {
        let operation = "read the schedules";
        let sql = "SELECT name, type, cron, payload, enabled, next_at, last_task
                   FROM kodus_workflow.task_schedules ORDER BY name COLLATE \"C\"";
        let answer = self.pg.query(operation, sql, &[]).await?;
        rows(operation, &answer, |row| {
            let last: Option<Uuid> = row.try_get(6)?;
            Ok(Schedule {
                name: row.try_get(0)?,
                kind: row.try_get(1)?,
                cron: row.try_get(2)?,
                payload: row.try_get(3)?,
                enabled: row.try_get(4)?,
                next_at: row.try_get(5)?,
                last_task: last.map(TaskId),
            })
        })
    }

    async fn put_schedule(&self, schedule: Schedule) -> Result<()> {
        let sql = "INSERT INTO kodus_workflow.task_schedules
                       (name, type, cron, payload, enabled, next_at)
                   VALUES ($1, $2, $3, $4, $5, $6)
                   ON CONFLICT (name) DO UPDATE SET type = excluded.type, cron = excluded.cron,
                       payload = excluded.payload, enabled = excluded.enabled,
                       next_at = excluded.next_at";
        let params = [
            (&schedule.name as _, Type::TEXT),
            (&schedule.kind as _, Type::TEXT),
            (&schedule.cron as _, Type::TEXT),
            (&schedule.payload as _, Type::JSONB),
            (&schedule.enabled as _, Type::BOOL),
            (&schedule.next_at as _, Type::TIMESTAMPTZ),
        ];
        self.pg.query("store a schedule", sql, &params).await?;
        Ok(())
    }

    async fn remove_schedule(&self, name: String) -> Result<bool> {
        let sql = "DELETE FROM kodus_workflow.task_schedules WHERE name = $1 RETURNING name";
        let answer = self.pg.query("remove a schedule", sql, &[(&name as _, Type::TEXT)]).await?;
        Ok(!answer.is_empty())
    }

    async fn enable_schedule(
        &self,
        name: String,
        enabled: bool,
        next_at: Timestamp,
    ) -> Result<bool> {
        let sql = "UPDATE kodus_workflow.task_schedules SET enabled = $2, next_at = $3
                   WHERE name = $1 RETURNING name";
        let params = [
            (&name as _, Type::TEXT),
            (&enabled as _, Type::BOOL),
            (&next_at as _, Type::TIMESTAMPTZ),
        ];
        Ok(!self.pg.query("enable a schedule", sql, &params).await?.is_empty())
    }

    /// The guard on `next_at` lets exactly one process fire each due time.
    async fn fire(
        &self,
        name: String,
        from: Timestamp,
        to: Option<Timestamp>,
        row: NewRow,
        announce: bool,
    ) -> Result<bool> {
        let operation = "fire a schedule";
        let sql = "
            WITH moved AS (
                UPDATE kodus_workflow.task_schedules
                SET next_at = coalesce($3, next_at), enabled = $3 IS NOT NULL, last_task = $4
                WHERE name = $1 AND next_at = $2 AND enabled RETURNING name
            ), task AS (
                INSERT INTO kodus_workflow.tasks
                    (id, type, status, state, priority, metadata, max_retries)
                SELECT $4, $5, 'PENDING', 'Queued', $6, $7::jsonb, $8 FROM moved RETURNING id
            ), payload AS (
                INSERT INTO kodus_workflow.task_inputs (task_id, payload)
                SELECT id, $9::jsonb FROM task
            ), event AS (
                INSERT INTO kodus_workflow.task_events
                    (id, task_id, status, state, detail, actor, version)
                SELECT $10, id, 'PENDING', 'Queued', $11::jsonb, 'SYSTEM', 0 FROM task
            ), outbox AS (
                INSERT INTO kodus_workflow.task_outbox (id, task_id, type)
                SELECT $10, id, $5 FROM task WHERE $12
            )
            SELECT id FROM task";
        let params = [
            (&name as _, Type::TEXT),
            (&from as _, Type::TIMESTAMPTZ),
            (&to as _, Type::TIMESTAMPTZ),
            (&row.id.0 as _, Type::UUID),
            (&row.kind as _, Type::TEXT),
            (&row.priority as _, Type::INT2),
            (&row.metadata as _, Type::TEXT),
            (&row.max_retries as _, Type::INT4),
            (&row.payload as _, Type::TEXT),
            (&row.event.0 as _, Type::UUID),
            (&row.detail as _, Type::TEXT),
            (&announce as _, Type::BOOL),
        ];
        Ok(!self.pg.query(operation, sql, &params).await?.is_empty())
    }
}
