//! Heartbeats per process, and what a silent one leaves behind.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use lavra_db::duckdb::{self, Connection, Row};

use super::read::{TASK, status_at, task};
use super::{DuckDb, all, micros_of, run, set};
use crate::error::Result;
use crate::model::{ProcessId, Status, Task, TaskId, Token};
use crate::store::{Lost, Process, Processes};

const HELD: &str = "SELECT t.id, t.status, t.token
    FROM (SELECT unnest($1::JSON::UUID[]) AS id) held JOIN kodus_workflow.tasks t ON t.id = held.id";

#[async_trait]
impl Processes for DuckDb {
    async fn beat(&self, process: Process, held: Vec<(TaskId, Token)>) -> Result<Vec<Lost>> {
        let beat = Beat {
            known: self
                .sql("SELECT to_json(types)::VARCHAR FROM kodus_workflow.processes WHERE id = $1"),
            renew: self.sql(
                "UPDATE kodus_workflow.processes SET beat_at = make_timestamp($2) WHERE id = $1",
            ),
            retype: self.sql(
                "UPDATE kodus_workflow.processes SET types = $2::JSON::VARCHAR[] WHERE id = $1",
            ),
            enter: self.sql(
                "INSERT INTO kodus_workflow.processes (id, name, types, started_at, beat_at)
                 VALUES ($1, $2, $3::JSON::VARCHAR[], make_timestamp($4), make_timestamp($4))",
            ),
        };
        let (sql, now) = (self.sql(HELD), self.now());
        let job = move |tx: &Connection| {
            beat.write(tx, &process, now)?;
            if held.is_empty() {
                return Ok(Vec::new());
            }
            let ids: Vec<TaskId> = held.iter().map(|(id, _)| *id).collect();
            let found = all(tx, &sql, (set(&ids)?,), |row| {
                Ok((TaskId(row.get(0)?), (status_at(row, 1)?, row.get(2)?)))
            })?;
            Ok(lost(&held, &found.into_iter().collect()))
        };
        Ok(self.duck.write("renew the process's row", job).await?)
    }

    async fn retire(&self, process: ProcessId) -> Result<()> {
        let sql = self.sql("DELETE FROM kodus_workflow.processes WHERE id = $1");
        let job = move |tx: &Connection| run(tx, &sql, (process.0,));
        Ok(self.duck.write("retire the process", job).await?)
    }

    async fn orphans(&self, stale: Duration, limit: usize) -> Result<Vec<Task>> {
        // A process whose row is gone counts as dead, so its tasks cannot hide behind that.
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks t
             WHERE status = 'IN_PROGRESS' AND NOT EXISTS (
                 SELECT 1 FROM kodus_workflow.processes p
                 WHERE p.id = t.process AND epoch_us(p.beat_at) > $1)
             LIMIT $2"
        );
        let since = self.now().saturating_sub(micros_of(stale));
        self.select("find orphaned tasks", &sql, (since, limit as i64), task).await
    }

    async fn strays(
        &self,
        process: ProcessId,
        held: Vec<TaskId>,
        age: Duration,
    ) -> Result<Vec<Task>> {
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks
             WHERE status = 'IN_PROGRESS' AND process = $1 AND epoch_us(updated_at) < $2"
        );
        let before = self.now().saturating_sub(micros_of(age));
        let params = (process.0, before);
        let mut found = self.select("find claims that went astray", &sql, params, task).await?;
        found.retain(|task| !held.contains(&task.id));
        Ok(found)
    }

    async fn overdue_stops(&self, limit: usize) -> Result<Vec<Task>> {
        let sql = format!(
            "SELECT {TASK} FROM kodus_workflow.tasks
             WHERE status = 'CANCELLED' AND epoch_us(stop_by) <= $1 LIMIT $2"
        );
        let params = (self.now(), limit as i64);
        self.select("find stops that nobody confirmed", &sql, params, task).await
    }

    async fn declare(&self, mut kinds: Vec<String>) -> Result<()> {
        kinds.sort();
        kinds.dedup();
        let sql = self.sql(
            "INSERT INTO kodus_workflow.task_types (name, declared_at)
             SELECT unnest($1::JSON::VARCHAR[]), make_timestamp($2)
             ON CONFLICT (name) DO NOTHING",
        );
        let now = self.now();
        let job = move |tx: &Connection| run(tx, &sql, (set(&kinds)?, now));
        Ok(self.duck.write("declare task types", job).await?)
    }

    async fn declared(&self) -> Result<Vec<String>> {
        let sql = "SELECT name FROM kodus_workflow.task_types ORDER BY name";
        self.select("read the task types", sql, (), |row: &Row<'_>| row.get(0)).await
    }
}

/// A list column makes an UPDATE a removal and a new row, whose space never comes back: the
/// types are written only when they changed.
struct Beat {
    known: String,
    renew: String,
    retype: String,
    enter: String,
}

impl Beat {
    fn write(&self, tx: &Connection, process: &Process, now: i64) -> duckdb::Result<()> {
        let id = process.id.0;
        let types = set(&process.kinds)?;
        let known: Vec<String> = all(tx, &self.known, (id,), |row| row.get(0))?;
        match known.first() {
            None => run(tx, &self.enter, (id, &process.name, &types, now)),
            Some(known) => {
                if *known != types {
                    run(tx, &self.retype, (id, &types))?;
                }
                run(tx, &self.renew, (id, now))
            }
        }
    }
}

fn lost(held: &[(TaskId, Token)], found: &HashMap<TaskId, (Status, Token)>) -> Vec<Lost> {
    let lost = held.iter().filter_map(|&(id, token)| {
        let now = found.get(&id);
        let is_ours = now.is_some_and(|now| *now == (Status::InProgress, token));
        let cancelled = now.is_some_and(|now| *now == (Status::Cancelled, token));
        (!is_ours).then_some(Lost { id, token, cancelled })
    });
    lost.collect()
}
