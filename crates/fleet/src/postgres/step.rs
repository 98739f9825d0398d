//! Steps, each as a whole or not at all: one statement.
//!
//! `worker` and `mission` lock the rows whose token is still the writer's; everything else stands on
//! `held`, the steps that have all of theirs, so that what was lost to another process leaves no
//! trace. A row changes once per statement: where a later step is about a row of an earlier one, it
//! has a statement of its own in the same transaction.

use async_trait::async_trait;
use std::collections::HashSet;
use std::ops::Range;

use jiff::Timestamp;
use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::{Clock, Param, Transaction};
use serde::Serialize;
use serde_json::Value;

use super::{Postgres, get, row};
use crate::error::Result;
use crate::machine::{Guard, Step};
use crate::model::{LogEntry, LogId};
use crate::store::Steps;

const OPERATION: &str = "write what happened";

const WRITE: &str = "
WITH step AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($1) AS s(
        n INTEGER, worker_id TEXT, worker_token BIGINT, mission_id TEXT, mission_token BIGINT,
        reserves TEXT, at TIMESTAMPTZ, links TEXT, blamed TEXT, most INTEGER, praised TEXT,
        releases BOOLEAN, worker_seen TIMESTAMPTZ, mission_seen TIMESTAMPTZ)
), worker AS MATERIALIZED (
    SELECT w.id FROM public.workers w
    JOIN step s ON s.worker_id = w.id AND s.worker_token = w.token
                AND coalesce(w.updated_at, 'epoch') = coalesce(s.worker_seen, w.updated_at, 'epoch')
    ORDER BY w.id FOR NO KEY UPDATE OF w
), mission AS MATERIALIZED (
    SELECT m.id FROM public.missions m JOIN step s ON s.mission_id = m.id
    WHERE CASE WHEN s.mission_token IS NULL THEN m.status = 'queued'
               ELSE m.status = 'running' AND m.token = s.mission_token END
      AND m.logged_at IS NOT DISTINCT FROM coalesce(s.mission_seen, m.logged_at)
      AND (s.worker_id IS NULL OR s.worker_id IN (SELECT id FROM worker))
    ORDER BY m.id FOR NO KEY UPDATE OF m
), held AS MATERIALIZED (
    SELECT s.* FROM step s
    WHERE (s.worker_id IS NULL OR s.worker_id IN (SELECT id FROM worker))
      AND (s.mission_id IS NULL OR s.mission_id IN (SELECT id FROM mission))
), effect AS MATERIALIZED (
    SELECT id, sum(blames)::int AS blames, min(most) AS most, bool_or(praised) AS praised,
           bool_or(released) AS released, max(reserved_by) AS reserved_by, max(at) AS at
    FROM (
        SELECT blamed AS id, 1 AS blames, most, false AS praised, false AS released,
               NULL AS reserved_by, NULL::timestamptz AS at
        FROM held WHERE blamed IS NOT NULL
        UNION ALL
        SELECT praised, 0, NULL, true, false, NULL, NULL FROM held WHERE praised IS NOT NULL
        UNION ALL
        SELECT p.id, 0, NULL, false, true, NULL, NULL
        FROM held h JOIN public.proxies p ON p.in_use_by_worker_id = h.worker_id WHERE h.releases
        UNION ALL
        SELECT reserves, 0, NULL, false, false, worker_id, at FROM held WHERE reserves IS NOT NULL
    ) AS one
    GROUP BY id
), proxy AS MATERIALIZED (
    SELECT p.id FROM public.proxies p JOIN effect e ON e.id = p.id
    ORDER BY p.id FOR NO KEY UPDATE OF p
), changed_proxy AS (
    UPDATE public.proxies p SET
        fail_count = CASE WHEN e.praised THEN 0 ELSE coalesce(p.fail_count, 0) + e.blames END,
        active = CASE WHEN e.blames > 0 AND coalesce(p.fail_count, 0) + e.blames >= e.most
                      THEN false ELSE p.active END,
        in_use_by_worker_id = CASE WHEN e.reserved_by IS NOT NULL THEN e.reserved_by
                                   WHEN e.released THEN NULL ELSE p.in_use_by_worker_id END,
        last_used_at = coalesce(e.at, p.last_used_at)
    FROM effect e JOIN proxy ON proxy.id = e.id
    WHERE p.id = e.id
), changed_worker AS (
    -- What people set stays theirs, and who holds it is said by leases.
    UPDATE public.workers w SET
        status = r.status::public.worker_status, session_count = r.session_count,
        current_mission_id = r.current_mission_id, updated_at = r.updated_at,
        last_proxy_id = r.last_proxy_id, session_id = r.session_id,
        session_started_at = r.session_started_at, session_accepted = r.session_accepted,
        session_errors = r.session_errors, error_code = r.error_code,
        error_message = r.error_message, next_attempt_at = r.next_attempt_at,
        close_reason = r.close_reason, close_by = r.close_by, unclosed = r.unclosed,
        stop_by = r.stop_by, unreachable_since = r.unreachable_since, waiting = r.waiting
    FROM jsonb_to_recordset($2) AS r(
        n INTEGER, id TEXT, status TEXT, session_count INTEGER, current_mission_id TEXT,
        updated_at TIMESTAMPTZ, last_proxy_id TEXT, session_id TEXT,
        session_started_at TIMESTAMPTZ, session_accepted BOOLEAN, session_errors INTEGER,
        error_code TEXT, error_message TEXT, next_attempt_at TIMESTAMPTZ, close_reason TEXT,
        close_by TIMESTAMPTZ, unclosed BOOLEAN, stop_by TIMESTAMPTZ,
        unreachable_since TIMESTAMPTZ, waiting TEXT)
    JOIN held ON held.n = r.n
    WHERE w.id = r.id
), changed_mission AS (
    UPDATE public.missions m SET
        status = r.status::public.mission_status,
        checkpoint = r.checkpoint::public.checkpoint_type,
        worker_id = r.worker_id, worker_job_id = r.worker_job_id,
        worker_data_url = r.worker_data_url, proxy_used = left(r.proxy_used, 200),
        writer_job_id = r.writer_job_id, ads_count = r.ads_count, error_code = r.error_code,
        error_message = r.error_message, retry_count = r.retry_count, queued_at = r.queued_at,
        started_at = r.started_at, finished_at = r.finished_at, attempts = r.attempts,
        phase_started_at = r.phase_started_at, writer_id = r.writer_id,
        writer_accepted_at = r.writer_accepted_at, writer_processed = r.writer_processed,
        writer_moved_at = r.writer_moved_at, next_attempt_at = r.next_attempt_at,
        waiting = r.waiting, told_at = r.told_at, logged_at = r.logged_at, token = r.token,
        held_by = r.held_by
    FROM jsonb_to_recordset($3) AS r(
        n INTEGER, id TEXT, status TEXT, checkpoint TEXT, worker_id TEXT, worker_job_id TEXT,
        worker_data_url TEXT, proxy_used TEXT, writer_job_id TEXT, ads_count INTEGER,
        error_code TEXT, error_message TEXT, retry_count INTEGER, queued_at TIMESTAMPTZ,
        started_at TIMESTAMPTZ, finished_at TIMESTAMPTZ, attempts INTEGER,
        phase_started_at TIMESTAMPTZ, writer_id TEXT, writer_accepted_at TIMESTAMPTZ,
        writer_processed BIGINT, writer_moved_at TIMESTAMPTZ, next_attempt_at TIMESTAMPTZ,
        waiting TEXT, told_at TIMESTAMPTZ, logged_at TIMESTAMPTZ, token BIGINT, held_by UUID)
    JOIN held ON held.n = r.n
    WHERE m.id = r.id
), linked AS (
    UPDATE public.mission_logs l SET mission_id = h.mission_id
    FROM held h
    WHERE l.session_id = h.links AND l.mission_id IS NULL AND h.mission_id IS NOT NULL
), said AS (
    INSERT INTO public.mission_logs (id, mission_id, event, details, timestamp, session_id)
    SELECT r.id, r.mission_id, r.event::public.mission_event, r.details, r.timestamp, r.session_id
    FROM jsonb_to_recordset($4) AS r(
        n INTEGER, id TEXT, mission_id TEXT, event TEXT, details JSONB, timestamp TIMESTAMPTZ,
        session_id TEXT)
    JOIN held ON held.n = r.n
)
SELECT n FROM held";

/// What a step is about, beside its rows.
#[derive(Serialize)]
struct About<'a> {
    worker_id: Option<&'a str>,
    worker_token: Option<i64>,
    mission_id: Option<&'a str>,
    /// None for one of the queue.
    mission_token: Option<i64>,
    reserves: Option<&'a str>,
    at: Option<Timestamp>,
    links: Option<&'a str>,
    blamed: Option<&'a str>,
    most: Option<i32>,
    praised: Option<&'a str>,
    releases: bool,
    worker_seen: Option<Timestamp>,
    mission_seen: Option<Timestamp>,
}

impl<'a> About<'a> {
    fn of(step: &'a Step) -> Self {
        let worker = step.worker.as_ref();
        Self {
            worker_id: worker.map(|(_, worker)| worker.id.0.as_str()),
            worker_token: worker.map(|(token, _)| *token),
            mission_id: step.mission.as_ref().map(|(_, mission)| mission.id.0.as_str()),
            mission_token: step.mission.as_ref().and_then(|(guard, _)| match guard {
                Guard::Held(token) => Some(*token),
                Guard::Queued => None,
            }),
            reserves: step.reserves.as_ref().map(|id| id.0.as_str()),
            at: worker.filter(|_| step.reserves.is_some()).map(|(_, worker)| worker.updated_at),
            links: step.links.as_ref().map(|id| id.0.as_str()),
            blamed: step.blamed.as_ref().map(|(id, _)| id.0.as_str()),
            most: step.blamed.as_ref().map(|(_, most)| *most),
            praised: step.praised.as_ref().map(|id| id.0.as_str()),
            releases: step.releases_proxy,
            worker_seen: step.seen.worker,
            mission_seen: step.seen.mission,
        }
    }
}

/// Steps as the four parameters of the statement.
struct Rows {
    steps: Value,
    workers: Value,
    missions: Value,
    entries: Value,
}

impl Rows {
    fn of(steps: &[Step], clock: &Clock) -> Result<Self> {
        let (mut all, mut workers, mut missions, mut entries) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (n, step) in steps.iter().enumerate() {
            all.push(row::of_step(n, &About::of(step))?);
            if let Some((_, worker)) = &step.worker {
                workers.push(row::of_step(n, worker)?);
            }
            if let Some((_, mission)) = &step.mission {
                missions.push(row::of_step(n, mission)?);
            }
            for entry in &step.logs {
                let entry = LogEntry {
                    id: LogId::new(clock),
                    mission_id: entry.mission_id.clone(),
                    event: entry.event,
                    details: entry.details.clone(),
                    timestamp: entry.at,
                    session_id: entry.session_id.clone(),
                };
                entries.push(row::of_step(n, &entry)?);
            }
        }
        let whole = |rows| {
            let mut value = Value::Array(rows);
            row::clean(&mut value);
            value
        };
        Ok(Self {
            steps: whole(all),
            workers: whole(workers),
            missions: whole(missions),
            entries: whole(entries),
        })
    }

    fn params(&self) -> [Param<'_>; 4] {
        [
            (&self.steps, Type::JSONB),
            (&self.workers, Type::JSONB),
            (&self.missions, Type::JSONB),
            (&self.entries, Type::JSONB),
        ]
    }
}

/// Runs of steps within which no row is written twice.
fn runs(steps: &[Step]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut seen = HashSet::new();
    let mut start = 0;
    for (place, step) in steps.iter().enumerate() {
        let worker = step.worker.as_ref().map(|(_, worker)| worker.id.0.as_str());
        let mission = step.mission.as_ref().map(|(_, mission)| mission.id.0.as_str());
        let rows: Vec<&str> = worker.into_iter().chain(mission).collect();
        if rows.iter().any(|id| seen.contains(id)) {
            runs.push(start..place);
            start = place;
            seen.clear();
        }
        seen.extend(rows);
    }
    if start < steps.len() {
        runs.push(start..steps.len());
    }
    runs
}

/// Notes which steps of a run were written.
fn note(written: &mut [bool], rows: &[Row]) -> Result<()> {
    for row in rows {
        let place: i32 = get(OPERATION, row, 0)?;
        let place = usize::try_from(place).ok().and_then(|place| written.get_mut(place));
        if let Some(place) = place {
            *place = true;
        }
    }
    Ok(())
}

#[async_trait]
impl Steps for Postgres {
    async fn apply(&self, steps: Vec<Step>) -> Result<Vec<bool>> {
        let mut written = vec![false; steps.len()];
        let runs = runs(&steps);
        let Some((last, first)) = runs.split_last() else { return Ok(written) };
        if first.is_empty() {
            let rows = Rows::of(&steps, self.pg.clock())?;
            let rows = self.pg.query_prepared(OPERATION, WRITE, &rows.params()).await?;
            note(&mut written, &rows)?;
            return Ok(written);
        }
        let mut transaction = self.pg.transaction(OPERATION).await?;
        for run in first {
            let rows = self.rows(&steps, run)?;
            let rows = transaction.query(WRITE, &rows.params()).await?;
            note(written.get_mut(run.clone()).unwrap_or_default(), &rows)?;
        }
        let rows = self.rows(&steps, last)?;
        let rows = transaction.finish(WRITE, &rows.params()).await?;
        note(written.get_mut(last.clone()).unwrap_or_default(), &rows)?;
        Ok(written)
    }
}

impl Postgres {
    fn rows(&self, steps: &[Step], run: &Range<usize>) -> Result<Rows> {
        Rows::of(steps.get(run.clone()).unwrap_or_default(), self.pg.clock())
    }

    /// Writes one step as the end of a transaction; says whether it was.
    pub(super) async fn write_last(
        &self,
        transaction: Transaction<'_>,
        step: &Step,
    ) -> Result<bool> {
        let rows = Rows::of(std::slice::from_ref(step), self.pg.clock())?;
        let rows = transaction.finish_prepared(WRITE, &rows.params()).await?;
        Ok(!rows.is_empty())
    }
}
