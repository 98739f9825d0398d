//! What is only ever added goes by DuckDB's Appender: inputs, events, outbox rows, dead letters.

use lavra_db::duckdb::types::{TimeUnit, Value};
use lavra_db::duckdb::{self, AppenderParams, Connection};
use uuid::Uuid;

use crate::model::{Actor, Status, TaskId};

pub(super) struct NewEvent<'a> {
    pub(super) id: Uuid,
    pub(super) task: TaskId,
    pub(super) status: Status,
    pub(super) state: &'a str,
    pub(super) detail: String,
    pub(super) actor: Actor,
    pub(super) created: i64,
    pub(super) version: i32,
}

/// `transaction` is taken in the closure that calls this, for the order of the stream.
pub(super) fn events<'a>(
    tx: &Connection,
    schema: &str,
    transaction: i64,
    events: impl Iterator<Item = NewEvent<'a>>,
) -> duckdb::Result<()> {
    let rows = events.map(|event| {
        let (status, actor) = (event.status.as_str(), event.actor.as_str());
        let created = at(event.created);
        let (id, task) = (event.id, event.task.0);
        (id, task, status, event.state, event.detail, actor, created, event.version, transaction)
    });
    append(tx, schema, "task_events", rows)
}

pub(super) fn inputs<'a>(
    tx: &Connection,
    schema: &str,
    inputs: impl Iterator<Item = (TaskId, &'a str)>,
) -> duckdb::Result<()> {
    append(tx, schema, "task_inputs", inputs.map(|(task, payload)| (task.0, payload)))
}

pub(super) struct Message<'a> {
    pub(super) id: Uuid,
    pub(super) task: TaskId,
    pub(super) kind: &'a str,
}

/// Messages that may be published from `next` on.
pub(super) fn outbox<'a>(
    tx: &Connection,
    schema: &str,
    next: i64,
    messages: impl Iterator<Item = Message<'a>>,
) -> duckdb::Result<()> {
    let rows = messages.map(|message| (message.id, message.task.0, message.kind, at(next), 0));
    append(tx, schema, "task_outbox", rows)
}

pub(super) struct Letter<'a> {
    pub(super) id: Uuid,
    pub(super) task: Option<TaskId>,
    pub(super) kind: Option<&'a str>,
    pub(super) reason: &'a str,
    pub(super) body: Option<&'a str>,
}

pub(super) fn letters<'a>(
    tx: &Connection,
    schema: &str,
    now: i64,
    letters: impl Iterator<Item = Letter<'a>>,
) -> duckdb::Result<()> {
    let rows = letters.map(|letter| {
        let task = letter.task.map(|task| task.0);
        (letter.id, task, letter.kind, letter.reason, letter.body, at(now))
    });
    append(tx, schema, "task_dead_letters", rows)
}

fn append<R: AppenderParams>(
    tx: &Connection,
    schema: &str,
    table: &str,
    rows: impl Iterator<Item = R>,
) -> duckdb::Result<()> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let mut appender = tx.appender_to_db(table, schema)?;
    appender.append_rows(rows)?;
    appender.flush()
}

fn at(micros: i64) -> Value {
    Value::Timestamp(TimeUnit::Microsecond, micros)
}
