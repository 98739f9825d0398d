//! What the interfaces ask: one task, lists, events in their orders.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::duckdb::types::{FromSqlError, Type};
use lavra_db::duckdb::{self, Row};
use lavra_db::{micros, timestamp};
use serde_json::Value;
use uuid::Uuid;

use super::DuckDb;
use crate::error::Result;
use crate::model::{Actor, Event, EventId, ProcessId, Status, Task, TaskId, TaskResult};
use crate::store::{Cursor, ListFilter, Looks, Reads, Waiting};

pub(super) const TASK: &str = "id, type, status, state, progress, priority, metadata, error, \
    input_hash, retry_count, epoch_us(created_at), epoch_us(updated_at), version, attempts, \
    max_retries, epoch_us(run_at), token, process, epoch_us(stop_by)";

pub(super) const EVENT: &str = "id, task_id, status, state, detail, actor, epoch_us(created_at), \
    version, transaction";

pub(super) fn task(row: &Row<'_>) -> duckdb::Result<Task> {
    let (run, stop): (Option<i64>, Option<i64>) = (row.get(15)?, row.get(18)?);
    let process: Option<Uuid> = row.get(17)?;
    Ok(Task {
        id: TaskId(row.get(0)?),
        kind: row.get(1)?,
        status: status_at(row, 2)?,
        state: row.get(3)?,
        progress: row.get(4)?,
        priority: row.get(5)?,
        metadata: json_at(row, 6)?,
        error: row.get(7)?,
        input_hash: row.get(8)?,
        retry_count: row.get(9)?,
        created_at: timestamp(row.get(10)?),
        updated_at: timestamp(row.get(11)?),
        version: row.get(12)?,
        attempts: row.get(13)?,
        max_retries: row.get(14)?,
        run_at: run.map(timestamp),
        token: row.get(16)?,
        process: process.map(ProcessId),
        stop_by: stop.map(timestamp),
    })
}

/// The column's check admits only the five words; an event's status has no check, so a foreign
/// word reads as the safest one.
pub(super) fn status_at(row: &Row<'_>, column: usize) -> duckdb::Result<Status> {
    let word: String = row.get(column)?;
    Ok(word.parse().unwrap_or(Status::InProgress))
}

pub(super) fn event(row: &Row<'_>) -> duckdb::Result<Event> {
    let actor: String = row.get(5)?;
    let detail: Option<String> = row.get(4)?;
    Ok(Event {
        id: EventId(row.get(0)?),
        task_id: TaskId(row.get(1)?),
        status: status_at(row, 2)?,
        state: row.get(3)?,
        detail: detail.map(|text| json(&text, 4)).transpose()?,
        actor: actor.parse().unwrap_or(Actor::System),
        created_at: timestamp(row.get(6)?),
        version: row.get(7)?,
        transaction: row.get(8)?,
    })
}

pub(super) fn json_at(row: &Row<'_>, column: usize) -> duckdb::Result<Value> {
    let text: String = row.get(column)?;
    json(&text, column)
}

pub(super) fn json(text: &str, column: usize) -> duckdb::Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        let cause = FromSqlError::Other(error.into());
        duckdb::Error::FromSqlConversionFailure(column, Type::Text, cause.into())
    })
}

#[async_trait]
impl Reads for DuckDb {
    async fn task(&self, id: TaskId) -> Result<Option<Task>> {
        let sql = format!("SELECT {TASK} FROM kodus_workflow.tasks WHERE id = $1");
        Ok(self.select("read a task", &sql, (id.0,), task).await?.pop())
    }

    async fn input(&self, id: TaskId) -> Result<Option<Value>> {
        let sql = "SELECT payload FROM kodus_workflow.task_inputs WHERE task_id = $1";
        let read = |row: &Row<'_>| json_at(row, 0);
        Ok(self.select("read a task's input", sql, (id.0,), read).await?.pop())
    }

    async fn result(&self, id: TaskId) -> Result<Option<TaskResult>> {
        let sql = "SELECT task_id, payload, epoch_us(created_at) FROM kodus_workflow.task_results
                   WHERE task_id = $1";
        let read = |row: &Row<'_>| {
            Ok(TaskResult {
                task_id: TaskId(row.get(0)?),
                payload: json_at(row, 1)?,
                created_at: timestamp(row.get(2)?),
            })
        };
        Ok(self.select("read a task's result", sql, (id.0,), read).await?.pop())
    }

    async fn list(&self, filter: ListFilter) -> Result<Vec<Task>> {
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks
             WHERE ($1::VARCHAR IS NULL OR type = $1) AND ($2::VARCHAR IS NULL OR status = $2)
               AND ($3::BIGINT IS NULL OR epoch_us(created_at) >= $3)
               AND ($4::BIGINT IS NULL OR epoch_us(created_at) < $4)
               AND ($5::UUID IS NULL OR id < $5::UUID)
             ORDER BY id DESC LIMIT $6"
        );
        let params = (
            filter.kind,
            filter.status.map(Status::as_str),
            filter.created_after.map(micros),
            filter.created_before.map(micros),
            filter.before.map(|id| id.0),
            filter.limit as i64,
        );
        self.select("list tasks", &sql, params, task).await
    }

    async fn newest_events(&self, id: TaskId, limit: usize) -> Result<Vec<Event>> {
        self.events_before(id, Timestamp::MAX, limit).await
    }

    async fn events_since(&self, id: TaskId, after: i32, limit: usize) -> Result<Vec<Event>> {
        let sql = format!(
            "SELECT {EVENT} FROM kodus_workflow.task_events WHERE task_id = $1 AND version > $2
             ORDER BY version LIMIT $3"
        );
        self.select("follow a task's events", &sql, (id.0, after, limit as i64), event).await
    }

    /// The one writer commits in the order of the numbers, so nothing can appear behind a reader.
    async fn stream_since(&self, cursor: Cursor, limit: usize) -> Result<Vec<Event>> {
        let sql = format!(
            "SELECT {EVENT} FROM kodus_workflow.task_events
             WHERE transaction >= $1 AND (transaction > $1 OR id > $2::UUID)
             ORDER BY transaction, id LIMIT $3"
        );
        let params = (cursor.transaction, cursor.event.0, limit as i64);
        self.select("follow all events", &sql, params, event).await
    }

    async fn stream_end(&self) -> Result<Cursor> {
        let sql = "SELECT coalesce(max(transaction), 0) FROM kodus_workflow.task_events";
        let ends = self.select("find the end of the events", sql, (), |row| row.get(0)).await?;
        let transaction = ends.first().copied().unwrap_or(0);
        Ok(Cursor { transaction, event: EventId(Uuid::max()) })
    }

    async fn waiting(&self) -> Result<Vec<Waiting>> {
        let sql = "SELECT type, count(*), epoch_us(min(created_at)) FROM kodus_workflow.tasks
                   WHERE status = 'PENDING' AND (run_at IS NULL OR epoch_us(run_at) <= $1)
                   GROUP BY type ORDER BY type";
        let read = |row: &Row<'_>| {
            let oldest: Option<i64> = row.get(2)?;
            let (kind, ready) = (row.get(0)?, row.get(1)?);
            Ok(Waiting { kind, ready, oldest: oldest.map(timestamp) })
        };
        self.select("count waiting tasks", sql, (self.now(),), read).await
    }
}
