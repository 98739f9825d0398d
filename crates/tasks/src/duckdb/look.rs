//! What people ask who look at tasks page by page.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::duckdb::Row;
use lavra_db::micros;

use super::read::{EVENT, TASK, event, status_at, task};
use super::{DuckDb, micros_of, set};
use crate::error::Result;
use crate::model::{Event, ProcessId, Task, TaskId};
use crate::store::{Count, Looks, Process};

#[async_trait]
impl Looks for DuckDb {
    async fn counts(&self) -> Result<Vec<Count>> {
        let sql = "SELECT type, status, count(*) FROM kodus_workflow.tasks
                   GROUP BY type, status ORDER BY type, status";
        let read = |row: &Row<'_>| {
            let status = status_at(row, 1)?;
            Ok(Count { kind: row.get(0)?, status, count: row.get(2)? })
        };
        self.select("count the tasks", sql, (), read).await
    }

    async fn events_before(
        &self,
        id: TaskId,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<Event>> {
        let sql = format!(
            "SELECT {EVENT} FROM kodus_workflow.task_events
             WHERE task_id = $1 AND epoch_us(task_events.created_at) < $2
             ORDER BY task_events.created_at DESC LIMIT $3"
        );
        let params = (id.0, micros(before), limit as i64);
        self.select("read a task's events", &sql, params, event).await
    }

    async fn ahead_of(&self, task: &Task, most: usize) -> Result<i64> {
        let sql = "SELECT count(*) FROM (
                       SELECT 1 FROM kodus_workflow.tasks
                       WHERE type = $1 AND status = 'PENDING'
                         AND (run_at IS NULL OR epoch_us(run_at) <= $2)
                         AND (priority > $3 OR (priority = $3 AND id < $4::UUID)) LIMIT $5)";
        let params = (task.kind.clone(), self.now(), task.priority, task.id.0, most as i64);
        let counted = self.select("count what goes before a task", sql, params, |row| row.get(0));
        Ok(counted.await?.pop().unwrap_or(0))
    }

    async fn about(
        &self,
        kinds: Vec<String>,
        name: &str,
        value: &str,
        limit: usize,
    ) -> Result<Vec<Task>> {
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks
             WHERE type IN (SELECT unnest($1::JSON::VARCHAR[])) AND id IN (
                 SELECT i.task_id FROM kodus_workflow.task_inputs i
                 JOIN kodus_workflow.tasks t ON t.id = i.task_id
                 WHERE t.type IN (SELECT unnest($1::JSON::VARCHAR[]))
                   AND (i.payload->>$2) = $3)
             ORDER BY id DESC LIMIT $4"
        );
        let kinds = set(&kinds).unwrap_or_default();
        let params = (kinds, name.to_owned(), value.to_owned(), limit as i64);
        self.select("find the tasks about something", &sql, params, task).await
    }

    async fn living(&self, stale: Duration) -> Result<Vec<Process>> {
        let sql = "SELECT id, name, to_json(types)::VARCHAR FROM kodus_workflow.processes
                   WHERE epoch_us(beat_at) > $1 ORDER BY name, id";
        let read = |row: &Row<'_>| {
            let kinds: String = row.get(2)?;
            let kinds = serde_json::from_str(&kinds).unwrap_or_default();
            Ok(Process { id: ProcessId(row.get(0)?), name: row.get(1)?, kinds })
        };
        let since = self.now().saturating_sub(micros_of(stale));
        self.select("find the processes that live", sql, (since,), read).await
    }

    async fn count_dead_letters(&self) -> Result<i64> {
        let sql = "SELECT count(*) FROM kodus_workflow.task_dead_letters";
        let counted = self.select("count the dead letters", sql, (), |row| row.get(0));
        Ok(counted.await?.pop().unwrap_or(0))
    }
}
