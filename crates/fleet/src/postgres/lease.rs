//! Which process looks after what, by the server's clock alone.
//!
//! One process at a time takes its share, so that the rows it counts stay as they are; what runs
//! is not in its way.

use async_trait::async_trait;
use std::time::Duration;

use jiff::Timestamp;
use lavra_db::tokio_postgres::types::Type;
use lavra_tasks::model::{ProcessId, Token};

use super::{Lock, Postgres, TAKE_LOCK, get};
use crate::error::Result;
use crate::model::{MissionId, WorkerId};
use crate::store::{Leased, Leases, WRITES};

/// All parts see the tables as they were before, so what is taken is added to what was held.
const LEASE: &str = "
WITH beat AS (
    INSERT INTO public.fleet_processes (id, seen_at) VALUES ($1, statement_timestamp())
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
), gone AS (
    DELETE FROM public.fleet_processes
    WHERE id <> $1 AND seen_at < statement_timestamp() - $2 * interval '1 microsecond'
), live AS MATERIALIZED (
    SELECT id FROM public.fleet_processes
    WHERE id <> $1 AND seen_at >= statement_timestamp() - $2 * interval '1 microsecond'
), share AS MATERIALIZED (
    SELECT ceil(count(*) FILTER (WHERE active OR status <> 'idle' OR unclosed)
                / ((SELECT count(*) FROM live) + 1)::numeric)::int8 AS size,
           count(*) FILTER (WHERE held_by = $1) AS held
    FROM public.workers
), free AS MATERIALIZED (
    SELECT w.id FROM public.workers w
    WHERE (w.active OR w.status <> 'idle' OR w.unclosed)
      AND (w.held_by IS NULL OR w.held_by <> $1 AND w.held_by NOT IN (SELECT id FROM live))
    ORDER BY w.id LIMIT (SELECT greatest(size - held, 0) FROM share)
    FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
    UPDATE public.workers w SET token = nextval('public.fleet_tokens'), held_by = $1
    FROM free WHERE w.id = free.id
    RETURNING w.id, w.token, w.current_mission_id
), along AS (
    UPDATE public.missions m SET token = taken.token, held_by = $1
    FROM taken
    WHERE m.id = taken.current_mission_id AND m.status = 'running' AND m.checkpoint = 'extracao'
), stored AS MATERIALIZED (
    SELECT m.id FROM public.missions m
    WHERE {is_storing}
      AND (m.held_by IS NULL OR m.held_by <> $1 AND m.held_by NOT IN (SELECT id FROM live))
    ORDER BY m.id LIMIT $3
    FOR NO KEY UPDATE SKIP LOCKED
), written AS (
    UPDATE public.missions m SET
        started_at = CASE WHEN m.status = 'queued' THEN statement_timestamp() ELSE m.started_at END,
        status = 'running', checkpoint = 'armazenamento',
        token = nextval('public.fleet_tokens'), held_by = $1
    FROM stored WHERE m.id = stored.id
    RETURNING m.id, m.token
)
SELECT 'share' AS kind, '' AS id, size AS number, statement_timestamp() AS at FROM share
UNION ALL
SELECT 'worker', id, token, NULL FROM taken
UNION ALL
SELECT 'worker', w.id, w.token, NULL FROM public.workers w
WHERE w.held_by = $1 AND w.token IS NOT NULL
UNION ALL
SELECT 'mission', id, token, NULL FROM written
UNION ALL
SELECT 'mission', m.id, m.token, NULL FROM public.missions m
WHERE m.held_by = $1 AND m.token IS NOT NULL AND {is_storing}
ORDER BY 1, 2";

/// The index `idx_missions_storing` says the same.
const IS_STORING: &str = "(m.status = 'running' AND m.checkpoint = 'armazenamento'
    OR m.status = 'queued' AND m.queued_at IS NOT NULL AND m.worker_data_url IS NOT NULL)";

const LEAVE: &str = "
WITH gone AS (
    DELETE FROM public.fleet_processes WHERE id = $1
), workers AS (
    UPDATE public.workers SET held_by = NULL WHERE held_by = $1
)
UPDATE public.missions SET held_by = NULL WHERE held_by = $1 AND status = 'running'";

#[async_trait]
impl Leases for Postgres {
    async fn lease(&self, process: ProcessId, stale: Duration) -> Result<Leased> {
        let operation = "take a share of the fleet";
        let mut transaction = self.pg.transaction(operation).await?;
        let lock = Lock::Leases.number();
        transaction.query(TAKE_LOCK, &[(&lock as _, Type::INT8)]).await?;
        // No process was silent for a century.
        let stale = stale.as_micros().min(100 * 365 * 24 * 3600 * 1_000_000) as f64;
        let writes = WRITES as i64;
        let params = [
            (&process.0 as _, Type::UUID),
            (&stale as _, Type::FLOAT8),
            (&writes as _, Type::INT8),
        ];
        let sql = LEASE.replace("{is_storing}", IS_STORING);
        let rows = transaction.finish(&sql, &params).await?;
        let mut leased = Leased::default();
        let mut share = 0;
        for row in &rows {
            let kind: String = get(operation, row, 0)?;
            let id: String = get(operation, row, 1)?;
            let number: Token = get(operation, row, 2)?;
            if let Some(time) = get::<Option<Timestamp>>(operation, row, 3)? {
                self.pg.clock().set(time);
            }
            match kind.as_str() {
                "worker" => leased.workers.push((WorkerId(id), number)),
                "mission" => leased.missions.push((MissionId(id), number)),
                _ => share = usize::try_from(number).unwrap_or(0),
            }
        }
        leased.surplus = leased.workers.len().saturating_sub(share);
        Ok(leased)
    }

    async fn release(&self, process: ProcessId, workers: Vec<WorkerId>) -> Result<()> {
        let sql = "UPDATE public.workers SET held_by = NULL WHERE held_by = $1 AND id = ANY ($2)";
        let ids: Vec<&str> = workers.iter().map(|id| id.0.as_str()).collect();
        let params = [(&process.0 as _, Type::UUID), (&ids as _, Type::TEXT_ARRAY)];
        self.pg.query("give workers back", sql, &params).await?;
        Ok(())
    }

    async fn leave(&self, process: ProcessId) -> Result<()> {
        let params = [(&process.0 as _, Type::UUID)];
        self.pg.query("give everything back", LEAVE, &params).await?;
        Ok(())
    }
}
