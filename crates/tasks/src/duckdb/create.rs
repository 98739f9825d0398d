//! Creation: task, input, event, key and outbox row in one transaction.
//!
//! The rows of a call are settled in their order: the key of a request first, then the input
//! hash, against the file and against the rows before them in the same call.

use std::collections::{HashMap, HashSet};

use lavra_db::duckdb::{self, Connection};
use serde::Serialize;

use super::append::{self, Message, NewEvent};
use super::existing::{Existing, KeyRow};
use super::{DuckDb, all, micros_of, set};
use crate::error::Result;
use crate::machine::QUEUED;
use crate::model::{Actor, Status, TaskId};
use crate::store::{Made, NewRow};

/// How long the creator has for publishing its own messages before the sweep takes them.
const CREATORS_LEASE: i64 = 10_000_000;

const INSERT: &str = r#"
INSERT INTO kodus_workflow.tasks
    (id, type, status, state, priority, metadata, input_hash, max_retries, created_at, updated_at,
     run_at)
SELECT id, type, 'PENDING', 'Queued', priority, metadata::JSON, input_hash, max_retries,
       make_timestamp($2), make_timestamp($2), make_timestamp(run)
FROM (SELECT unnest(from_json($1::JSON, '[{"id": "UUID", "type": "VARCHAR",
          "priority": "SMALLINT", "metadata": "VARCHAR", "input_hash": "VARCHAR",
          "max_retries": "INTEGER", "run": "BIGINT"}]'), recursive := true))
ON CONFLICT DO NOTHING
RETURNING id"#;

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

impl DuckDb {
    pub(super) async fn insert(&self, input: Vec<NewRow>, announce: bool) -> Result<Vec<Made>> {
        if input.is_empty() {
            return Ok(Vec::new());
        }
        let creation = Creation::new(self, Actor::Api, announce.then_some(CREATORS_LEASE));
        let existing = Existing::new(self);
        let job = move |tx: &Connection| {
            let mut settled = Settled::by_keys(&input, &existing.keys(tx, &input)?);
            let new: Vec<&NewRow> =
                settled.candidates().into_iter().map(|place| &input[place]).collect();
            let new = creation.make(tx, &new)?;
            let conflicts = settled.new_or_in_conflict(&new);
            let lost: Vec<&NewRow> = conflicts.iter().map(|place| &input[*place]).collect();
            let found = existing.by_hash(tx, &lost)?;
            let keys = settled.finish(&found);
            existing.keep(tx, &keys, creation.now)?;
            Ok(settled.made())
        };
        Ok(self.duck.write("create tasks", job).await?)
    }
}

/// What becomes of each row of a call.
struct Settled<'a> {
    input: &'a [NewRow],
    places: Vec<Place>,
}

enum Place {
    /// Its key or its hash is that of an earlier row, and follows it.
    Twin(usize),
    /// To be made, unless its hash is taken.
    Open,
    /// As `Open`, for a key whose task is gone: made by hash or not at all.
    Gone(TaskId),
    Done(Made),
}

impl<'a> Settled<'a> {
    fn by_keys(input: &'a [NewRow], known: &HashMap<String, KeyRow>) -> Self {
        let mut keys: HashMap<&str, usize> = HashMap::new();
        let mut hashes: HashMap<(&str, &str), usize> = HashMap::new();
        let mut places: Vec<Place> = Vec::with_capacity(input.len());
        for (place, row) in input.iter().enumerate() {
            let key = row.key.as_ref();
            let earlier = key.and_then(|key| keys.get(key.key.as_str()).copied());
            let of_key = match (key, key.and_then(|key| known.get(&key.key)), earlier) {
                (Some(key), Some(known), _) if known.fingerprint != key.fingerprint => {
                    Some(Place::Done(Made::KeyReused(key.key.clone())))
                }
                (_, Some(known), _) if known.task == row.id => None,
                (_, Some(known), _) if known.is_there => {
                    Some(Place::Done(Made::Existing(known.task)))
                }
                (_, Some(known), _) => Some(Place::Gone(known.task)),
                (Some(key), None, Some(earlier)) => {
                    let first = input[earlier].key.as_ref();
                    Some(match first {
                        Some(first) if first.fingerprint != key.fingerprint => {
                            Place::Done(Made::KeyReused(key.key.clone()))
                        }
                        Some(_) | None => Place::Twin(earlier),
                    })
                }
                (_, None, _) => None,
            };
            if let Some(key) = key {
                keys.entry(&key.key).or_insert(place);
            }
            let of_hash = || {
                let hash = row.input_hash.as_deref()?;
                let first = *hashes.entry((&row.kind, hash)).or_insert(place);
                (first != place).then_some(Place::Twin(first))
            };
            places.push(of_key.or_else(of_hash).unwrap_or(Place::Open));
        }
        Self { input, places }
    }
}
