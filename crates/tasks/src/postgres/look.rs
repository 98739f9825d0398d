//! What people ask who look at tasks page by page.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::tokio_postgres::types::Type;

use super::read::{EVENT, TASK, event, status, task};
use super::{Postgres, rows};
use crate::error::Result;
use crate::model::{Event, ProcessId, Task, TaskId};
use crate::store::{Count, Looks, Process};

/// Each part is a range of the index of its name, so that counting costs what is counted.
const AHEAD: &str = "
SELECT count(*) FROM (
    (SELECT 1 FROM kodus_workflow.tasks
     WHERE type = $1 AND status = 'PENDING' AND run_at IS NULL AND priority > $2 LIMIT $4)
    UNION ALL
    (SELECT 1 FROM kodus_workflow.tasks
     WHERE type = $1 AND status = 'PENDING' AND run_at IS NULL AND priority = $2 AND id < $3
     LIMIT $4)
    UNION ALL
    (SELECT 1 FROM kodus_workflow.tasks
     WHERE type = $1 AND status = 'PENDING' AND run_at <= now()
       AND (priority > $2 OR (priority = $2 AND id < $3)) LIMIT $4)
    LIMIT $4
) ahead";

#[async_trait]
impl Looks for Postgres {
    async fn counts(&self) -> Result<Vec<Count>> {
        let operation = "count the tasks";
        let sql = "SELECT type, status, count(*) FROM kodus_workflow.tasks
                   GROUP BY type, status ORDER BY type COLLATE \"C\", status COLLATE \"C\"";
        let answer = self.pg.query(operation, sql, &[]).await?;
        rows(operation, &answer, |row| {
            let status = status(row.try_get(1)?);
            Ok(Count { kind: row.try_get(0)?, status, count: row.try_get(2)? })
        })
    }

    async fn events_before(
        &self,
        id: TaskId,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<Event>> {
        let operation = "read a task's events";
        let sql = format!(
            "SELECT {EVENT} FROM kodus_workflow.task_events WHERE task_id = $1 AND created_at < $2
             ORDER BY created_at DESC LIMIT $3"
        );
        // Its own times begin later than those of the library.
        let (before, limit) = (before.max(Timestamp::UNIX_EPOCH), limit as i64);
        let params = [
            (&id.0 as _, Type::UUID),
            (&before as _, Type::TIMESTAMPTZ),
            (&limit as _, Type::INT8),
        ];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, event)
    }

    async fn ahead_of(&self, task: &Task, most: usize) -> Result<i64> {
        let operation = "count what goes before a task";
        let most = most as i64;
        let params = [
            (&task.kind as _, Type::TEXT),
            (&task.priority as _, Type::INT2),
            (&task.id.0 as _, Type::UUID),
            (&most as _, Type::INT8),
        ];
        let answer = self.pg.query(operation, AHEAD, &params).await?;
        Ok(rows(operation, &answer, |row| row.try_get(0))?.pop().unwrap_or(0))
    }

    async fn about(
        &self,
        kinds: Vec<String>,
        name: &str,
        value: &str,
        limit: usize,
    ) -> Result<Vec<Task>> {
        let operation = "find the tasks about something";
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks t
             WHERE type = ANY ($1) AND EXISTS (
                 SELECT 1 FROM kodus_workflow.task_inputs i
                 WHERE i.task_id = t.id AND i.payload->>$2 = $3)
             ORDER BY id DESC LIMIT $4"
        );
        let limit = limit as i64;
        let params = [
            (&kinds as _, Type::TEXT_ARRAY),
            (&name as _, Type::TEXT),
            (&value as _, Type::TEXT),
            (&limit as _, Type::INT8),
        ];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, task)
    }

    async fn living(&self, stale: Duration) -> Result<Vec<Process>> {
        let operation = "find the processes that live";
        let sql = "SELECT id, name, types FROM kodus_workflow.processes
                   WHERE beat_at > now() - make_interval(secs => $1)
                   ORDER BY name COLLATE \"C\", id";
        let params = [(&stale.as_secs_f64() as _, Type::FLOAT8)];
        let answer = self.pg.query(operation, sql, &params).await?;
        rows(operation, &answer, |row| {
            let id = ProcessId(row.try_get(0)?);
            Ok(Process { id, name: row.try_get(1)?, kinds: row.try_get(2)? })
        })
    }

    async fn count_dead_letters(&self) -> Result<i64> {
        let operation = "count the dead letters";
        let sql = "SELECT count(*) FROM kodus_workflow.task_dead_letters";
        let answer = self.pg.query(operation, sql, &[]).await?;
        Ok(rows(operation, &answer, |row| row.try_get(0))?.pop().unwrap_or(0))
    }
}
