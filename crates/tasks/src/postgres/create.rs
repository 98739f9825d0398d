//! Creation: task, input, event, key and outbox row in one statement.
//!
//! A conflict on the input hash or the key makes no row; the existing task is looked up
//! afterwards. It may have been removed in between, so the whole is tried again a few times.

use std::collections::HashMap;

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Postgres, rows};
use crate::bell;
use crate::error::{Error, Result};
use crate::model::TaskId;
use crate::store::{Along, Creates, Key, Made, NewRow};

const TRIES: usize = 5;

const INPUT: &str = "
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::int2[], $5::text[], $6::text[],
                         $7::text[], $8::int4[], $9::float8[], $10::text[], $11::text[], $12::text[])
        WITH ORDINALITY
        AS i(id, event, type, priority, metadata, payload, input_hash, max_retries, delay, detail,
             key, fingerprint, place)
)";

const KEYS: &str = ", key AS (
    INSERT INTO kodus_workflow.task_keys (key, fingerprint, task_id)
    SELECT key, fingerprint, id FROM input WHERE key IS NOT NULL ORDER BY key, place
    ON CONFLICT DO NOTHING
    RETURNING task_id
), mine AS (
    SELECT task_id FROM key
    UNION ALL
    SELECT k.task_id FROM input i
    JOIN kodus_workflow.task_keys k ON k.key = i.key AND k.task_id = i.id
)";

const TASKS: &str = ", task AS (
    INSERT INTO kodus_workflow.tasks
        (id, type, status, state, priority, metadata, input_hash, max_retries, run_at)
    SELECT id, type, 'PENDING', 'Queued', priority, metadata::jsonb, input_hash, max_retries,
           now() + make_interval(secs => delay)
    FROM input";

const WITH_THEIR_KEYS: &str = "
    LEFT JOIN mine ON mine.task_id = input.id WHERE key IS NULL OR mine.task_id IS NOT NULL";

const BY_HASH: &str = "
    ORDER BY type, input_hash, place
    ON CONFLICT (type, input_hash) WHERE input_hash IS NOT NULL DO NOTHING";

const MADE: &str = "
    RETURNING id
)";

/// Of all rows where nothing can stand in the way of any.
const ALL: &str = ", made AS (SELECT * FROM input)";
const SOME: &str = ", made AS (SELECT input.* FROM input JOIN task USING (id))";

const BELONGINGS: &str = ", payload AS (
    INSERT INTO kodus_workflow.task_inputs (task_id, payload)
    SELECT id, payload::jsonb FROM made
), event AS (
    INSERT INTO kodus_workflow.task_events
        (id, task_id, status, state, detail, actor, version)
    SELECT event, id, 'PENDING', 'Queued', detail::jsonb, 'API', 0 FROM made
)";

const OUTBOX: &str = ", outbox AS (
    INSERT INTO kodus_workflow.task_outbox (id, task_id, type, next_at)
    SELECT event, id, type, now() + make_interval(secs => $13) FROM made WHERE delay IS NULL
)";

const BELL: &str = ", bell AS (
    SELECT pg_notify($14, $15) FROM made WHERE delay IS NULL LIMIT 1
)";

const ANSWER: &str = "
SELECT id FROM task";
/// Read, so that it rings.
const RUNG: &str = " LEFT JOIN bell ON true";

/// The statement with the parts that these rows need: each costs planning time.
///
/// Keys before tasks, each in the order of what is unique: creators that want the same ones wait
/// for each other, and never in a circle.
fn statement(input: &[&NewRow], along: Along) -> String {
    let with_keys = input.iter().any(|row| row.key.is_some());
    let with_hashes = input.iter().any(|row| row.input_hash.is_some());
    let some = with_keys || with_hashes;
    let parts = [
        (INPUT, true),
        (KEYS, with_keys),
        (TASKS, true),
        (WITH_THEIR_KEYS, with_keys),
        (BY_HASH, with_hashes),
        (MADE, true),
        (if some { SOME } else { ALL }, true),
        (BELONGINGS, true),
        (OUTBOX, along.announce.is_some()),
        (BELL, along.ring),
        (ANSWER, true),
        (RUNG, along.ring),
    ];
    parts.into_iter().filter_map(|(part, is_needed)| is_needed.then_some(part)).collect()
}

/// A key whose task is not there (it lost against an input hash, or is gone) goes over to the
/// task of the hash.
const EXISTING: &str = "
WITH found AS MATERIALIZED (
    SELECT i.id, i.key, i.fingerprint = k.fingerprint AS is_same, k.task_id AS of_key,
           EXISTS (SELECT 1 FROM kodus_workflow.tasks WHERE id = k.task_id) AS is_there,
           t.id AS of_hash
    FROM unnest($1::uuid[], $2::text[], $3::bpchar[], $4::text[], $5::bpchar[])
        AS i(id, type, input_hash, key, fingerprint)
    LEFT JOIN kodus_workflow.tasks t ON t.type = i.type AND t.input_hash = i.input_hash
    LEFT JOIN kodus_workflow.task_keys k ON k.key = i.key
), moved AS (
    UPDATE kodus_workflow.task_keys k SET task_id = found.of_hash FROM found
    WHERE k.key = found.key AND k.task_id = found.of_key AND found.is_same
      AND NOT found.is_there AND found.of_hash IS NOT NULL
)
SELECT id, is_same, of_key, is_there, of_hash FROM found";

const REUSED: &str = "
SELECT k.key FROM unnest($1::text[], $2::bpchar[]) WITH ORDINALITY AS i(key, fingerprint, place)
JOIN kodus_workflow.task_keys k ON k.key = i.key AND k.fingerprint <> i.fingerprint
ORDER BY place LIMIT 1";

#[async_trait]
impl Creates for Postgres {
    async fn create(&self, input: Vec<NewRow>, along: Along) -> Result<Vec<Made>> {
        if input.len() > 1 {
            self.refuse_reused_keys(&input).await?;
        }
        if self.insert_by_copy(&input, along).await? {
            return Ok(vec![Made::New; input.len()]);
        }
        let mut made: HashMap<TaskId, Made> = HashMap::with_capacity(input.len());
        let mut open: Vec<&NewRow> = input.iter().collect();
        for _ in 0..TRIES {
            let new = self.insert_once(&open, along).await?;
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
}

impl Postgres {
    /// Before any is made: the others of a refused call must not be. A single one needs no such
    /// look; its statement makes nothing then.
    async fn refuse_reused_keys(&self, input: &[NewRow]) -> Result<()> {
        let used: Vec<&Key> = input.iter().filter_map(|row| row.key.as_ref()).collect();
        if used.is_empty() {
            return Ok(());
        }
        let mut first: HashMap<&str, &str> = HashMap::new();
        for key in &used {
            if *first.entry(&key.key).or_insert(&key.fingerprint) != key.fingerprint {
                return Err(Error::KeyReused(key.key.clone()));
            }
        }
        let operation = "look for keys that were used before";
        let (keys, prints): (Vec<&str>, Vec<&str>) =
            used.iter().map(|key| (key.key.as_str(), key.fingerprint.as_str())).unzip();
        let params = [(&keys as _, Type::TEXT_ARRAY), (&prints as _, Type::BPCHAR_ARRAY)];
        let answer = self.query(input.len(), operation, REUSED, &params).await?;
        match rows(operation, &answer, |row| row.try_get(0))?.pop() {
            Some(key) => Err(Error::KeyReused(key)),
            None => Ok(()),
        }
    }

    async fn insert_once(&self, input: &[&NewRow], along: Along) -> Result<Vec<TaskId>> {
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
        let lease = along.announce.unwrap_or_default().as_secs_f64();
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
            (&lease as _, Type::FLOAT8),
            (&self.channel as _, Type::TEXT),
            (&bell::WORK as _, Type::TEXT),
        ];
        let sql = statement(input, along);
        let answer = self.query(input.len(), operation, &sql, &params).await?;
        rows(operation, &answer, |row| Ok(TaskId(row.try_get(0)?)))
    }

    async fn existing(&self, input: &[&NewRow]) -> Result<HashMap<TaskId, Made>> {
        let operation = "find the existing task";
        let ids: Vec<Uuid> = input.iter().map(|row| row.id.0).collect();
        let kinds: Vec<&str> = input.iter().map(|row| row.kind.as_str()).collect();
        let hashes: Vec<Option<&str>> = input.iter().map(|row| row.input_hash.as_deref()).collect();
        let keys: Vec<Option<&str>> =
            input.iter().map(|row| row.key.as_ref().map(|key| key.key.as_str())).collect();
        let prints: Vec<Option<&str>> =
            input.iter().map(|row| row.key.as_ref().map(|key| key.fingerprint.as_str())).collect();
        let params = [
            (&ids as _, Type::UUID_ARRAY),
            (&kinds as _, Type::TEXT_ARRAY),
            (&hashes as _, Type::BPCHAR_ARRAY),
            (&keys as _, Type::TEXT_ARRAY),
            (&prints as _, Type::BPCHAR_ARRAY),
        ];
        let answer = self.pg.query(operation, EXISTING, &params).await?;
        let found = rows(operation, &answer, |row| {
            let (of_key, of_hash): (Option<Uuid>, Option<Uuid>) =
                (row.try_get(2)?, row.try_get(4)?);
            let found = Found {
                is_same: row.try_get(1)?,
                of_key: of_key.map(TaskId),
                is_there: row.try_get(3)?,
                of_hash: of_hash.map(TaskId),
            };
            Ok((TaskId(row.try_get(0)?), found))
        })?;
        let found: HashMap<TaskId, Found> = found.into_iter().collect();
        let mut all = HashMap::with_capacity(input.len());
        for row in input {
            if let Some(made) = made(row, &found)? {
                all.insert(row.id, made);
            }
        }
        Ok(all)
    }
}

/// What a row that was not made has met.
struct Found {
    /// Whether its key came with the same request.
    is_same: Option<bool>,
    of_key: Option<TaskId>,
    is_there: bool,
    of_hash: Option<TaskId>,
}

/// `None` where nothing stands in its way any more.
fn made(row: &NewRow, all: &HashMap<TaskId, Found>) -> Result<Option<Made>> {
    let Some(found) = all.get(&row.id) else { return Ok(None) };
    if let (Some(false), Some(key)) = (found.is_same, &row.key) {
        return Err(Error::KeyReused(key.key.clone()));
    }
    let by_key = found.of_key.filter(|_| found.is_there);
    let task = by_key
        .or(found.of_hash)
        // The key is that of another row of this call, which met the task of its hash.
        .or_else(|| all.get(&found.of_key?).and_then(|first| first.of_hash))
        .or_else(|| found.of_key.filter(|task| *task != row.id));
    Ok(task.map(Made::Existing))
}
