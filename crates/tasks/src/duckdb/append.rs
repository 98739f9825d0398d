//! What is only ever added goes by DuckDB's Appender: inputs, events, outbox rows, dead letters.

use lavra_db::duckdb::types::{TimeUnit, Value};
use lavra_db::duckdb::{self, Connection};
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
    events: impl IntoIterator<Item = NewEvent<'a>>,
) -> duckdb::Result<()> {
    let mut appender = tx.appender_to_db("task_events", schema)?;
    for event in events {
        appender.append_row((
            event.id,
            event.task.0,
            event.status.as_str(),
            event.state,
            event.detail,
            event.actor.as_str(),
            at(event.created),
            event.version,
            transaction,
        ))?;
    }
    appender.flush()
}

pub(super) fn inputs<'a>(
    tx: &Connection,
    schema: &str,
    inputs: impl IntoIterator<Item = (TaskId, &'a str)>,
) -> duckdb::Result<()> {
    let mut appender = tx.appender_to_db("task_inputs", schema)?;
    for (task, payload) in inputs {
        appender.append_row((task.0, payload))?;
    }
    appender.flush()
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
    messages: impl IntoIterator<Item = Message<'a>>,
) -> duckdb::Result<()> {
    let mut appender = tx.appender_to_db("task_outbox", schema)?;
    for message in messages {
        appender.append_row((message.id, message.task.0, message.kind, at(next), 0))?;
    }
    appender.flush()
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
    letters: impl IntoIterator<Item = Letter<'a>>,
) -> duckdb::Result<()> {
    let mut appender = tx.appender_to_db("task_dead_letters", schema)?;
    for letter in letters {
        let task = letter.task.map(|task| task.0);
        let row = (letter.id, task, letter.kind, letter.reason, letter.body, at(now));
        appender.append_row(row)?;
    }
    appender.flush()
}

fn at(micros: i64) -> Value {
    Value::Timestamp(TimeUnit::Microsecond, micros)
}
