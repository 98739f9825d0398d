//! The row of a task before and after a guarded change.

use lavra_db::duckdb::{self, Row};
use serde::Serialize;
use serde_json::Value;

use super::micros_of;
use super::read::{json, status_at};
use crate::model::{Status, TaskId, Token};
use crate::store::{Guard, Write};

pub(super) fn current_sql(with_metadata: bool) -> String {
    let metadata = if with_metadata { "t.metadata" } else { "NULL::VARCHAR" };
    format!(
        "SELECT t.id, t.type, t.status, t.token, t.version, t.progress, epoch_us(t.updated_at),
                {metadata}
         FROM (SELECT unnest($1::JSON::UUID[]) AS id) asked
         JOIN kodus_workflow.tasks t ON t.id = asked.id"
    )
}

/// Of a set of [`Change`].
macro_rules! changes {
    ($fields:literal) => {
        concat!(
            "(SELECT unnest(from_json($1::JSON, '[{\"id\": \"UUID\", ",
            $fields,
            "}]'), recursive := true)) x"
        )
    };
}

pub(super) const UPDATE: &str = concat!(
    "UPDATE kodus_workflow.tasks t SET
         status = x.status, state = x.state, progress = x.progress, error = x.error,
         retry_count = x.retry_count, run_at = make_timestamp(x.run),
         stop_by = make_timestamp(x.stop),
         process = CASE WHEN x.status = 'PENDING' THEN NULL ELSE t.process END,
         version = x.version, updated_at = make_timestamp(x.updated)
     FROM ",
    changes!(
        r#""status": "VARCHAR", "state": "VARCHAR", "progress": "SMALLINT", "error": "VARCHAR",
           "retry_count": "INTEGER", "run": "BIGINT", "stop": "BIGINT", "version": "INTEGER",
           "updated": "BIGINT""#
    ),
    " WHERE t.id = x.id"
);

pub(super) const UPDATE_METADATA: &str = concat!(
    "UPDATE kodus_workflow.tasks t SET metadata = x.metadata::JSON FROM ",
    changes!(r#""metadata": "VARCHAR""#),
    " WHERE t.id = x.id AND x.metadata IS NOT NULL"
);

pub(super) const RESULTS: &str = concat!(
    "INSERT INTO kodus_workflow.task_results (task_id, payload, created_at)
     SELECT id, result::JSON, make_timestamp($2) FROM ",
    changes!(r#""result": "VARCHAR""#),
    " WHERE result IS NOT NULL"
);

/// What a change depends on.
pub(super) struct Current {
    pub(super) kind: String,
    pub(super) status: Status,
    token: Token,
    version: i32,
    progress: i16,
    updated: i64,
    metadata: Option<String>,
}

pub(super) fn read_current(row: &Row<'_>) -> duckdb::Result<(TaskId, Current)> {
    let current = Current {
        kind: row.get(1)?,
        status: status_at(row, 2)?,
        token: row.get(3)?,
        version: row.get(4)?,
        progress: row.get(5)?,
        updated: row.get(6)?,
        metadata: row.get(7)?,
    };
    Ok((TaskId(row.get(0)?), current))
}

impl Current {
    pub(super) fn satisfies(&self, guard: Guard) -> bool {
        self.status == guard.status
            && guard.token.is_none_or(|token| token == self.token)
            && guard.version.is_none_or(|version| version == self.version)
    }
}

/// The columns as they become. Metadata and result only where there are new ones.
#[derive(Serialize)]
pub(super) struct Change<'a> {
    id: TaskId,
    status: &'static str,
    state: &'a str,
    progress: i16,
    error: Option<&'a str>,
    retry_count: i32,
    run: Option<i64>,
    stop: Option<i64>,
    pub(super) version: i32,
    pub(super) updated: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
}

impl<'a> Change<'a> {
    pub(super) fn of(write: &'a Write, task: &Current, now: i64) -> duckdb::Result<Self> {
        let next = &write.next;
        let events = write.steps.len() as i32 + 1;
        let within_an_attempt = next.status == Status::InProgress;
        let known = task.metadata.as_deref().zip(write.metadata.as_ref());
        Ok(Self {
            id: write.id,
            status: next.status.as_str(),
            state: &next.state,
            progress: if within_an_attempt {
                task.progress.max(next.progress)
            } else {
                next.progress
            },
            error: next.error.as_deref(),
            retry_count: next.retry_count,
            run: next.wait.map(|wait| now.saturating_add(micros_of(wait))),
            stop: next.stop_within.map(|within| now.saturating_add(micros_of(within))),
            version: task.version + events,
            updated: now.max(task.updated + i64::from(events)),
            metadata: known.map(|(known, new)| merged(known, new)).transpose()?,
            result: write.result().map(ToString::to_string),
        })
    }
}

/// Key by key, as PostgreSQL's `||`.
fn merged(known: &str, new: &Value) -> duckdb::Result<String> {
    let mut merged = json(known, 7)?;
    if let (Value::Object(fields), Value::Object(new)) = (&mut merged, new) {
        fields.extend(new.clone());
    }
    Ok(merged.to_string())
}
