//! Guarded changes of a set of tasks, with their events, results, dead letters and outbox rows,
//! in one statement. What the guard refuses leaves no trace.

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::Type;
use serde_json::Value;
use uuid::Uuid;

use super::{Postgres, rows};
use crate::error::Result;
use crate::model::Status;
use crate::store::{Write, Writes, Written};

/// `{rows}` is a number in the text, no smaller than the set: without it the planner would guess,
/// and plan a prepared statement anew each time.
const CHANGE: &str = "
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::int8[], $4::int4[], $5::text[], $6::text[],
                         $7::int2[], $8::text[], $9::int4[], $10::float8[], $11::float8[],
                         $12::int4[], $13::jsonb[], $14::jsonb[], $15::bool[], $16::uuid[])
        AS i(id, old_status, token, version, status, state, progress, error, retry_count, wait,
             stop_within, events, metadata, result, announce, row_id)
    LIMIT {rows}
), changed AS (
    UPDATE kodus_workflow.tasks t SET
        status = i.status,
        state = i.state,
        progress = CASE WHEN i.status = 'IN_PROGRESS'
                        THEN GREATEST(t.progress, i.progress) ELSE i.progress END,
        error = i.error,
        retry_count = i.retry_count,
        metadata = CASE WHEN i.metadata IS NULL THEN t.metadata ELSE t.metadata || i.metadata END,
        run_at = now() + make_interval(secs => i.wait),
        stop_by = now() + make_interval(secs => i.stop_within),
        process = CASE WHEN i.status = 'PENDING' THEN NULL ELSE t.process END,
        version = t.version + i.events,
        updated_at = GREATEST(now(), t.updated_at + i.events * interval '1 microsecond')
    FROM input i
    -- The array makes it look the rows up by their key, whatever it believes of the table.
    WHERE t.id = ANY (ARRAY(SELECT id FROM input)) AND t.id = i.id AND t.status = i.old_status
      AND (i.token IS NULL OR t.token = i.token)
      AND (i.version IS NULL OR t.version = i.version)
    RETURNING t.id, t.type, t.version, t.updated_at
), event AS (
    INSERT INTO kodus_workflow.task_events
        (id, task_id, status, state, detail, actor, created_at, version)
    SELECT e.id, e.task_id, e.status, e.state, e.detail, e.actor,
           c.updated_at - e.back * interval '1 microsecond', c.version - e.back
    FROM unnest($17::uuid[], $18::uuid[], $19::text[], $20::text[], $21::jsonb[], $22::text[],
                $23::int4[])
        AS e(id, task_id, status, state, detail, actor, back)
    JOIN changed c ON c.id = e.task_id
)";

// What only some batches need: each part costs planning time in every statement it stands in.

/// Never a second one: only a completion has a result, and nothing follows a completion.
const RESULT: &str = ", result AS (
    INSERT INTO kodus_workflow.task_results (task_id, payload)
    SELECT i.id, i.result FROM input i JOIN changed USING (id) WHERE i.result IS NOT NULL
)";

const BURIED: &str = ", buried AS (
    INSERT INTO kodus_workflow.task_dead_letters (id, task_id, type, reason)
    SELECT i.row_id, i.id, c.type, coalesce(i.error, i.state)
    FROM input i JOIN changed c USING (id) WHERE i.status = 'FAILED'
)";

const RAISED: &str = ", raised AS (
    DELETE FROM kodus_workflow.task_dead_letters d USING input i JOIN changed USING (id)
    WHERE d.task_id = i.id AND i.old_status = 'FAILED' AND i.status = 'PENDING'
)";

const OUTBOX: &str = ", outbox AS (
    INSERT INTO kodus_workflow.task_outbox (id, task_id, type)
    SELECT i.row_id, i.id, c.type FROM input i JOIN changed c USING (id) WHERE i.announce
)";

const ANSWER: &str = "
SELECT id, version FROM changed";

/// The statement with the parts that these writes need.
fn statement(writes: &[Write], announce: &[bool]) -> String {
    let to = |status| writes.iter().any(|write| write.next.status == status);
    let parts = [
        (RESULT, writes.iter().any(|write| write.result().is_some())),
        (BURIED, to(Status::Failed)),
        (RAISED, to(Status::Pending)),
        (OUTBOX, announce.contains(&true)),
    ];
    let needed = parts.into_iter().filter_map(|(part, is_needed)| is_needed.then_some(part));
    let change = CHANGE.replace("{rows}", &writes.len().next_power_of_two().to_string());
    [change.as_str()].into_iter().chain(needed).chain([ANSWER]).collect()
}

#[async_trait]
impl Writes for Postgres {
    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        let operation = "write tasks";
        // Rows are locked in the order in which they are told: those who write the same ones
        // wait for each other, and never in a circle.
        let mut in_order: Vec<&Write> = writes.iter().collect();
        in_order.sort_by_key(|write| write.id);
        let input = Input::of(&in_order);
        let events = Events::of(&writes, || self.pg.clock().new_id());
        let row_ids: Vec<Uuid> = writes.iter().map(|_| self.pg.clock().new_id()).collect();
        let params = [
            (&input.ids as _, Type::UUID_ARRAY),
            (&input.old as _, Type::TEXT_ARRAY),
            (&input.tokens as _, Type::INT8_ARRAY),
            (&input.versions as _, Type::INT4_ARRAY),
            (&input.statuses as _, Type::TEXT_ARRAY),
            (&input.states as _, Type::TEXT_ARRAY),
            (&input.progress as _, Type::INT2_ARRAY),
            (&input.errors as _, Type::TEXT_ARRAY),
            (&input.retries as _, Type::INT4_ARRAY),
            (&input.waits as _, Type::FLOAT8_ARRAY),
            (&input.stops as _, Type::FLOAT8_ARRAY),
            (&input.events as _, Type::INT4_ARRAY),
            (&input.metadata as _, Type::JSONB_ARRAY),
            (&input.results as _, Type::JSONB_ARRAY),
            (&input.announce as _, Type::BOOL_ARRAY),
            (&row_ids as _, Type::UUID_ARRAY),
            (&events.ids as _, Type::UUID_ARRAY),
            (&events.tasks as _, Type::UUID_ARRAY),
            (&events.statuses as _, Type::TEXT_ARRAY),
            (&events.states as _, Type::TEXT_ARRAY),
            (&events.details as _, Type::JSONB_ARRAY),
            (&events.actors as _, Type::TEXT_ARRAY),
            (&events.back as _, Type::INT4_ARRAY),
        ];
        let sql = statement(&writes, &input.announce);
        let answer = self.query(writes.len(), operation, &sql, &params).await?;
        let applied = rows(operation, &answer, |row| {
            let id: Uuid = row.try_get(0)?;
            let version: i32 = row.try_get(1)?;
            Ok((id, version))
        })?;
        let applied: std::collections::HashMap<Uuid, i32> = applied.into_iter().collect();
        let outcome = writes.iter().map(|write| match applied.get(&write.id.0) {
            Some(version) => Written::Applied { version: *version },
            None => Written::Refused,
        });
        Ok(outcome.collect())
    }
}

/// The changes as columns.
struct Input<'a> {
    ids: Vec<Uuid>,
    old: Vec<&'static str>,
    tokens: Vec<Option<i64>>,
    versions: Vec<Option<i32>>,
    statuses: Vec<&'static str>,
    states: Vec<&'a str>,
    progress: Vec<i16>,
    errors: Vec<Option<&'a str>>,
    retries: Vec<i32>,
    waits: Vec<Option<f64>>,
    stops: Vec<Option<f64>>,
    events: Vec<i32>,
    metadata: Vec<Option<&'a Value>>,
    results: Vec<Option<&'a Value>>,
    announce: Vec<bool>,
}

impl<'a> Input<'a> {
    fn of(writes: &[&'a Write]) -> Self {
        let each = || writes.iter().copied();
        Self {
            ids: each().map(|w| w.id.0).collect(),
            old: each().map(|w| w.guard.status.as_str()).collect(),
            tokens: each().map(|w| w.guard.token).collect(),
            versions: each().map(|w| w.guard.version).collect(),
            statuses: each().map(|w| w.next.status.as_str()).collect(),
            states: each().map(|w| w.next.state.as_str()).collect(),
            progress: each().map(|w| w.next.progress).collect(),
            errors: each().map(|w| w.next.error.as_deref()).collect(),
            retries: each().map(|w| w.next.retry_count).collect(),
            waits: each().map(|w| w.next.wait.map(|wait| wait.as_secs_f64())).collect(),
            stops: each().map(|w| w.next.stop_within.map(|stop| stop.as_secs_f64())).collect(),
            events: each().map(|w| w.steps.len() as i32 + 1).collect(),
            metadata: each().map(|w| w.metadata.as_ref()).collect(),
            results: each().map(Write::result).collect(),
            announce: each()
                .map(|w| w.announce && w.next.status == Status::Pending && w.next.wait.is_none())
                .collect(),
        }
    }
}

/// The events as columns; `back` counts them from the last one of their task.
struct Events<'a> {
    ids: Vec<Uuid>,
    tasks: Vec<Uuid>,
    statuses: Vec<&'static str>,
    states: Vec<&'a str>,
    details: Vec<&'a Value>,
    actors: Vec<&'static str>,
    back: Vec<i32>,
}

impl<'a> Events<'a> {
    fn of(writes: &'a [Write], new_id: impl Fn() -> Uuid) -> Self {
        let mut all = Self {
            ids: Vec::new(),
            tasks: Vec::new(),
            statuses: Vec::new(),
            states: Vec::new(),
            details: Vec::new(),
            actors: Vec::new(),
            back: Vec::new(),
        };
        for write in writes {
            let steps = write.steps.iter().map(|s| (s.status, &s.state, &s.detail, s.actor));
            let last = &write.next;
            let last = (last.status, &last.state, &last.detail, last.actor);
            for (place, event) in steps.chain([last]).enumerate() {
                let (status, state, detail, actor) = event;
                all.ids.push(new_id());
                all.tasks.push(write.id.0);
                all.statuses.push(status.as_str());
                all.states.push(state);
                all.details.push(detail);
                all.actors.push(actor.as_str());
                all.back.push((write.steps.len() - place) as i32);
            }
        }
        all
    }
}
