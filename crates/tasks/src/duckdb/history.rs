//! Retention: what may go, what goes to the archive first, and the moving window of events.

use std::collections::HashMap;

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::duckdb::{Connection, Row};
use lavra_db::micros;
use serde_json::Value;

use super::read::{EVENT, TASK, event, json_at, task};
use super::{DuckDb, all, run, set};
use crate::error::Result;
use crate::model::{Event, Task, TaskId};
use crate::postgres::floor;
use crate::store::{Dossier, Expiry, History};

/// What a task leaves behind, and by which column it is the task's.
const BELONGINGS: [(&str, &str); 6] = [
    ("task_events", "task_id"),
    ("task_inputs", "task_id"),
    ("task_keys", "task_id"),
    ("task_results", "task_id"),
    ("task_dead_letters", "task_id"),
    ("tasks", "id"),
];

#[async_trait]
impl History for DuckDb {
    async fn expired(&self, expiry: Expiry, limit: usize) -> Result<Vec<Task>> {
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks
             WHERE (status = 'COMPLETED' AND epoch_us(updated_at) < $1)
                OR (status = 'CANCELLED' AND epoch_us(updated_at) < $2)
                OR (status = 'FAILED' AND epoch_us(updated_at) < $3)
             ORDER BY updated_at LIMIT $4"
        );
        let params = (
            micros(expiry.completed_before),
            micros(expiry.cancelled_before),
            micros(expiry.failed_before),
            limit as i64,
        );
        self.select("find expired tasks", &sql, params, task).await
    }

    async fn dossiers(&self, tasks: Vec<Task>) -> Result<Vec<Dossier>> {
        let asked: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        let of_tasks = |columns: &str, table: &str| {
            self.sql(&format!(
                "SELECT {columns} FROM kodus_workflow.{table}
                 WHERE task_id IN (SELECT unnest($1::JSON::UUID[]))"
            ))
        };
        let inputs = of_tasks("task_id, payload", "task_inputs");
        let results = of_tasks("task_id, payload", "task_results");
        let events = of_tasks(EVENT, "task_events") + " ORDER BY task_id, version";
        let job = move |connection: &Connection| {
            let ids = set(&asked)?;
            let pair = |row: &Row<'_>| Ok((TaskId(row.get(0)?), json_at(row, 1)?));
            let inputs = all(connection, &inputs, (&ids,), pair)?;
            let results = all(connection, &results, (&ids,), pair)?;
            Ok((inputs, results, all(connection, &events, (&ids,), event)?))
        };
        let (inputs, results, all_events) = self.duck.read("read expired tasks", job).await?;
        let mut inputs: HashMap<TaskId, Value> = inputs.into_iter().collect();
        let mut results: HashMap<TaskId, Value> = results.into_iter().collect();
        let mut events: HashMap<TaskId, Vec<Event>> = HashMap::new();
        for event in all_events {
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

    /// There are no foreign keys whose cascade would do it.
    async fn remove(&self, tasks: Vec<(TaskId, i32)>) -> Result<usize> {
        let current = self.sql(
            "SELECT t.id, t.version FROM (SELECT unnest($1::JSON::UUID[]) AS id) asked
             JOIN kodus_workflow.tasks t ON t.id = asked.id",
        );
        let deletes = BELONGINGS.map(|(table, column)| {
            self.sql(&format!(
                "DELETE FROM kodus_workflow.{table}
                 WHERE {column} IN (SELECT unnest($1::JSON::UUID[]))"
            ))
        });
        let job = move |tx: &Connection| {
            let asked: Vec<TaskId> = tasks.iter().map(|(id, _)| *id).collect();
            let current =
                all(tx, &current, (set(&asked)?,), |row| Ok((TaskId(row.get(0)?), row.get(1)?)))?;
            let current: HashMap<TaskId, i32> = current.into_iter().collect();
            let unchanged = tasks.iter().filter(|(id, version)| current.get(id) == Some(version));
            let gone: Vec<TaskId> = unchanged.map(|(id, _)| *id).collect();
            if !gone.is_empty() {
                let ids = set(&gone)?;
                deletes.iter().try_for_each(|sql| run(tx, sql, (&ids,)))?;
            }
            Ok(gone.len())
        };
        Ok(self.duck.write("remove expired tasks", job).await?)
    }

    async fn sweep_history(&self, before: Timestamp, limit: usize) -> Result<usize> {
        // The events of a task that still lives stay: its history and its version go together.
        let events = self.sql(
            "DELETE FROM kodus_workflow.task_events WHERE id IN (
                 SELECT e.id FROM kodus_workflow.task_events e
                 WHERE e.id < $1::UUID AND NOT EXISTS (
                     SELECT 1 FROM kodus_workflow.tasks t
                     WHERE t.id = e.task_id AND t.status IN ('PENDING', 'IN_PROGRESS'))
                 ORDER BY e.id LIMIT $2)
             RETURNING id",
        );
        let letters = self.sql(
            "DELETE FROM kodus_workflow.task_dead_letters WHERE id < $1::UUID AND task_id IS NULL",
        );
        let keys = self.sql("DELETE FROM kodus_workflow.task_keys WHERE epoch_us(created_at) < $1");
        let processes =
            self.sql("DELETE FROM kodus_workflow.processes WHERE epoch_us(beat_at) < $1");
        let (floor, before) = (floor(before), micros(before));
        let job = move |tx: &Connection| {
            let gone = all(tx, &events, (floor, limit as i64), |_| Ok(()))?;
            run(tx, &letters, (floor,))?;
            run(tx, &keys, (before,))?;
            run(tx, &processes, (before,))?;
            Ok(gone.len())
        };
        Ok(self.duck.write("trim the events", job).await?)
    }
}
