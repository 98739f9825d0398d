//! What has not been told yet, and how far has been read.
//!
//! The one writer commits in the order of its numbers, so that no end of a task appears behind the
//! reader. A time is taken before the writer's turn comes: the log is read as on PostgreSQL.

use std::collections::HashMap;

use jiff::Timestamp;
use lavra_db::duckdb::{self, Connection, Row};
use lavra_db::{micros, timestamp};
use lavra_extract::task::Extract;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{EventKind, LogId, MissionId};
use lavra_tasks::Handler;
use lavra_tasks::model::{DeadLetterId, EventId, TaskId};
use lavra_tasks::store::Cursor;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{DuckDb, all, exists, run, set};
use crate::EPISODE;
use crate::deliver::Delivery;
use crate::error::Result;
use crate::store::{Ended, Logged, Position, Reading, Seen, Unreadable};

const POSITION: &str = "
SELECT transaction, event, epoch_us(floor), mark, epoch_us(marked_at)
FROM lavra.webhook_position WHERE workflow = 'kodus_workflow'";

const END: &str = "SELECT coalesce(max(transaction), 0) FROM kodus_workflow.task_events";

const ENDED: &str = "
SELECT e.id, e.task_id, t.type, e.status = 'FAILED', (e.detail->>'error'), t.attempts,
       epoch_us(e.created_at), e.transaction, e.version
FROM (SELECT * FROM kodus_workflow.task_events
      WHERE transaction >= $1 AND transaction <= $3 AND status IN ('COMPLETED', 'FAILED')
        AND (transaction > $1 OR id > $2::UUID)) e
JOIN kodus_workflow.tasks t ON t.id = e.task_id
WHERE (e.status = 'FAILED' OR t.type = $4) AND t.type <> $5
ORDER BY e.transaction, e.id LIMIT $6";

/// What an extraction says of itself stands in one of the two events before its last one.
const SAID: &str = "
SELECT e.task_id, e.version, e.detail::VARCHAR FROM kodus_workflow.task_events e
WHERE e.task_id IN (SELECT unnest($1::JSON::UUID[])) AND (e.detail->'summary') IS NOT NULL";

/// Each worker says once that no proxy is free. The first to say so after a while of silence begins
/// an episode; the others are part of it.
const LOGGED: &str = "
WITH failed AS (
    SELECT id, event, mission_id, details, epoch_us(timestamp) AS happened FROM public.mission_logs
    WHERE timestamp >= make_timestamp($1) AND event = $3
), exhausted AS (
    SELECT id, event, mission_id, details, epoch_us(timestamp) AS happened,
           lag(epoch_us(timestamp)) OVER (ORDER BY timestamp, id) AS before
    FROM public.mission_logs
    WHERE timestamp >= make_timestamp($1::BIGINT - $6) AND event = $4
      AND (details->>'error_code') = $5
), both_kinds AS (
    SELECT id, event, mission_id, details, happened FROM failed
    UNION ALL
    SELECT id, event, mission_id, details, happened FROM exhausted
    WHERE happened >= $1 AND (before IS NULL OR before < happened - $6)
)
SELECT id, event, mission_id, details::VARCHAR, happened FROM both_kinds
WHERE id NOT IN (SELECT id FROM lavra.webhook_told WHERE workflow = 'kodus_workflow')
ORDER BY happened, id LIMIT $2";

const UNREADABLE: &str = "
SELECT id, reason, epoch_us(created_at) FROM kodus_workflow.task_dead_letters
WHERE task_id IS NULL AND created_at >= make_timestamp($1)
  AND id::VARCHAR NOT IN (SELECT id FROM lavra.webhook_told WHERE workflow = 'kodus_workflow')
ORDER BY created_at, id LIMIT $2";

const REMEMBER: &str = r#"
INSERT INTO lavra.webhook_told (workflow, id, happened_at)
SELECT 'kodus_workflow', new.id, make_timestamp(new.happened)
FROM (SELECT unnest(from_json($1::JSON, '[{"id": "VARCHAR", "happened": "BIGINT"}]'),
             recursive := true)) new
WHERE new.id NOT IN (SELECT id FROM lavra.webhook_told WHERE workflow = 'kodus_workflow')"#;

const FORGET: &str = "
DELETE FROM lavra.webhook_told WHERE workflow = 'kodus_workflow' AND happened_at < make_timestamp($1)";

/// Only ever forward: one who was frozen may come with what was true before.
const MOVE: &str = "
UPDATE lavra.webhook_position SET
    transaction = CASE WHEN (transaction, event) < ($1, $2::UUID) THEN $1 ELSE transaction END,
    event = CASE WHEN (transaction, event) < ($1, $2::UUID) THEN $2::UUID ELSE event END,
    floor = greatest(floor, make_timestamp($3)), marked_at = greatest(marked_at, make_timestamp($4))
WHERE workflow = 'kodus_workflow'";

const ACTIVE: &str = "SELECT 1 FROM lavra.webhooks WHERE workflow = 'kodus_workflow' AND active";

/// A row of [`ENDED`], not yet with what it said of itself.
struct Found {
    ended: Ended,
    transaction: i64,
    version: i32,
}

#[derive(Serialize)]
struct Remembered {
    id: String,
    happened: i64,
}

fn position(row: &Row<'_>) -> duckdb::Result<Position> {
    Ok(Position {
        ended: Cursor { transaction: row.get(0)?, event: EventId(row.get(1)?) },
        floor: timestamp(row.get(2)?),
        mark: row.get(3)?,
        marked_at: timestamp(row.get(4)?),
    })
}

fn ended(row: &Row<'_>) -> duckdb::Result<Found> {
    let ended = Ended {
        event: EventId(row.get(0)?),
        task: TaskId(row.get(1)?),
        kind: row.get(2)?,
        has_failed: row.get(3)?,
        error: row.get(4)?,
        attempts: row.get(5)?,
        said: None,
        at: timestamp(row.get(6)?),
    };
    Ok(Found { ended, transaction: row.get(7)?, version: row.get(8)? })
}

fn logged(row: &Row<'_>) -> duckdb::Result<Logged> {
    let event: String = row.get(1)?;
    let mission: Option<String> = row.get(2)?;
    let details: Option<String> = row.get(3)?;
    let details: Option<Value> = details.and_then(|text| serde_json::from_str(&text).ok());
    Ok(Logged {
        id: LogId(row.get(0)?),
        event: if event == EventKind::SessionFailed.as_str() {
            EventKind::SessionFailed
        } else {
            EventKind::MissionFailed
        },
        mission: mission.map(MissionId),
        details: details.and_then(|d| d.as_object().cloned()).unwrap_or_default(),
        at: timestamp(row.get(4)?),
    })
}

fn unreadable(row: &Row<'_>) -> duckdb::Result<Unreadable> {
    Ok(Unreadable {
        id: DeadLetterId(row.get(0)?),
        reason: row.get(1)?,
        at: timestamp(row.get(2)?),
    })
}

/// The statements of a look, with this file's schema.
struct Look {
    position: String,
    end: String,
    ended: String,
    said: String,
    logged: String,
    unreadable: String,
}

impl Look {
    fn ended(
        &self,
        connection: &Connection,
        position: Position,
        limit: usize,
    ) -> duckdb::Result<(Vec<Ended>, Cursor)> {
        // Before the rows are read, so that none is passed by.
        let end = all(connection, &self.end, (), |row| row.get(0))?;
        let end: i64 = end.first().copied().unwrap_or(0);
        let Cursor { transaction, event } = position.ended;
        let kinds = (Extract::KIND, Delivery::KIND);
        let params = duckdb::params![transaction, event.0, end, kinds.0, kinds.1, limit as i64];
        let found = all(connection, &self.ended, params, ended)?;
        let last = found.last().filter(|_| found.len() == limit);
        let cursor = match last {
            Some(last) => Cursor { transaction: last.transaction, event: last.ended.event },
            None => Cursor { transaction: end, event: EventId(Uuid::max()) },
        };
        Ok((self.with_words(connection, found)?, cursor.max(position.ended)))
    }

    fn with_words(&self, connection: &Connection, found: Vec<Found>) -> duckdb::Result<Vec<Ended>> {
        let is_extraction = |row: &&Found| row.ended.kind == Extract::KIND;
        let tasks: Vec<Uuid> = found.iter().filter(is_extraction).map(|r| r.ended.task.0).collect();
        let mut said: HashMap<(TaskId, i32), Value> = HashMap::new();
        if !tasks.is_empty() {
            for (task, version, text) in all(connection, &self.said, (set(&tasks)?,), |row| {
                let text: String = row.get(2)?;
                Ok((TaskId(row.get(0)?), row.get(1)?, text))
            })? {
                if let Ok(detail) = serde_json::from_str(&text) {
                    said.insert((task, version), detail);
                }
            }
        }
        let with_words = found.into_iter().map(|Found { mut ended, version, .. }| {
            let before = [version - 1, version - 2];
            ended.said = before.iter().find_map(|v| said.get(&(ended.task, *v)).cloned());
            ended
        });
        Ok(with_words.collect())
    }

    fn logged(
        &self,
        connection: &Connection,
        position: Position,
        limit: usize,
    ) -> duckdb::Result<Vec<Logged>> {
        let params = duckdb::params![
            micros(position.floor),
            limit as i64,
            EventKind::MissionFailed.as_str(),
            EventKind::SessionFailed.as_str(),
            ErrorCode::Error501.as_str(),
            EPISODE.as_micros() as i64,
        ];
        all(connection, &self.logged, params, logged)
    }
}

impl DuckDb {
    pub(super) async fn read_on(&self, limit: usize) -> Result<Option<Reading>> {
        let look = Look {
            position: self.sql(POSITION),
            end: self.sql(END),
            ended: self.sql(ENDED),
            said: self.sql(SAID),
            logged: self.sql(LOGGED),
            unreadable: self.sql(UNREADABLE),
        };
        // No transaction is open beside the writer's, and what it commits is visible at once.
        let seen = Seen { ended_below: 0, begun_below: 0, at: timestamp(self.now()) };
        let late = self.late;
        let job = move |connection: &Connection| {
            let Some(position) = all(connection, &look.position, (), position)?.pop() else {
                return Ok(None);
            };
            let logged = look.logged(connection, position, limit)?;
            let params = (micros(position.floor), limit as i64);
            let unreadable = all(connection, &look.unreadable, params, unreadable)?;
            let (ended, cursor) = look.ended(connection, position, limit)?;
            let window_is_full = logged.len() == limit || unreadable.len() == limit;
            let has_more = window_is_full || ended.len() == limit;
            let risen = if window_is_full { position } else { position.risen(seen, late) };
            let position = Position { ended: cursor, ..risen };
            Ok(Some(Reading { logged, ended, unreadable, has_more, position }))
        };
        Ok(self.duck.read("look for what webhooks are to be told", job).await?)
    }

    pub(super) async fn move_to(&self, reading: &Reading) -> Result<()> {
        let remembered: Vec<Remembered> =
            reading.to_remember().map(|(id, at)| Remembered { id, happened: micros(at) }).collect();
        let position = reading.position;
        let statements = [REMEMBER, FORGET, MOVE].map(|sql| self.sql(sql));
        let job = move |tx: &Connection| {
            let [remember, forget, advance] = &statements;
            if !remembered.is_empty() {
                run(tx, remember, (set(&remembered)?,))?;
            }
            run(tx, forget, (micros(position.floor),))?;
            run(tx, advance, place(position.ended, position.floor, position.marked_at))
        };
        self.duck.write("note what webhooks were told", job).await?;
        Ok(())
    }

    pub(super) async fn move_to_the_end(&self) -> Result<()> {
        let (active, end, advance) = (self.sql(ACTIVE), self.sql(END), self.sql(MOVE));
        let now = timestamp(self.now());
        let late = self.late;
        let job = move |tx: &Connection| {
            if exists(tx, &active, ())? {
                return Ok(());
            }
            let end = all(tx, &end, (), |row| row.get(0))?;
            let end = Cursor {
                transaction: end.first().copied().unwrap_or(0),
                event: EventId(Uuid::max()),
            };
            run(tx, &advance, place(end, now.checked_sub(late).unwrap_or(now), now))
        };
        Ok(self.duck.write("pass by what no webhook is told", job).await?)
    }
}

fn place(ended: Cursor, floor: Timestamp, marked_at: Timestamp) -> (i64, Uuid, i64, i64) {
    (ended.transaction, ended.event.0, micros(floor), micros(marked_at))
}
