//! The claim is the delivery: the best waiting tasks are marked and returned with their inputs.
//! Finding them is a scan of what waits, whatever the size of the claim, so claims take sets.

use async_trait::async_trait;
use lavra_db::duckdb::{self, Connection, Row};
use lavra_db::timestamp;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::append::{self, NewEvent};
use super::read::json_at;
use super::{DuckDb, all, run, set};
use crate::error::Result;
use crate::model::{Actor, Claimed, ProcessId, Status, TaskId, Token};
use crate::store::{Claim, Claims};

/// `{which}` is one of the two below.
const WAITING: &str = "
WITH best AS MATERIALIZED (
    SELECT id, type, metadata, priority, attempts, retry_count, max_retries, version,
           epoch_us(created_at) AS created, epoch_us(updated_at) AS updated
    FROM kodus_workflow.tasks
    WHERE status = 'PENDING' AND {which}
)
SELECT best.id, type, coalesce(payload, 'null'), metadata, priority, attempts, retry_count,
       max_retries, version, created, updated
FROM best LEFT JOIN kodus_workflow.task_inputs input ON input.task_id = best.id
ORDER BY priority DESC, best.id";

const BEST: &str = "type IN (SELECT unnest($1::JSON::VARCHAR[]))
      AND (run_at IS NULL OR epoch_us(run_at) <= $2)
    ORDER BY priority DESC, id LIMIT $3";

const THIS: &str = "id = $1::UUID";

const TAKE: &str = r#"
UPDATE kodus_workflow.tasks t SET
    status = 'IN_PROGRESS', state = 'Started', progress = 0, run_at = NULL,
    attempts = t.attempts + 1, version = t.version + 1, process = $2::UUID, token = $3,
    updated_at = make_timestamp(taken.updated)
FROM (SELECT unnest(from_json($1::JSON, '[{"id": "UUID", "updated": "BIGINT"}]'),
                    recursive := true)) taken
WHERE t.id = taken.id"#;

/// A waiting task as it becomes in the claim, with the time of its last change.
struct Best {
    claimed: Claimed,
    updated: i64,
}

#[derive(Serialize)]
struct Taken {
    id: TaskId,
    updated: i64,
}

impl From<&Best> for Taken {
    fn from(best: &Best) -> Self {
        Self { id: best.claimed.id, updated: best.updated }
    }
}

#[async_trait]
impl Claims for DuckDb {
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>> {
        if claim.limit == 0 || claim.kinds.is_empty() {
            return Ok(Vec::new());
        }
        let kinds = set(&claim.kinds).unwrap_or_default();
        let (now, limit) = (self.now(), claim.limit as i64);
        self.take(claim.process, claim.limit, BEST, move |tx, sql| {
            all(tx, sql, (&kinds, now, limit), waiting)
        })
        .await
    }

    async fn claim_this(&self, id: TaskId, process: ProcessId) -> Result<Option<Claimed>> {
        let find = move |tx: &Connection, sql: &str| all(tx, sql, (id.0,), waiting);
        Ok(self.take(process, 1, THIS, find).await?.pop())
    }
}

impl DuckDb {
    /// Takes what `find` finds of the waiting tasks by `which`, at most `limit`.
    async fn take(
        &self,
        process: ProcessId,
        limit: usize,
        which: &str,
        find: impl Fn(&Connection, &str) -> duckdb::Result<Vec<Best>> + Send + 'static,
    ) -> Result<Vec<Claimed>> {
        let (waiting, take) = (self.sql(&WAITING.replace("{which}", which)), self.sql(TAKE));
        let now = self.now();
        let events: Vec<Uuid> = (0..limit).map(|_| self.duck.clock().new_id()).collect();
        let duck = self.duck.clone();
        let job = move |tx: &Connection| {
            let found = find(tx, &waiting)?;
            if found.is_empty() {
                return Ok(Vec::new());
            }
            let token = duck.next_sequence();
            let found: Vec<Best> = found.into_iter().map(|best| best.taken(token, now)).collect();
            let rows: Vec<Taken> = found.iter().map(Taken::from).collect();
            run(tx, &take, (set(&rows)?, process.0, token))?;
            let started = found.iter().zip(&events).map(|(best, id)| best.event(*id, process));
            append::events(tx, duck.schema().name(), duck.next_sequence(), started)?;
            Ok(found.into_iter().map(|best| best.claimed).collect())
        };
        Ok(self.duck.write("claim tasks", job).await?)
    }
}

/// Reads a row of [`WAITING`] as the claim makes it; the token is not known yet.
fn waiting(row: &Row<'_>) -> duckdb::Result<Best> {
    let (attempts, version): (i32, i32) = (row.get(5)?, row.get(8)?);
    let claimed = Claimed {
        id: TaskId(row.get(0)?),
        kind: row.get(1)?,
        payload: RawValue::from_string(row.get(2)?).unwrap_or_default(),
        metadata: json_at(row, 3)?,
        priority: row.get(4)?,
        attempts: attempts + 1,
        retry_count: row.get(6)?,
        max_retries: row.get(7)?,
        token: 0,
        version: version + 1,
        created_at: timestamp(row.get(9)?),
    };
    Ok(Best { claimed, updated: row.get(10)? })
}

impl Best {
    fn taken(mut self, token: Token, now: i64) -> Self {
        self.claimed.token = token;
        self.updated = now.max(self.updated + 1);
        self
    }

    fn event(&self, id: Uuid, process: ProcessId) -> NewEvent<'static> {
        let attempt = self.claimed.attempts;
        NewEvent {
            id,
            task: self.claimed.id,
            status: Status::InProgress,
            state: "Started",
            detail: json!({ "action": "start", "attempt": attempt, "process": process })
                .to_string(),
            actor: Actor::Worker,
            created: self.updated,
            version: self.claimed.version,
        }
    }
}
