//! Heartbeats per process, and what a silent one leaves behind.

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::Type;
use uuid::Uuid;

use super::read::{TASK, task};
use super::{Postgres, rows, uuids};
use crate::error::Result;
use crate::model::{ProcessId, Task, TaskId, Token};
use crate::store::{Lost, Process, Processes};

/// One row with the server's time comes back even when nothing was lost.
const BEAT: &str = "
WITH beat AS (
    INSERT INTO kodus_workflow.processes AS p (id, name, types)
    VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET beat_at = now(), types = excluded.types
)
SELECT clock_timestamp(), lost.id, lost.token, lost.cancelled
FROM (VALUES (1)) AS one LEFT JOIN (
    SELECT h.id, h.token, coalesce(t.status = 'CANCELLED' AND t.token = h.token, false) AS cancelled
    FROM unnest($4::uuid[], $5::int8[]) AS h(id, token)
    LEFT JOIN (
        SELECT id, status, token FROM kodus_workflow.tasks
        WHERE id = ANY (ARRAY(SELECT unnest($4::uuid[])))
    ) t ON t.id = h.id
    WHERE t.id IS NULL OR t.status <> 'IN_PROGRESS' OR t.token <> h.token
) AS lost ON true";

#[async_trait]
impl Processes for Postgres {
    async fn beat(&self, process: Process, held: Vec<(TaskId, Token)>) -> Result<Vec<Lost>> {
        let operation = "renew the process's row";
        let (ids, tokens): (Vec<Uuid>, Vec<Token>) =
            held.into_iter().map(|(id, token)| (id.0, token)).unzip();
        let params = [
            (&process.id.0 as _, Type::UUID),
            (&process.name as _, Type::TEXT),
            (&process.kinds as _, Type::TEXT_ARRAY),
            (&ids as _, Type::UUID_ARRAY),
            (&tokens as _, Type::INT8_ARRAY),
        ];
        let answer = self.pg.query(operation, BEAT, &params).await?;
        let beats = rows(operation, &answer, |row| {
            let id: Option<Uuid> = row.try_get(1)?;
            let token: Option<Token> = row.try_get(2)?;
            let cancelled: Option<bool> = row.try_get(3)?;
            Ok((row.try_get(0)?, id, token, cancelled))
        })?;
        if let Some((time, ..)) = beats.first() {
            self.pg.clock().set(*time);
        }
        let lost = beats.into_iter().filter_map(|(_, id, token, cancelled)| {
            Some(Lost { id: TaskId(id?), token: token?, cancelled: cancelled.unwrap_or(false) })
        });
        Ok(lost.collect())
    }

    async fn retire(&self, process: ProcessId) -> Result<()> {
        let sql = "DELETE FROM kodus_workflow.processes WHERE id = $1";
        self.pg.query("retire the process", sql, &[(&process.0 as _, Type::UUID)]).await?;
        Ok(())
    }

    async fn orphans(&self, stale: Duration, limit: usize) -> Result<Vec<Task>> {
        let operation = "find orphaned tasks";
        // A process whose row is gone counts as dead, so its tasks cannot hide behind that.
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks t
             WHERE status = 'IN_PROGRESS' AND NOT EXISTS (
                 SELECT 1 FROM kodus_workflow.processes p
                 WHERE p.id = t.process AND p.beat_at > now() - make_interval(secs => $1))
             LIMIT $2"
        );
        let (stale, limit) = (stale.as_secs_f64(), limit as i64);
        let params = [(&stale as _, Type::FLOAT8), (&limit as _, Type::INT8)];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, task)
    }

    async fn strays(
        &self,
        process: ProcessId,
        held: Vec<TaskId>,
        age: Duration,
    ) -> Result<Vec<Task>> {
        let operation = "find claims that went astray";
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks
             WHERE status = 'IN_PROGRESS' AND process = $1 AND NOT id = ANY($2)
               AND updated_at < now() - make_interval(secs => $3)"
        );
        let (held, age) = (uuids(&held, |id| id.0), age.as_secs_f64());
        let params = [
            (&process.0 as _, Type::UUID),
            (&held as _, Type::UUID_ARRAY),
            (&age as _, Type::FLOAT8),
        ];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, task)
    }

    async fn overdue_stops(&self, limit: usize) -> Result<Vec<Task>> {
        let operation = "find stops that nobody confirmed";
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks
             WHERE status = 'CANCELLED' AND stop_by <= now() LIMIT $1"
        );
        let limit = limit as i64;
        let answer = self.pg.query(operation, &sql, &[(&limit as _, Type::INT8)]).await?;
        rows(operation, &answer, task)
    }

    async fn declare(&self, kinds: Vec<String>) -> Result<()> {
        let sql = "INSERT INTO kodus_workflow.task_types (name) SELECT unnest($1::text[])
                   ON CONFLICT DO NOTHING";
        self.pg.query("declare task types", sql, &[(&kinds as _, Type::TEXT_ARRAY)]).await?;
        Ok(())
    }

    async fn declared(&self) -> Result<Vec<String>> {
        let operation = "read the task types";
        let sql = "SELECT name FROM kodus_workflow.task_types ORDER BY name COLLATE \"C\"";
        let answer = self.pg.query(operation, sql, &[]).await?;
        rows(operation, &answer, |row| row.try_get(0))
    }
}
