//! What the interfaces ask: one task, lists, events in their orders.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::tokio_postgres::{self, Row};
use serde_json::Value;

use super::{Postgres, rows};
use crate::error::Result;
use crate::model::{Actor, Event, EventId, ProcessId, Status, Task, TaskId, TaskResult};
use crate::store::{Cursor, ListFilter, Looks, Reads, Waiting};

pub(super) const TASK: &str = "id, type, status, state, progress, priority, metadata, error, \
    input_hash::text, retry_count, created_at, updated_at, version, attempts, max_retries, run_at, \
    token, process, stop_by";

pub(super) const EVENT: &str =
    "id, task_id, status, state, detail, actor, created_at, version, transaction::text::int8";

pub(super) fn task(row: &Row) -> Result<Task, tokio_postgres::Error> {
    let process: Option<uuid::Uuid> = row.try_get(17)?;
    Ok(Task {
        id: TaskId(row.try_get(0)?),
        kind: row.try_get(1)?,
        status: status(row.try_get(2)?),
        state: row.try_get(3)?,
        progress: row.try_get(4)?,
        priority: row.try_get(5)?,
        metadata: row.try_get(6)?,
        error: row.try_get(7)?,
        input_hash: row.try_get(8)?,
        retry_count: row.try_get(9)?,
        created_at: row.try_get(10)?,
        updated_at: row.try_get(11)?,
        version: row.try_get(12)?,
        attempts: row.try_get(13)?,
        max_retries: row.try_get(14)?,
        run_at: row.try_get(15)?,
        token: row.try_get(16)?,
        process: process.map(ProcessId),
        stop_by: row.try_get(18)?,
    })
}

/// The column's check admits only the five words; an event's status has no check, so a foreign
/// word reads as the safest one.
pub(super) fn status(word: &str) -> Status {
    word.parse().unwrap_or(Status::InProgress)
}

pub(super) fn event(row: &Row) -> Result<Event, tokio_postgres::Error> {
    let actor: &str = row.try_get(5)?;
    Ok(Event {
        id: EventId(row.try_get(0)?),
        task_id: TaskId(row.try_get(1)?),
        status: status(row.try_get(2)?),
        state: row.try_get(3)?,
        detail: row.try_get(4)?,
        actor: actor.parse().unwrap_or(Actor::System),
        created_at: row.try_get(6)?,
        version: row.try_get(7)?,
        transaction: row.try_get(8)?,
    })
}

#[async_trait]
impl Reads for Postgres {
    async fn task(&self, id: TaskId) -> Result<Option<Task>> {
        let operation = "read a task";
        let sql = format!("SELECT {TASK} FROM kodus_workflow.tasks WHERE id = $1");
        let answer = self.query(1, operation, &sql, &[(&id.0 as _, Type::UUID)]).await?;
        Ok(rows(operation, &answer, task)?.pop())
    }

    async fn input(&self, id: TaskId) -> Result<Option<Value>> {
        let operation = "read a task's input";
        let sql = "SELECT payload FROM kodus_workflow.task_inputs WHERE task_id = $1";
        let answer = self.pg.query(operation, sql, &[(&id.0 as _, Type::UUID)]).await?;
        Ok(rows(operation, &answer, |row| row.try_get(0))?.pop())
    }

    async fn result(&self, id: TaskId) -> Result<Option<TaskResult>> {
        let operation = "read a task's result";
        let sql = "SELECT payload, created_at FROM kodus_workflow.task_results WHERE task_id = $1";
        let answer = self.pg.query(operation, sql, &[(&id.0 as _, Type::UUID)]).await?;
        let found = rows(operation, &answer, |row| {
            Ok(TaskResult { task_id: id, payload: row.try_get(0)?, created_at: row.try_get(1)? })
        });
        Ok(found?.pop())
    }

    async fn list(&self, filter: ListFilter) -> Result<Vec<Task>> {
        let operation = "list tasks";
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks
             WHERE ($1::text IS NULL OR type = $1) AND ($2::text IS NULL OR status = $2)
               AND ($3::timestamptz IS NULL OR created_at >= $3)
               AND ($4::timestamptz IS NULL OR created_at < $4)
               AND ($5::uuid IS NULL OR id < $5)
             ORDER BY id DESC LIMIT $6"
        );
        let status = filter.status.map(Status::as_str);
        let before = filter.before.map(|id| id.0);
        let limit = filter.limit as i64;
        let params = [
            (&filter.kind as _, Type::TEXT),
            (&status as _, Type::TEXT),
            (&filter.created_after as _, Type::TIMESTAMPTZ),
            (&filter.created_before as _, Type::TIMESTAMPTZ),
            (&before as _, Type::UUID),
            (&limit as _, Type::INT8),
        ];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, task)
    }

    async fn newest_events(&self, id: TaskId, limit: usize) -> Result<Vec<Event>> {
        self.events_before(id, Timestamp::MAX, limit).await
    }

    async fn events_since(&self, id: TaskId, after: i32, limit: usize) -> Result<Vec<Event>> {
        let operation = "follow a task's events";
        let sql = format!(
            "SELECT {EVENT} FROM kodus_workflow.task_events WHERE task_id = $1 AND version > $2
             ORDER BY version LIMIT $3"
        );
        let limit = limit as i64;
        let params =
            [(&id.0 as _, Type::UUID), (&after as _, Type::INT4), (&limit as _, Type::INT8)];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, event)
    }

    async fn stream_since(&self, cursor: Cursor, limit: usize) -> Result<Vec<Event>> {
        let operation = "follow all events";
        let sql = format!(
            "SELECT {EVENT} FROM kodus_workflow.task_events
             WHERE transaction >= $1::text::xid8
               AND transaction < pg_snapshot_xmin(pg_current_snapshot())
               AND (transaction, id) > ($1::text::xid8, $2)
             ORDER BY transaction, id LIMIT $3"
        );
        let (transaction, limit) = (cursor.transaction.to_string(), limit as i64);
        let params = [
            (&transaction as _, Type::TEXT),
            (&cursor.event.0 as _, Type::UUID),
            (&limit as _, Type::INT8),
        ];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, event)
    }

    async fn stream_end(&self) -> Result<Cursor> {
        let operation = "find the end of the events";
        let sql = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8";
        let answer = self.pg.query(operation, sql, &[]).await?;
        let ends = rows(operation, &answer, |row| row.try_get::<_, i64>(0))?;
        // All events below xmin are behind us; those of xmin itself are not.
        let transaction = ends.first().copied().unwrap_or(0);
        Ok(Cursor { transaction: transaction - 1, event: EventId(uuid::Uuid::max()) })
    }

    async fn waiting(&self) -> Result<Vec<Waiting>> {
        let operation = "count waiting tasks";
        let sql = "SELECT type, count(*), min(created_at) FROM kodus_workflow.tasks
                   WHERE status = 'PENDING' AND (run_at IS NULL OR run_at <= now())
                   GROUP BY type ORDER BY type COLLATE \"C\"";
        let answer = self.pg.query(operation, sql, &[]).await?;
        rows(operation, &answer, |row| {
            Ok(Waiting { kind: row.try_get(0)?, ready: row.try_get(1)?, oldest: row.try_get(2)? })
        })
    }
}
