//! Creation: task, input, event, key and outbox row in one statement.
//!
//! A conflict on the input hash or the key makes no row; the existing task is looked up
//! afterwards. It may have been removed in between, so the whole is tried again a few times.

use std::collections::HashMap;

use lavra_db::tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Postgres, rows};
use crate::error::{Error, Result};
use crate::model::TaskId;
use crate::store::{Made, NewRow};

/// How long the creator has for publishing its own messages before the sweep takes them.
const CREATORS_LEASE: f64 = 10.0;
const TRIES: usize = 5;

const INSERT: &str = "
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::int2[], $5::text[], $6::text[],
                         $7::text[], $8::int4[], $9::float8[], $10::text[], $11::text[], $12::text[])
        AS i(id, event, type, priority, metadata, payload, input_hash, max_retries, delay, detail,
             key, fingerprint)
), key AS (
    INSERT INTO kodus_workflow.task_keys (key, fingerprint, task_id)
    SELECT key, fingerprint, id FROM input WHERE key IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING task_id
), task AS (
    INSERT INTO kodus_workflow.tasks
        (id, type, status, state, priority, metadata, input_hash, max_retries, run_at)
    SELECT id, type, 'PENDING', 'Queued', priority, metadata::jsonb, input_hash, max_retries,
           now() + make_interval(secs => delay)
    FROM input
    WHERE key IS NULL OR id IN (SELECT task_id FROM key)
    ON CONFLICT (type, input_hash) WHERE input_hash IS NOT NULL DO NOTHING
    RETURNING id
), payload AS (
    INSERT INTO kodus_workflow.task_inputs (task_id, payload)
    SELECT input.id, input.payload::jsonb FROM input JOIN task USING (id)
), event AS (
    INSERT INTO kodus_workflow.task_events
        (id, task_id, status, state, detail, actor, version)
    SELECT input.event, input.id, 'PENDING', 'Queued', input.detail::jsonb, 'API', 0
    FROM input JOIN task USING (id)
), outbox AS (
    INSERT INTO kodus_workflow.task_outbox (id, task_id, type, next_at)
    SELECT input.event, input.id, input.type, now() + make_interval(secs => $14)
    FROM input JOIN task USING (id)
    WHERE $13 AND input.delay IS NULL
)
SELECT id FROM task";

const EXISTING: &str = "
SELECT i.id, t.id, NULL::text
FROM unnest($1::uuid[], $2::text[], $3::text[]) AS i(id, type, input_hash)
JOIN kodus_workflow.tasks t ON t.type = i.type AND t.input_hash = i.input_hash
UNION ALL
SELECT i.id, k.task_id, k.fingerprint
FROM unnest($1::uuid[], $4::text[]) AS i(id, key)
JOIN kodus_workflow.task_keys k ON k.key = i.key";

impl Postgres {
    pub(super) async fn insert(&self, input: Vec<NewRow>, announce: bool) -> Result<Vec<Made>> {
        let mut made: HashMap<TaskId, Made> = HashMap::with_capacity(input.len());
        let mut open: Vec<&NewRow> = input.iter().collect();
        for _ in 0..TRIES {
            let new = self.insert_once(&open, announce).await?;
            made.extend(new.into_iter().map(|id| (id, Made::New)));
            open.retain(|row| !made.contains_key(&row.id));
            if open.is_empty() {
                let order = input.iter().filter_map(|row| made.remove(&row.id));
                return Ok(order.collect());
            }
            made.extend(self.existing(&open).await?);
            open.retain(|row| !made.contains_key(&row.id));
        }
        Err(Error::Invalid("the task could not be made: its key comes and goes".into()))
    }

    async fn insert_once(&self, input: &[&NewRow], announce: bool) -> Result<Vec<TaskId>> {
        let operation = "create tasks";
        let ids: Vec<Uuid> = input.iter().map(|row| row.id.0).collect();
        let events: Vec<Uuid> = input.iter().map(|row| row.event.0).collect();
        let kinds: Vec<&str> = input.iter().map(|row| row.kind.as_str()).collect();
        let priorities: Vec<i16> = input.iter().map(|row| row.priority).collect();
        let metadata: Vec<&str> = input.iter().map(|row| row.metadata.as_str()).collect();
        let payloads: Vec<&str> = input.iter().map(|row| row.payload.as_str()).collect();
        let hashes: Vec<Option<&str>> = input.iter().map(|row| row.input_hash.as_deref()).collect();
        let retries: Vec<i32> = input.iter().map(|row| row.max_retries).collect();
        let delays: Vec<Option<f64>> =
            input.iter().map(|row| row.delay.map(|delay| delay.as_secs_f64())).collect();
        let details: Vec<&str> = input.iter().map(|row| row.detail.as_str()).collect();
        let keys: Vec<Option<&str>> =
            input.iter().map(|row| row.key.as_ref().map(|key| key.key.as_str())).collect();
        let prints: Vec<Option<&str>> =
            input.iter().map(|row| row.key.as_ref().map(|key| key.fingerprint.as_str())).collect();
        let params = [
            (&ids as _, Type::UUID_ARRAY),
            (&events as _, Type::UUID_ARRAY),
            (&kinds as _, Type::TEXT_ARRAY),
            (&priorities as _, Type::INT2_ARRAY),
            (&metadata as _, Type::TEXT_ARRAY),
            (&payloads as _, Type::TEXT_ARRAY),
            (&hashes as _, Type::TEXT_ARRAY),
            (&retries as _, Type::INT4_ARRAY),
            (&delays as _, Type::FLOAT8_ARRAY),
            (&details as _, Type::TEXT_ARRAY),
            (&keys as _, Type::TEXT_ARRAY),
            (&prints as _, Type::TEXT_ARRAY),
            (&announce as _, Type::BOOL),
            (&CREATORS_LEASE as _, Type::FLOAT8),
        ];
        let answer = self.pg.query(operation, INSERT, &params).await?;
        rows(operation, &answer, |row| Ok(TaskId(row.try_get(0)?)))
    }

    async fn existing(&self, input: &[&NewRow]) -> Result<HashMap<TaskId, Made>> {
        let operation = "find the existing task";
        let ids: Vec<Uuid> = input.iter().map(|row| row.id.0).collect();
        let kinds: Vec<&str> = input.iter().map(|row| row.kind.as_str()).collect();
        let hashes: Vec<Option<&str>> = input.iter().map(|row| row.input_hash.as_deref()).collect();
        let keys: Vec<Option<&str>> =
            input.iter().map(|row| row.key.as_ref().map(|key| key.key.as_str())).collect();
        let params = [
            (&ids as _, Type::UUID_ARRAY),
            (&kinds as _, Type::TEXT_ARRAY),
            (&hashes as _, Type::TEXT_ARRAY),
            (&keys as _, Type::TEXT_ARRAY),
        ];
        let answer = self.pg.query(operation, EXISTING, &params).await?;
        let found = rows(operation, &answer, |row| {
            let print: Option<String> = row.try_get(2)?;
            Ok((TaskId(row.try_get(0)?), TaskId(row.try_get(1)?), print))
        })?;
        let mut made = HashMap::new();
        for (asked, task, print) in found {
            let key = input.iter().find(|row| row.id == asked).and_then(|row| row.key.as_ref());
            // A key of ours whose task lost against an input hash points at a task that was
            // never made: the hash's task counts then.
            let outcome = match (print, key) {
                (Some(print), Some(key)) if print != key.fingerprint => {
                    Made::KeyReused(key.key.clone())
                }
                (Some(_), _) if task == asked => continue,
                (Some(_) | None, _) => Made::Existing(task),
            };
            made.entry(asked).or_insert(outcome);
        }
        Ok(made)
    }
}
