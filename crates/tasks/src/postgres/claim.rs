//! The claim is the delivery: one statement locks the best waiting tasks, marks them, writes
//! their events and returns them with their inputs. The two partial indexes hold only what
//! waits, so the cost does not grow with the table or the backlog. Of tasks that became due the
//! index knows only the time: the order of priorities holds among the thousand that are due for
//! longest, which is all of them but after an outage.

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::{ToSql, Type};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Postgres, rows};
use crate::error::Result;
use crate::model::{Claimed, ProcessId, TaskId};
use crate::store::{Claim, Claims};

/// `{kinds}` and `{limit}` are numbers in the text: of parameters the planner would guess that they
/// are large, and plan a prepared statement anew each time.
const BEST: &str = "
WITH kind AS (
    SELECT name FROM unnest($1::text[]) AS k(name) LIMIT {kinds}
), ready AS (
    SELECT t.*
    FROM kind
    CROSS JOIN LATERAL (
        SELECT ctid AS row, id, priority FROM kodus_workflow.tasks
        WHERE type = kind.name AND status = 'PENDING' AND run_at IS NULL
        ORDER BY priority DESC, id LIMIT {limit} FOR UPDATE SKIP LOCKED
    ) t
), due AS (
    SELECT t.*
    FROM kind
    CROSS JOIN LATERAL (
        SELECT ctid AS row, id, priority FROM kodus_workflow.tasks
        WHERE status = 'PENDING' AND run_at <= now() AND id = ANY (ARRAY(
            SELECT id FROM kodus_workflow.tasks
            WHERE type = kind.name AND status = 'PENDING' AND run_at <= now()
            ORDER BY run_at LIMIT {limit} + 1000))
        ORDER BY priority DESC, id LIMIT {limit} FOR UPDATE SKIP LOCKED
    ) t
), pick AS MATERIALIZED (
    SELECT row, row_number() OVER (ORDER BY priority DESC, id) AS place
    FROM (SELECT * FROM ready UNION ALL SELECT * FROM due) waiting
    ORDER BY priority DESC, id LIMIT {limit}
)";

const THIS: &str = "
WITH pick AS MATERIALIZED (
    SELECT ctid AS row, 1 AS place FROM kodus_workflow.tasks
    WHERE id = $1 AND status = 'PENDING' FOR UPDATE
)";

/// Goes on after what picked the rows: $2 is the process, $3 the ids of the events.
const TAKE: &str = r#"
, token AS MATERIALIZED (
    SELECT nextval('kodus_workflow.task_tokens') AS value WHERE EXISTS (SELECT 1 FROM pick)
), taken AS (
    UPDATE kodus_workflow.tasks t SET
        status = 'IN_PROGRESS', state = 'Started', progress = 0, run_at = NULL,
        attempts = t.attempts + 1, version = t.version + 1, process = $2,
        token = (SELECT value FROM token),
        updated_at = GREATEST(now(), t.updated_at + interval '1 microsecond')
    FROM pick WHERE t.ctid = pick.row
    RETURNING t.id, t.type, t.metadata, t.priority, t.attempts, t.retry_count, t.max_retries,
              t.token, t.version, t.created_at, t.updated_at, pick.place
), event AS (
    INSERT INTO kodus_workflow.task_events
        (id, task_id, status, state, detail, actor, created_at, version)
    SELECT ($3::uuid[])[taken.place::int4], taken.id, 'IN_PROGRESS', 'Started',
           ('{"action":"start","process":"' || $2 || '","attempt":' || taken.attempts || '}')::jsonb,
           'WORKER', taken.updated_at, taken.version
    FROM taken
)
SELECT taken.id, taken.type, coalesce(input.payload::text, 'null'), taken.metadata, taken.priority,
       taken.attempts, taken.retry_count, taken.max_retries, taken.token, taken.version,
       taken.created_at
FROM taken LEFT JOIN kodus_workflow.task_inputs input ON input.task_id = taken.id
ORDER BY taken.place"#;

#[async_trait]
impl Claims for Postgres {
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>> {
        let best = BEST
            .replace("{kinds}", &claim.kinds.len().to_string())
            .replace("{limit}", &claim.limit.to_string());
        let kinds = (&claim.kinds as _, Type::TEXT_ARRAY);
        self.take(&best, kinds, claim.process, claim.limit).await
    }

    async fn claim_this(&self, id: TaskId, process: ProcessId) -> Result<Option<Claimed>> {
        Ok(self.take(THIS, (&id.0 as _, Type::UUID), process, 1).await?.pop())
    }
}

impl Postgres {
    /// Takes what `pick` finds with its one parameter, at most `limit`.
    async fn take(
        &self,
        pick: &str,
        which: (&(dyn ToSql + Sync), Type),
        process: ProcessId,
        limit: usize,
    ) -> Result<Vec<Claimed>> {
        let operation = "claim tasks";
        let events: Vec<Uuid> = (0..limit).map(|_| self.pg.clock().new_id()).collect();
        let params = [which, (&process.0 as _, Type::UUID), (&events as _, Type::UUID_ARRAY)];
        let sql = format!("{pick}{TAKE}");
        let answer = self.pg.query_prepared(operation, &sql, &params).await?;
        rows(operation, &answer, |row| {
            let payload: String = row.try_get(2)?;
            Ok(Claimed {
                id: TaskId(row.try_get(0)?),
                kind: row.try_get(1)?,
                payload: RawValue::from_string(payload).unwrap_or_default(),
                metadata: row.try_get(3)?,
                priority: row.try_get(4)?,
                attempts: row.try_get(5)?,
                retry_count: row.try_get(6)?,
                max_retries: row.try_get(7)?,
                token: row.try_get(8)?,
                version: row.try_get(9)?,
                created_at: row.try_get(10)?,
            })
        })
    }
}
