//! Guarded changes of a set of tasks, with their events, results, dead letters and outbox rows,
//! in one transaction. What the guard refuses leaves no trace.

use std::collections::HashMap;

use async_trait::async_trait;
use lavra_db::Duck;
use lavra_db::duckdb::{self, Connection};
use uuid::Uuid;

use super::append::{self, Letter, Message, NewEvent};
use super::change::{Change, Current, RESULTS, UPDATE, UPDATE_METADATA, current_sql, read_current};
use super::{DuckDb, all, run, set};
use crate::error::Result;
use crate::model::{Status, TaskId};
use crate::store::{Write, Writes, Written};

#[async_trait]
impl Writes for DuckDb {
    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        let job = Job {
            current: self.sql(&current_sql(writes.iter().any(|write| write.metadata.is_some()))),
            update: self.sql(UPDATE),
            update_metadata: self.sql(UPDATE_METADATA),
            results: self.sql(RESULTS),
            raise: self.sql(RAISE),
            now: self.now(),
            events: writes.iter().map(|write| self.new_ids(write.steps.len() + 1)).collect(),
            row_ids: self.new_ids(writes.len()),
            duck: self.duck.clone(),
            writes,
        };
        Ok(self.duck.write("write tasks", move |tx| job.run(tx)).await?)
    }
}

impl DuckDb {
    fn new_ids(&self, count: usize) -> Vec<Uuid> {
        (0..count).map(|_| self.duck.clock().new_id()).collect()
    }
}

/// A task that failed and waits again needs no dead letter.
const RAISE: &str = "DELETE FROM kodus_workflow.task_dead_letters
    WHERE task_id IN (SELECT unnest($1::JSON::UUID[]))";

/// One call, ready to run as often as the writer thread needs.
struct Job {
    duck: Duck,
    current: String,
    update: String,
    update_metadata: String,
    results: String,
    raise: String,
    now: i64,
    writes: Vec<Write>,
    /// The ids of the events of each write, in their order.
    events: Vec<Vec<Uuid>>,
    /// For a dead letter or an outbox row of each write.
    row_ids: Vec<Uuid>,
}

/// A write whose guard holds, with what it changes and what its rows get.
struct Applied<'a> {
    write: &'a Write,
    task: &'a Current,
    change: Change<'a>,
    events: &'a [Uuid],
    row_id: Uuid,
}

impl Job {
    fn run(&self, tx: &Connection) -> duckdb::Result<Vec<Written>> {
        let ids: Vec<TaskId> = self.writes.iter().map(|write| write.id).collect();
        let current: HashMap<TaskId, Current> =
            all(tx, &self.current, (set(&ids)?,), read_current)?.into_iter().collect();
        let (mut written, mut applied) = (Vec::with_capacity(ids.len()), Vec::new());
        for (write, (events, row_id)) in
            self.writes.iter().zip(self.events.iter().zip(&self.row_ids))
        {
            let task = current.get(&write.id).filter(|task| task.satisfies(write.guard));
            written.push(match task {
                None => Written::Refused,
                Some(task) => {
                    let change = Change::of(write, task, self.now)?;
                    let version = change.version;
                    applied.push(Applied { write, task, change, events, row_id: *row_id });
                    Written::Applied { version }
                }
            });
        }
        if !applied.is_empty() {
            self.apply(tx, &applied)?;
        }
        Ok(written)
    }

    fn apply(&self, tx: &Connection, applied: &[Applied<'_>]) -> duckdb::Result<()> {
        let changes: Vec<&Change<'_>> = applied.iter().map(|one| &one.change).collect();
        run(tx, &self.update, (set(&changes)?,))?;
        if changes.iter().any(|change| change.metadata.is_some()) {
            run(tx, &self.update_metadata, (set(&changes)?,))?;
        }
        if changes.iter().any(|change| change.result.is_some()) {
            run(tx, &self.results, (set(&changes)?, self.now))?;
        }
        let schema = self.duck.schema().name();
        let events = applied.iter().flat_map(Applied::all_events);
        append::events(tx, schema, self.duck.next_sequence(), events)?;
        let raised = applied.iter().filter(|one| one.is_raised()).map(|one| one.write.id);
        let raised: Vec<TaskId> = raised.collect();
        if !raised.is_empty() {
            run(tx, &self.raise, (set(&raised)?,))?;
        }
        append::letters(tx, schema, self.now, applied.iter().filter_map(Applied::letter))?;
        append::outbox(tx, schema, self.now, applied.iter().filter_map(Applied::message))
    }
}

impl Applied<'_> {
    /// The steps and the last event, each a version and a microsecond after the one before.
    fn all_events(&self) -> impl Iterator<Item = NewEvent<'_>> {
        let steps = self.write.steps.iter().map(|s| (s.status, &s.state, &s.detail, s.actor));
        let next = &self.write.next;
        let last = (next.status, &next.state, &next.detail, next.actor);
        let back = (0..self.events.len() as i32).rev();
        steps.chain([last]).zip(self.events).zip(back).map(|((event, id), back)| {
            let (status, state, detail, actor) = event;
            NewEvent {
                id: *id,
                task: self.write.id,
                status,
                state,
                detail: detail.to_string(),
                actor,
                created: self.change.updated - i64::from(back),
                version: self.change.version - back,
            }
        })
    }

    fn is_raised(&self) -> bool {
        self.task.status == Status::Failed && self.write.next.status == Status::Pending
    }

    fn letter(&self) -> Option<Letter<'_>> {
        let next = &self.write.next;
        (next.status == Status::Failed).then(|| Letter {
            id: self.row_id,
            task: Some(self.write.id),
            kind: Some(&self.task.kind),
            reason: next.error.as_deref().unwrap_or(&next.state),
            body: None,
        })
    }

    fn message(&self) -> Option<Message<'_>> {
        let next = &self.write.next;
        let waits_now = next.status == Status::Pending && next.wait.is_none();
        (self.write.announce && waits_now).then(|| Message {
            id: self.row_id,
            task: self.write.id,
            kind: &self.task.kind,
        })
    }
}
