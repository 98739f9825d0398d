//! Schedules and dead letters.

use jiff::Timestamp;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::tokio_postgres::{self, Row};
use uuid::Uuid;

use super::{Postgres, rows};
use crate::error::{Error, Result};
use crate::model::{DeadLetterId, TaskId};
use crate::store::{DeadLetter, NewRow, Schedule};

const LETTER: &str = "id, task_id, type, reason, body, created_at";

fn letter(row: &Row) -> Result<DeadLetter, tokio_postgres::Error> {
    let task: Option<Uuid> = row.try_get(1)?;
    Ok(DeadLetter {
        id: DeadLetterId(row.try_get(0)?),
        task_id: task.map(TaskId),
        kind: row.try_get(2)?,
        reason: row.try_get(3)?,
        body: row.try_get(4)?,
        created_at: row.try_get(5)?,
    })
}

impl Postgres {
    pub(super) async fn all_schedules(&self) -> Result<Vec<Schedule>> {
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

    pub(super) async fn set_schedule(&self, schedule: Schedule) -> Result<()> {
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

    pub(super) async fn drop_schedule(&self, name: String) -> Result<bool> {
        let sql = "DELETE FROM kodus_workflow.task_schedules WHERE name = $1 RETURNING name";
        let answer = self.pg.query("remove a schedule", sql, &[(&name as _, Type::TEXT)]).await?;
        Ok(!answer.is_empty())
    }

    /// The guard on `next_at` lets exactly one process fire each due time.
    pub(super) async fn fire_once(
        &self,
        name: String,
        from: Timestamp,
        to: Timestamp,
        row: NewRow,
        announce: bool,
    ) -> Result<bool> {
        let operation = "fire a schedule";
        let sql = "
            WITH moved AS (
                UPDATE kodus_workflow.task_schedules SET next_at = $3, last_task = $4
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

    pub(super) async fn letters(
        &self,
        before: Option<DeadLetterId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>> {
        let operation = "list the dead letters";
        let sql = format!(
            "SELECT {LETTER} FROM kodus_workflow.task_dead_letters
             WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2"
        );
        let (before, limit) = (before.map(|id| id.0), limit as i64);
        let params = [(&before as _, Type::UUID), (&limit as _, Type::INT8)];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, letter)
    }

    pub(super) async fn one_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>> {
        let operation = "read a dead letter";
        let sql = format!("SELECT {LETTER} FROM kodus_workflow.task_dead_letters WHERE id = $1");
        let answer = self.pg.query(operation, &sql, &[(&id.0 as _, Type::UUID)]).await?;
        Ok(rows(operation, &answer, letter)?.pop())
    }

    pub(super) async fn keep_letter(&self, letter: DeadLetter) -> Result<()> {
        let sql = "INSERT INTO kodus_workflow.task_dead_letters (id, task_id, type, reason, body)
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
        let task = letter.task_id.map(|id| id.0);
        // PostgreSQL's text cannot hold a zero byte, and a dead letter may hold anything.
        let body = letter.body.map(|body| body.replace('\0', "\u{FFFD}"));
        let params = [
            (&letter.id.0 as _, Type::UUID),
            (&task as _, Type::UUID),
            (&letter.kind as _, Type::TEXT),
            (&letter.reason as _, Type::TEXT),
            (&body as _, Type::TEXT),
        ];
        self.pg.query("keep a dead letter", sql, &params).await.map_err(Error::from)?;
        Ok(())
    }

    pub(super) async fn drop_letter(&self, id: DeadLetterId) -> Result<bool> {
        let operation = "remove a dead letter";
        let sql = "DELETE FROM kodus_workflow.task_dead_letters WHERE id = $1 RETURNING id";
        Ok(!self.pg.query(operation, sql, &[(&id.0 as _, Type::UUID)]).await?.is_empty())
    }
}
