//! Retention: what may go, what goes to the archive first, and the moving window of events.

use std::collections::HashMap;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::tokio_postgres::types::Type;
use serde_json::Value;
use uuid::Uuid;

use super::read::{TASK, event, task};
use super::{Postgres, rows};
use crate::error::Result;
use crate::model::{Event, Task, TaskId};
use crate::store::{Dossier, Expiry, History};

#[async_trait]
impl History for Postgres {
    async fn expired(&self, expiry: Expiry, limit: usize) -> Result<Vec<Task>> {
        let operation = "find expired tasks";
        let sql = format!(
            "SELECT {TASK} FROM (
                 (SELECT * FROM kodus_workflow.tasks
                  WHERE status = 'COMPLETED' AND updated_at < $1 ORDER BY updated_at LIMIT $4)
                 UNION ALL
                 (SELECT * FROM kodus_workflow.tasks
                  WHERE status = 'CANCELLED' AND updated_at < $2 ORDER BY updated_at LIMIT $4)
                 UNION ALL
                 (SELECT * FROM kodus_workflow.tasks
                  WHERE status = 'FAILED' AND updated_at < $3 ORDER BY updated_at LIMIT $4)
             ) expired ORDER BY updated_at LIMIT $4"
        );
        let limit = limit as i64;
        let params = [
            (&expiry.completed_before as _, Type::TIMESTAMPTZ),
            (&expiry.cancelled_before as _, Type::TIMESTAMPTZ),
            (&expiry.failed_before as _, Type::TIMESTAMPTZ),
            (&limit as _, Type::INT8),
        ];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, task)
    }

    async fn dossiers(&self, tasks: Vec<Task>) -> Result<Vec<Dossier>> {
        let operation = "read expired tasks";
        let ids: Vec<Uuid> = tasks.iter().map(|task| task.id.0).collect();
        let params = [(&ids as _, Type::UUID_ARRAY)];
        let pairs = async |sql: &str| -> Result<HashMap<TaskId, Value>> {
            let answer = self.pg.query(operation, sql, &params).await?;
            let found =
                rows(operation, &answer, |row| Ok((TaskId(row.try_get(0)?), row.try_get(1)?)))?;
            Ok(found.into_iter().collect())
        };
        let mut inputs = pairs(
            "SELECT task_id, payload FROM kodus_workflow.task_inputs WHERE task_id = ANY($1)",
        )
        .await?;
        let mut results = pairs(
            "SELECT task_id, payload FROM kodus_workflow.task_results WHERE task_id = ANY($1)",
        )
        .await?;
        let sql = "SELECT id, task_id, status, state, detail, actor, created_at, version,
                          transaction::text::int8
                   FROM kodus_workflow.task_events WHERE task_id = ANY($1)
                   ORDER BY task_id, version";
        let answer = self.pg.query(operation, sql, &params).await?;
        let mut events: HashMap<TaskId, Vec<Event>> = HashMap::new();
        for event in rows(operation, &answer, event)? {
            events.entry(event.task_id).or_default().push(event);
        }
        let dossiers = tasks.into_iter().map(|task| Dossier {
            input: inputs.remove(&task.id),
            result: results.remove(&task.id),
            events: events.remove(&task.id).unwrap_or_default(),
            task,
        });
        Ok(dossiers.collect())
    }

    async fn remove(&self, tasks: Vec<(TaskId, i32)>) -> Result<usize> {
        let (ids, versions): (Vec<Uuid>, Vec<i32>) =
            tasks.into_iter().map(|(id, version)| (id.0, version)).unzip();
        // Events and results go by the cascade of their foreign keys.
        let sql = "WITH gone AS (
                       DELETE FROM kodus_workflow.tasks t
                       USING unnest($1::uuid[], $2::int4[]) AS i(id, version)
                       WHERE t.id = i.id AND t.version = i.version RETURNING t.id
                   ), inputs AS (
                       DELETE FROM kodus_workflow.task_inputs i USING gone
                       WHERE i.task_id = gone.id
                   ), keys AS (
                       DELETE FROM kodus_workflow.task_keys k USING gone
                       WHERE k.task_id = gone.id
                   ), letters AS (
                       DELETE FROM kodus_workflow.task_dead_letters d USING gone
                       WHERE d.task_id = gone.id
                   )
                   SELECT id FROM gone";
        let params = [(&ids as _, Type::UUID_ARRAY), (&versions as _, Type::INT4_ARRAY)];
        Ok(self.pg.query("remove expired tasks", sql, &params).await?.len())
    }

    async fn sweep_history(&self, before: Timestamp, limit: usize) -> Result<usize> {
        // Ids are by time, so the oldest events are a range at the start of the primary key.
        // The events of a task that still lives stay: its history and its version go together.
        let sql = "WITH old AS (
                       SELECT e.id FROM kodus_workflow.task_events e
                       JOIN kodus_workflow.tasks t ON t.id = e.task_id
                       WHERE e.id < $1 AND t.status NOT IN ('PENDING', 'IN_PROGRESS')
                       ORDER BY e.id LIMIT $3
                   ), events AS (
                       DELETE FROM kodus_workflow.task_events WHERE id IN (SELECT id FROM old)
                       RETURNING 1
                   ), letters AS (
                       DELETE FROM kodus_workflow.task_dead_letters
                       WHERE id < $1 AND task_id IS NULL
                   ), keys AS (
                       DELETE FROM kodus_workflow.task_keys WHERE created_at < $2
                   ), dead AS (
                       DELETE FROM kodus_workflow.processes WHERE beat_at < $2
                   )
                   SELECT 1 FROM events";
        let floor = floor(before);
        let limit = limit as i64;
        let params = [
            (&floor as _, Type::UUID),
            (&before as _, Type::TIMESTAMPTZ),
            (&limit as _, Type::INT8),
        ];
        Ok(self.pg.query("trim the events", sql, &params).await?.len())
    }
}

/// The smallest version-7 id of a time.
pub(crate) fn floor(time: Timestamp) -> Uuid {
    let millis = time.as_millisecond().max(0) as u64;
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6] = 0x70;
    bytes[8] = 0x80;
    Uuid::from_bytes(bytes)
}
