//! Creation: task, input, event, key and outbox row in one transaction.
//!
//! What a request's key says counts first, then its input hash; both against the file and
//! against the rows before it in the same call.

use std::collections::HashSet;

use async_trait::async_trait;
use lavra_db::Duck;
use lavra_db::duckdb::{self, Connection};
use serde::Serialize;

use super::append::{self, Message, NewEvent};
use super::existing::Existing;
use super::settle::{Fate, fates, keys_to_keep, settle};
use super::{DuckDb, all, micros_of, set};
use crate::error::Result;
use crate::machine::QUEUED;
use crate::model::{Actor, Status, TaskId};
use crate::store::{Along, Creates, Made, NewRow};

const INSERT: &str = r#"
INSERT INTO kodus_workflow.tasks
    (id, type, status, state, priority, metadata, input_hash, max_retries, created_at, updated_at,
     run_at)
SELECT id, type, 'PENDING', 'Queued', priority, metadata::JSON, input_hash, max_retries,
       make_timestamp($2), make_timestamp($2), make_timestamp(run)
FROM (SELECT unnest(from_json($1::JSON, '[{"id": "UUID", "type": "VARCHAR",
          "priority": "SMALLINT", "metadata": "VARCHAR", "input_hash": "VARCHAR",
          "max_retries": "INTEGER", "run": "BIGINT"}]'), recursive := true))"#;

#[async_trait]
impl Creates for DuckDb {
    async fn create(&self, input: Vec<NewRow>, along: Along) -> Result<Vec<Made>> {
        let creation =
            Creation::new(self, Actor::Api, along.announce.map(|lease| lease.as_micros() as i64));
        let existing = Existing::new(self);
        let job = move |tx: &Connection| {
            let known = existing.keys(tx, &input)?;
            let fates = match fates(&input, &known) {
                Ok(fates) => fates,
                Err(refused) => return Ok(Err(refused)),
            };
            let rows = || input.iter().zip(&fates);
            let open: Vec<&NewRow> =
                rows().filter(|(_, fate)| **fate == Fate::Open).map(|(row, _)| row).collect();
            let new = creation.make(tx, &open)?;
            let lost: Vec<&NewRow> = rows()
                .filter(|(row, fate)| match fate {
                    Fate::Open => !new.contains(&row.id),
                    Fate::Gone(_) => true,
                    Fate::Like(_) | Fate::Known(_) => false,
                })
                .map(|(row, _)| row)
                .collect();
            let made = settle(&input, &fates, &new, &existing.by_hash(tx, &lost)?);
            existing.keep(tx, &keys_to_keep(&input, &fates, &made, &known), creation.now)?;
            Ok(Ok(made))
        };
        self.duck.write("create tasks", job).await?
    }
}

/// What makes tasks inside a closure, at one time and by one actor.
pub(super) struct Creation {
    duck: Duck,
    insert: String,
    insert_or_not: String,
    pub(super) now: i64,
    actor: Actor,
    /// After how long anyone may publish the messages; absent when nobody is to be told.
    announce_in: Option<i64>,
}

#[derive(Serialize)]
struct Inserted<'a> {
    id: TaskId,
    #[serde(rename = "type")]
    kind: &'a str,
    priority: i16,
    metadata: &'a str,
    input_hash: Option<&'a str>,
    max_retries: i32,
    run: Option<i64>,
}

impl Creation {
    pub(super) fn new(store: &DuckDb, actor: Actor, announce_in: Option<i64>) -> Self {
        Self {
            duck: store.duck.clone(),
            insert: store.sql(INSERT),
            insert_or_not: format!("{} ON CONFLICT DO NOTHING RETURNING id", store.sql(INSERT)),
            now: store.now(),
            actor,
            announce_in,
        }
    }

    /// Makes the tasks whose input hash is free, with all that belongs to them. No hash may
    /// stand twice among `rows`.
    pub(super) fn make(
        &self,
        tx: &Connection,
        rows: &[&NewRow],
    ) -> duckdb::Result<HashSet<TaskId>> {
        // Not one statement for all: ON CONFLICT takes two NULLs in one set for a conflict.
        let (hashed, plain): (Vec<&NewRow>, Vec<&NewRow>) =
            rows.iter().partition(|row| row.input_hash.is_some());
        let mut new: HashSet<TaskId> = plain.iter().map(|row| row.id).collect();
        if !plain.is_empty() {
            super::run(tx, &self.insert, (self.set(&plain)?, self.now))?;
        }
        if !hashed.is_empty() {
            let params = (self.set(&hashed)?, self.now);
            new.extend(all(tx, &self.insert_or_not, params, |row| Ok(TaskId(row.get(0)?)))?);
        }
        let made: Vec<&NewRow> = rows.iter().copied().filter(|row| new.contains(&row.id)).collect();
        if !made.is_empty() {
            self.append(tx, &made)?;
        }
        Ok(new)
    }

    fn set(&self, rows: &[&NewRow]) -> duckdb::Result<String> {
        let rows: Vec<Inserted<'_>> = rows
            .iter()
            .map(|row| Inserted {
                id: row.id,
                kind: &row.kind,
                priority: row.priority,
                metadata: &row.metadata,
                input_hash: row.input_hash.as_deref(),
                max_retries: row.max_retries,
                run: row.delay.map(|delay| self.now.saturating_add(micros_of(delay))),
            })
            .collect();
        set(&rows)
    }

    fn append(&self, tx: &Connection, rows: &[&NewRow]) -> duckdb::Result<()> {
        let schema = self.duck.schema().name();
        append::inputs(tx, schema, rows.iter().map(|row| (row.id, row.payload.as_str())))?;
        let events = rows.iter().map(|row| NewEvent {
            id: row.event.0,
            task: row.id,
            status: Status::Pending,
            state: QUEUED,
            detail: row.detail.clone(),
            actor: self.actor,
            created: self.now,
            version: 0,
        });
        append::events(tx, schema, self.duck.next_sequence(), events)?;
        let Some(announce_in) = self.announce_in else { return Ok(()) };
        let messages = rows.iter().filter(|row| row.delay.is_none()).map(|row| Message {
            id: row.event.0,
            task: row.id,
            kind: &row.kind,
        });
        append::outbox(tx, schema, self.now + announce_in, messages)
    }
}
