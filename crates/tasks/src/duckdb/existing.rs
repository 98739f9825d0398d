//! The tasks that a creation may meet: those of its keys, and those of its input hashes.

use std::collections::HashMap;

use lavra_db::duckdb::{self, Connection};
use serde::Serialize;

use super::{DuckDb, all, run, set};
use crate::model::TaskId;
use crate::store::NewRow;

const KEYS: &str = "
SELECT k.key, k.fingerprint, k.task_id, t.id IS NOT NULL
FROM kodus_workflow.task_keys k LEFT JOIN kodus_workflow.tasks t ON t.id = k.task_id
WHERE k.key IN (SELECT unnest($1::JSON::VARCHAR[]))";

const BY_HASH: &str = r#"
SELECT asked.id, t.id
FROM (SELECT unnest(from_json($1::JSON, '[{"id": "UUID", "type": "VARCHAR",
          "input_hash": "VARCHAR"}]'), recursive := true)) asked
JOIN kodus_workflow.tasks t ON t.type = asked.type AND t.input_hash = asked.input_hash"#;

const KEEP: &str = r#"
INSERT INTO kodus_workflow.task_keys (key, fingerprint, task_id, created_at)
SELECT key, fingerprint, task_id, make_timestamp($2)
FROM (SELECT unnest(from_json($1::JSON, '[{"key": "VARCHAR", "fingerprint": "VARCHAR",
          "task_id": "UUID"}]'), recursive := true))
ON CONFLICT (key) DO UPDATE SET task_id = excluded.task_id"#;

pub(super) struct Existing {
    keys: String,
    by_hash: String,
    keep: String,
}

/// A key that the file has, and its task, which may have been removed since.
#[derive(Debug)]
pub(super) struct KnownKey {
    pub(super) fingerprint: String,
    pub(super) task: TaskId,
    pub(super) is_there: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Kept<'a> {
    pub(super) key: &'a str,
    pub(super) fingerprint: &'a str,
    pub(super) task_id: TaskId,
}

#[derive(Serialize)]
struct Asked<'a> {
    id: TaskId,
    #[serde(rename = "type")]
    kind: &'a str,
    input_hash: &'a str,
}

impl Existing {
    pub(super) fn new(store: &DuckDb) -> Self {
        Self { keys: store.sql(KEYS), by_hash: store.sql(BY_HASH), keep: store.sql(KEEP) }
    }

    pub(super) fn keys(
        &self,
        tx: &Connection,
        rows: &[NewRow],
    ) -> duckdb::Result<HashMap<String, KnownKey>> {
        let keys: Vec<&str> =
            rows.iter().filter_map(|row| Some(row.key.as_ref()?.key.as_str())).collect();
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let found = all(tx, &self.keys, (set(&keys)?,), |row| {
            let task = TaskId(row.get(2)?);
            let known = KnownKey { fingerprint: row.get(1)?, task, is_there: row.get(3)? };
            Ok((row.get(0)?, known))
        })?;
        Ok(found.into_iter().collect())
    }

    /// By the id of each row, the task that has its type and hash.
    pub(super) fn by_hash(
        &self,
        tx: &Connection,
        rows: &[&NewRow],
    ) -> duckdb::Result<HashMap<TaskId, TaskId>> {
        let asked = rows.iter().filter_map(|row| {
            let input_hash = row.input_hash.as_deref()?;
            Some(Asked { id: row.id, kind: &row.kind, input_hash })
        });
        let asked: Vec<Asked<'_>> = asked.collect();
        if asked.is_empty() {
            return Ok(HashMap::new());
        }
        let found = all(tx, &self.by_hash, (set(&asked)?,), |row| {
            Ok((TaskId(row.get(0)?), TaskId(row.get(1)?)))
        })?;
        Ok(found.into_iter().collect())
    }

    pub(super) fn keep(&self, tx: &Connection, keys: &[Kept<'_>], now: i64) -> duckdb::Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        run(tx, &self.keep, (set(keys)?, now))
    }
}
