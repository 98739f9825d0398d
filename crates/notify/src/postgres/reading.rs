//! What has not been told yet, and how far has been read.

use lavra_db::tokio_postgres::types::Type;
use lavra_extract::task::Extract;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{EventKind, LogId, MissionId};
use lavra_tasks::Handler;
use lavra_tasks::model::{DeadLetterId, EventId, TaskId};
use lavra_tasks::store::Cursor;
use serde_json::Value;
use uuid::Uuid;

use super::{Postgres, get};
use crate::EPISODE;
use crate::deliver::Delivery;
use crate::error::Result;
use crate::store::{Ended, Logged, Position, Reading, Seen, Unreadable};

const OPERATION: &str = "look for what webhooks are to be told";

/// The time is that of the transaction's start, and so not later than the snapshot.
const POSITION: &str = "
SELECT p.transaction, p.event, p.floor, p.mark, p.marked_at,
       pg_snapshot_xmin(s)::text::int8, pg_snapshot_xmax(s)::text::int8, now()
FROM lavra.webhook_position p, pg_current_snapshot() s
WHERE p.workflow = 'kodus_workflow'";

/// An extraction says how it ended with one of the two events before its last one.
const ENDED: &str = "
SELECT e.id, e.task_id, t.type, e.status = 'FAILED', e.detail->>'error', t.attempts, s.detail,
       e.created_at, e.transaction::text::int8
FROM kodus_workflow.task_events e
JOIN kodus_workflow.tasks t ON t.id = e.task_id
LEFT JOIN LATERAL (
    SELECT s.detail FROM kodus_workflow.task_events s
    WHERE t.type = $4 AND s.task_id = e.task_id
      AND s.version BETWEEN e.version - 2 AND e.version - 1 AND s.detail ? 'summary'
    ORDER BY s.version DESC LIMIT 1
) s ON true
WHERE e.transaction >= $1::text::xid8 AND e.transaction < $3::text::xid8
  AND (e.transaction, e.id) > ($1::text::xid8, $2)
  AND e.status IN ('COMPLETED', 'FAILED') AND (e.status = 'FAILED' OR t.type = $4) AND t.type <> $5
ORDER BY e.transaction, e.id LIMIT $6";

/// Each worker says once that no proxy is free. The first to say so after a while of silence begins
/// an episode; the others are part of it.
const LOGGED: &str = "
WITH failed AS (
    SELECT id, event::text, mission_id, details, timestamp FROM public.mission_logs
    WHERE timestamp >= $1 AND event::text = $3
), exhausted AS (
    SELECT id, event::text, mission_id, details, timestamp,
           lag(timestamp) OVER (ORDER BY timestamp, id) AS before
    FROM public.mission_logs
    WHERE timestamp >= $1::timestamptz - make_interval(secs => $6)
      AND event::text = $4 AND details->>'error_code' = $5
), both_kinds AS (
    SELECT id, event, mission_id, details, timestamp FROM failed
    UNION ALL
    SELECT id, event, mission_id, details, timestamp FROM exhausted
    WHERE timestamp >= $1
      AND (before IS NULL OR before < timestamp - make_interval(secs => $6))
)
SELECT id, event, mission_id, details, timestamp FROM both_kinds b
WHERE NOT EXISTS (SELECT 1 FROM lavra.webhook_told d
                  WHERE d.workflow = 'kodus_workflow' AND d.id = b.id)
ORDER BY timestamp, id LIMIT $2";

const UNREADABLE: &str = "
SELECT l.id, l.reason, l.created_at FROM kodus_workflow.task_dead_letters l
WHERE l.task_id IS NULL AND l.created_at >= $1
  AND NOT EXISTS (SELECT 1 FROM lavra.webhook_told d
                  WHERE d.workflow = 'kodus_workflow' AND d.id = l.id::text)
ORDER BY l.created_at, l.id LIMIT $2";

/// Only ever forward: one who was frozen may come with what was true before.
const TOLD: &str = "
WITH remembered AS (
    INSERT INTO lavra.webhook_told (workflow, id, happened_at)
    SELECT 'kodus_workflow', t.id, t.happened_at
    FROM unnest($1::text[], $2::timestamptz[]) AS t(id, happened_at)
    ORDER BY t.id
    ON CONFLICT DO NOTHING
), forgotten AS (
    DELETE FROM lavra.webhook_told WHERE workflow = 'kodus_workflow' AND happened_at < $5
)
UPDATE lavra.webhook_position SET
    transaction = CASE WHEN (transaction, event) < ($3, $4) THEN $3 ELSE transaction END,
    event = CASE WHEN (transaction, event) < ($3, $4) THEN $4 ELSE event END,
    floor = GREATEST(floor, $5), mark = GREATEST(mark, $6), marked_at = GREATEST(marked_at, $7)
WHERE workflow = 'kodus_workflow'";

/// A webhook that is added from here on is told of nothing that is before.
const PASS_BY: &str = "
UPDATE lavra.webhook_position SET
    transaction = GREATEST(transaction, pg_snapshot_xmin(s)::text::int8 - 1), event = $1,
    floor = GREATEST(floor, now() - make_interval(secs => $2)),
    mark = pg_snapshot_xmax(s)::text::int8, marked_at = now()
FROM pg_current_snapshot() s
WHERE workflow = 'kodus_workflow'
  AND NOT EXISTS (SELECT 1 FROM lavra.webhooks WHERE workflow = 'kodus_workflow' AND active)";

impl Postgres {
    pub(super) async fn read_on(&self, limit: usize) -> Result<Option<Reading>> {
        let Some((position, seen)) = self.position().await? else { return Ok(None) };
        let logged = self.logged(position, limit).await?;
        let unreadable = self.unreadable(position, limit).await?;
        let (ended, cursor) = self.ended(position, seen, limit).await?;
        let window_is_full = logged.len() == limit || unreadable.len() == limit;
        let has_more = window_is_full || ended.len() == limit;
        let risen = if window_is_full { position } else { position.risen(seen, self.late) };
        let position = Position { ended: cursor, ..risen };
        Ok(Some(Reading { logged, ended, unreadable, has_more, position }))
    }

    async fn position(&self) -> Result<Option<(Position, Seen)>> {
        let rows = self.pg.query_prepared(OPERATION, POSITION, &[]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let position = Position {
            ended: Cursor {
                transaction: get(OPERATION, row, 0)?,
                event: EventId(get(OPERATION, row, 1)?),
            },
            floor: get(OPERATION, row, 2)?,
            mark: get(OPERATION, row, 3)?,
            marked_at: get(OPERATION, row, 4)?,
        };
        let seen = Seen {
            ended_below: get(OPERATION, row, 5)?,
            begun_below: get(OPERATION, row, 6)?,
            at: get(OPERATION, row, 7)?,
        };
        Ok(Some((position, seen)))
    }

    async fn logged(&self, position: Position, limit: usize) -> Result<Vec<Logged>> {
        let (limit, episode) = (limit as i64, EPISODE.as_secs_f64());
        let failed = EventKind::MissionFailed.as_str();
        let exhausted = EventKind::SessionFailed.as_str();
        let code = ErrorCode::Error501.as_str();
        let params = [
            (&position.floor as _, Type::TIMESTAMPTZ),
            (&limit as _, Type::INT8),
            (&failed as _, Type::TEXT),
            (&exhausted as _, Type::TEXT),
            (&code as _, Type::TEXT),
            (&episode as _, Type::FLOAT8),
        ];
        let rows = self.pg.query_prepared(OPERATION, LOGGED, &params).await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            let event: &str = get(OPERATION, row, 1)?;
            let mission: Option<String> = get(OPERATION, row, 2)?;
            let details: Option<Value> = get(OPERATION, row, 3)?;
            all.push(Logged {
                id: LogId(get(OPERATION, row, 0)?),
                event: if event == exhausted {
                    EventKind::SessionFailed
                } else {
                    EventKind::MissionFailed
                },
                mission: mission.map(MissionId),
                details: details.and_then(|d| d.as_object().cloned()).unwrap_or_default(),
                at: get(OPERATION, row, 4)?,
            });
        }
        Ok(all)
    }

    async fn unreadable(&self, position: Position, limit: usize) -> Result<Vec<Unreadable>> {
        let limit = limit as i64;
        let params = [(&position.floor as _, Type::TIMESTAMPTZ), (&limit as _, Type::INT8)];
        let rows = self.pg.query_prepared(OPERATION, UNREADABLE, &params).await?;
        let read = |row| {
            Ok(Unreadable {
                id: DeadLetterId(get(OPERATION, row, 0)?),
                reason: get(OPERATION, row, 1)?,
                at: get(OPERATION, row, 2)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// With the place after the last one, or after all that has ended by now.
    async fn ended(
        &self,
        position: Position,
        seen: Seen,
        limit: usize,
    ) -> Result<(Vec<Ended>, Cursor)> {
        let from = position.ended.transaction.to_string();
        let below = seen.ended_below.to_string();
        let most = limit as i64;
        let params = [
            (&from as _, Type::TEXT),
            (&position.ended.event.0 as _, Type::UUID),
            (&below as _, Type::TEXT),
            (&Extract::KIND as _, Type::TEXT),
            (&Delivery::KIND as _, Type::TEXT),
            (&most as _, Type::INT8),
        ];
        let rows = self.pg.query_prepared(OPERATION, ENDED, &params).await?;
        let mut all = Vec::with_capacity(rows.len());
        let mut cursor = Cursor { transaction: seen.ended_below - 1, event: EventId(Uuid::max()) };
        for row in &rows {
            let event = EventId(get(OPERATION, row, 0)?);
            all.push(Ended {
                event,
                task: TaskId(get(OPERATION, row, 1)?),
                kind: get(OPERATION, row, 2)?,
                has_failed: get(OPERATION, row, 3)?,
                error: get(OPERATION, row, 4)?,
                attempts: get(OPERATION, row, 5)?,
                said: get(OPERATION, row, 6)?,
                at: get(OPERATION, row, 7)?,
            });
            if rows.len() == limit {
                cursor = Cursor { transaction: get(OPERATION, row, 8)?, event };
            }
        }
        Ok((all, cursor.max(position.ended)))
    }

    pub(super) async fn move_to(&self, reading: &Reading) -> Result<()> {
        let (ids, times): (Vec<_>, Vec<_>) = reading.to_remember().unzip();
        let Position { ended, floor, mark, marked_at } = reading.position;
        let params = [
            (&ids as _, Type::TEXT_ARRAY),
            (&times as _, Type::TIMESTAMPTZ_ARRAY),
            (&ended.transaction as _, Type::INT8),
            (&ended.event.0 as _, Type::UUID),
            (&floor as _, Type::TIMESTAMPTZ),
            (&mark as _, Type::INT8),
            (&marked_at as _, Type::TIMESTAMPTZ),
        ];
        self.pg.query("note what webhooks were told", TOLD, &params).await?;
        Ok(())
    }

    pub(super) async fn move_to_the_end(&self) -> Result<()> {
        let (end, late) = (Uuid::max(), self.late.as_secs_f64());
        let params = [(&end as _, Type::UUID), (&late as _, Type::FLOAT8)];
        self.pg.query("pass by what no webhook is told", PASS_BY, &params).await?;
        Ok(())
    }
}
