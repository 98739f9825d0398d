//! What a worker has, and what it gets: a proxy with a session, and the next mission of the queue.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::types::Type;
use lavra_tasks::model::Token;

use super::{IS_NEXT, Lock, Postgres, get, row};
use crate::error::{Error, Result};
use crate::machine::worker::{self, View};
use crate::model::{Mission, MissionId, Proxy, WorkerId, WorkerStatus};
use crate::store::{Assigned, Opened, Opening, Supervises};

/// The columns of a view: of `w`, its mission `m` and its proxy `p`.
const VIEW: &str = "
    (to_jsonb(w) - 'api_key')::text, to_jsonb(m)::text, (to_jsonb(p) - 'password')::text,
    EXISTS (SELECT 1 FROM public.missions m WHERE {is_next}),
    coalesce((SELECT mode FROM public.fleet_settings), 'off'), statement_timestamp()";

/// A worker has at most one proxy, and it is the last that it was given.
const LOOK: &str = "
SELECT {view}
FROM public.workers w
LEFT JOIN public.missions m ON m.id = w.current_mission_id
LEFT JOIN public.proxies p ON p.id = w.last_proxy_id AND p.in_use_by_worker_id = w.id
WHERE w.id = $1 AND w.token = $2";

/// The view, whether another session is needed, the proxy before, and how many it may have now.
const LOOK_TO_OPEN: &str = "
WITH expected AS MATERIALIZED (
    SELECT count(*) AS n FROM public.workers
    WHERE status IN ('ready', 'initializing') AND current_mission_id IS NULL
      AND close_reason IS NULL
), waiting AS MATERIALIZED (
    SELECT count(*) AS n FROM (
        SELECT 1 FROM public.missions m WHERE {is_next} LIMIT (SELECT n + 1 FROM expected)
    ) AS first_ones
)
SELECT {view},
    (SELECT n FROM waiting) > (SELECT n FROM expected),
    coalesce(previous.name, previous.id),
    (SELECT count(*) FROM public.proxies f WHERE {is_free})
FROM public.workers w
LEFT JOIN public.missions m ON m.id = w.current_mission_id
LEFT JOIN public.proxies p ON p.id = w.last_proxy_id AND p.in_use_by_worker_id = w.id
LEFT JOIN public.proxies previous ON previous.id = w.last_proxy_id
WHERE w.id = $1 AND w.token = $2";

/// Not the one before, unless it is the only active one; `f` for the worker `w`.
const IS_FREE: &str = "f.active AND f.in_use_by_worker_id IS NULL
    AND (f.id IS DISTINCT FROM w.last_proxy_id
         OR (SELECT count(*) FROM public.proxies WHERE active) = 1)";

/// The one at a place among the free ones, or the next that nobody is changing.
const CHOOSE: &str = "
SELECT (to_jsonb(p) - 'password')::text
FROM public.proxies p
JOIN (
    SELECT f.id, row_number() OVER (ORDER BY f.id) - 1 AS place, count(*) OVER () AS n
    FROM public.proxies f, public.workers w
    WHERE w.id = $1 AND {is_free}
) AS free ON free.id = p.id
WHERE p.active AND p.in_use_by_worker_id IS NULL
ORDER BY (free.place + free.n - $2 % free.n) % free.n
LIMIT 1 FOR NO KEY UPDATE OF p SKIP LOCKED";

/// Sessions are opened one at a time, so that none is opened for the same mission as another.
const LOCK_TO_OPEN: &str = "
SELECT pg_advisory_xact_lock($3) FROM (
    SELECT id FROM public.workers WHERE id = $1 AND token = $2 FOR NO KEY UPDATE
) AS mine";

/// The view of a worker that is free, and with it the oldest mission of the queue.
const LOOK_TO_ASSIGN: &str = "
WITH worker AS MATERIALIZED (
    SELECT * FROM public.workers
    WHERE id = $1 AND token = $2 AND status = 'ready' AND current_mission_id IS NULL
    FOR NO KEY UPDATE
), next AS MATERIALIZED (
    SELECT * FROM public.missions m
    WHERE {is_next} AND EXISTS (SELECT 1 FROM worker)
    ORDER BY m.queued_at, m.id LIMIT 1
    FOR NO KEY UPDATE OF m SKIP LOCKED
)
SELECT {view}, to_jsonb(next)::text
FROM worker w
LEFT JOIN public.missions m ON m.id = w.current_mission_id
LEFT JOIN public.proxies p ON p.id = w.last_proxy_id AND p.in_use_by_worker_id = w.id
LEFT JOIN next ON true";

fn sql(text: &str) -> String {
    text.replace("{view}", VIEW).replace("{is_next}", IS_NEXT).replace("{is_free}", IS_FREE)
}

fn read_view(operation: &'static str, found: &Row) -> Result<(View, Timestamp)> {
    let mission: Option<String> = get(operation, found, 1)?;
    let proxy: Option<String> = get(operation, found, 2)?;
    let mode: String = get(operation, found, 4)?;
    let view = View {
        worker: row::read(&get::<String>(operation, found, 0)?)?,
        mission: mission.as_deref().map(row::read).transpose()?,
        proxy: proxy.as_deref().map(row::read).transpose()?,
        has_queue: get(operation, found, 3)?,
        mode: mode.parse().map_err(|error| Error::Unreadable(format!("{error}")))?,
    };
    Ok((view, get(operation, found, 5)?))
}

/// How things are for a worker that would open a session.
struct Prospect {
    view: View,
    now: Timestamp,
    is_needed: bool,
    previous: Option<String>,
    free: u64,
}

impl Prospect {
    fn read(operation: &'static str, rows: &[Row]) -> Result<Option<Self>> {
        let Some(row) = rows.first() else { return Ok(None) };
        let (view, now) = read_view(operation, row)?;
        let free: i64 = get(operation, row, 8)?;
        Ok(Some(Self {
            is_needed: view.mission.is_some() || get(operation, row, 6)?,
            previous: get(operation, row, 7)?,
            free: free.unsigned_abs(),
            view,
            now,
        }))
    }

    /// Why no session is opened, before anyone asks for a proxy.
    fn refusal(&self) -> Option<Opened> {
        if self.view.worker.status != WorkerStatus::Idle {
            return Some(Opened::Lost);
        }
        (!self.is_needed).then_some(Opened::NotNeeded)
    }
}

#[async_trait]
impl Supervises for Postgres {
    async fn view(&self, worker: &WorkerId, token: Token) -> Result<Option<View>> {
        let operation = "look at a worker";
        let params = [(&worker.0 as _, Type::TEXT), (&token as _, Type::INT8)];
        let rows = self.pg.query_prepared(operation, &sql(LOOK), &params).await?;
        let view = rows.first().map(|row| read_view(operation, row)).transpose()?;
        Ok(view.map(|(view, _)| view))
    }

    async fn storing(&self, mission: &MissionId, token: Token) -> Result<Option<Mission>> {
        let operation = "look at a mission";
        let sql =
            "SELECT to_jsonb(m)::text FROM public.missions m WHERE m.id = $1 AND m.token = $2";
        let params = [(&mission.0 as _, Type::TEXT), (&token as _, Type::INT8)];
        let rows = self.pg.query_prepared(operation, sql, &params).await?;
        let read = |found| row::read(&get::<String>(operation, found, 0)?);
        rows.first().map(read).transpose()
    }

    async fn open(&self, opening: Opening) -> Result<Opened> {
        let operation = "open a worker's session";
        let (id, token) = (&opening.worker.0, opening.token);
        let who = [(id as _, Type::TEXT), (&token as _, Type::INT8)];
        let look = sql(LOOK_TO_OPEN);
        // Most that ask have to wait: they do so without a lock.
        let rows = self.pg.query_prepared(operation, &look, &who).await?;
        let Some(prospect) = Prospect::read(operation, &rows)? else { return Ok(Opened::Lost) };
        if let Some(refusal) = prospect.refusal() {
            return Ok(refusal);
        }
        if prospect.free == 0 && worker::no_proxy(&prospect.view, prospect.now).is_none() {
            return Ok(Opened::NoProxy);
        }

        let mut transaction = self.pg.transaction(operation).await?;
        let number = Lock::Openings.number();
        let [worker_id, worker_token] = who.clone();
        let locked = transaction
            .query_prepared(LOCK_TO_OPEN, &[worker_id, worker_token, (&number as _, Type::INT8)])
            .await?;
        let rows = match locked.as_slice() {
            [] => Vec::new(),
            _ => transaction.query_prepared(&look, &who).await?,
        };
        let Some(prospect) = Prospect::read(operation, &rows)? else {
            transaction.rollback().await?;
            return Ok(Opened::Lost);
        };
        if let Some(refusal) = prospect.refusal() {
            transaction.rollback().await?;
            return Ok(refusal);
        }
        let place = opening.luck.checked_rem(prospect.free).unwrap_or(0) as i64;
        let params = [(id as _, Type::TEXT), (&place as _, Type::INT8)];
        let rows = transaction.query_prepared(&sql(CHOOSE), &params).await?;
        let Some(chosen) = rows.first() else {
            match worker::no_proxy(&prospect.view, prospect.now) {
                Some(step) => _ = self.write_last(transaction, &step).await?,
                None => transaction.rollback().await?,
            }
            return Ok(Opened::NoProxy);
        };
        let proxy: Proxy = row::read(&get::<String>(operation, chosen, 0)?)?;
        let Prospect { view, now, previous, .. } = prospect;
        let step = worker::opened(&view, &proxy, previous.as_deref(), opening.session, now);
        let is_written = self.write_last(transaction, &step).await?;
        Ok(if is_written { Opened::With(Box::new(proxy)) } else { Opened::Lost })
    }

    async fn assign(&self, worker: &WorkerId, token: Token) -> Result<Assigned> {
        let operation = "assign a mission";
        let mut transaction = self.pg.transaction(operation).await?;
        let params = [(&worker.0 as _, Type::TEXT), (&token as _, Type::INT8)];
        let rows = transaction.query_prepared(&sql(LOOK_TO_ASSIGN), &params).await?;
        let Some(found) = rows.first() else {
            transaction.rollback().await?;
            return Ok(Assigned::Lost);
        };
        let (view, now) = read_view(operation, found)?;
        let Some(next) = get::<Option<String>>(operation, found, 6)? else {
            transaction.rollback().await?;
            return Ok(Assigned::NothingQueued);
        };
        let mission: Mission = row::read(&next)?;
        let step = worker::assigned(&view, &mission, now);
        let is_written = self.write_last(transaction, &step).await?;
        Ok(if is_written { Assigned::With(Box::new(view.after(&step))) } else { Assigned::Lost })
    }
}
