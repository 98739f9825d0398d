//! What an overview shows: what ended when, what failed with what, what waits for what.

use async_trait::async_trait;
use std::time::Duration;

use jiff::Timestamp;
use lavra_db::tokio_postgres::types::Type;

use super::condition::Conditions;
use super::{Postgres, get, refused};
use crate::code::ErrorCode;
use crate::error::Result;
use crate::model::WriterId;
use crate::store::{Filter, Glances, Pace, Wait, Waiter, WaitsFor, WriterLoad};

const PACE: &str = "
SELECT to_timestamp((floor(extract(epoch FROM finished_at) / $2) * $2)::float8),
       count(*) FILTER (WHERE status = 'completed'),
       count(*) FILTER (WHERE status = 'failed'),
       coalesce(sum(ads_count) FILTER (WHERE status = 'completed'), 0)::bigint
FROM public.missions
WHERE finished_at >= $1 AND status IN ('completed', 'failed')
GROUP BY 1 ORDER BY 1";

const FAILURES: &str = "
SELECT error_code, count(*) FROM public.missions
WHERE finished_at >= $1 AND status = 'failed' AND error_code IS NOT NULL
GROUP BY error_code ORDER BY count(*) DESC, error_code";

const WAITS: &str = "
SELECT true, waiting, worker_data_url IS NOT NULL, count(*),
       min(coalesce(phase_started_at, queued_at))
FROM public.missions
WHERE status = 'queued' AND queued_at IS NOT NULL OR status = 'running' AND waiting IS NOT NULL
GROUP BY 2, 3
UNION ALL
SELECT false, waiting, false, count(*), min(updated_at)
FROM public.workers WHERE active AND waiting IS NOT NULL
GROUP BY 2
ORDER BY 1 DESC, 4 DESC, 2";

const LOADS: &str = "
SELECT writer_id, count(*) FILTER (WHERE status = 'running'),
       count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed')
FROM public.missions
WHERE writer_id IS NOT NULL AND (status = 'running' OR finished_at >= $1)
GROUP BY writer_id ORDER BY writer_id COLLATE \"C\"";

const STAMP: &str = "
SELECT concat_ws(' ',
    (SELECT max(id) FROM public.missions),
    (SELECT concat(count(*), ' ', max(updated_at)) FROM public.workers),
    (SELECT concat(count(*), ' ', max(last_used_at), max(last_test_at), sum(fail_count),
                   count(*) FILTER (WHERE active), count(in_use_by_worker_id),
                   sum(hashtext(concat(name, host, port, username))::bigint)) FROM public.proxies),
    (SELECT concat(count(*), ' ', max(updated_at), max(last_test_at)) FROM public.writers),
    (SELECT concat(mode, task_id, adjustable) FROM public.fleet_settings))";

#[async_trait]
impl Glances for Postgres {
    async fn count(&self, filter: &Filter) -> Result<i64> {
        let operation = "count missions";
        let conditions = Conditions::of_missions(filter);
        let sql = format!("SELECT count(*) FROM public.missions m WHERE {}", conditions.sql());
        let rows = self.pg.query(operation, &sql, &conditions.params()).await.map_err(refused)?;
        rows.first().map_or(Ok(0), |row| get(operation, row, 0))
    }

    async fn stamp(&self) -> Result<String> {
        let operation = "see whether something has changed";
        let rows = self.pg.query(operation, STAMP, &[]).await?;
        rows.first().map_or(Ok(String::new()), |row| get(operation, row, 0))
    }

    async fn pace(&self, since: Timestamp, step: Duration) -> Result<Vec<Pace>> {
        let operation = "see what ended when";
        let step = step.as_secs_f64().max(1.0);
        let params = [(&since as _, Type::TIMESTAMPTZ), (&step as _, Type::FLOAT8)];
        let rows = self.pg.query(operation, PACE, &params).await?;
        let read = |row| {
            Ok(Pace {
                at: get(operation, row, 0)?,
                completed: get(operation, row, 1)?,
                failed: get(operation, row, 2)?,
                ads: get(operation, row, 3)?,
            })
        };
        rows.iter().map(read).collect()
    }

    async fn failures_by_code(&self, since: Timestamp) -> Result<Vec<(ErrorCode, i64)>> {
        let operation = "see what failed with what";
        let rows = self.pg.query(operation, FAILURES, &[(&since as _, Type::TIMESTAMPTZ)]).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            // A code that someone wrote by hand is in the list of missions all the same.
            if let Ok(code) = get::<String>(operation, row, 0)?.parse() {
                found.push((code, get(operation, row, 1)?));
            }
        }
        Ok(found)
    }

    async fn waits(&self) -> Result<Vec<Wait>> {
        let operation = "see what waits";
        let rows = self.pg.query(operation, WAITS, &[]).await?;
        let read = |row| {
            let is_mission: bool = get(operation, row, 0)?;
            let word: Option<String> = get(operation, row, 1)?;
            Ok(Wait {
                who: if is_mission { Waiter::Mission } else { Waiter::Worker },
                what: WaitsFor::read(word.as_deref(), get(operation, row, 2)?),
                count: get(operation, row, 3)?,
                since: get(operation, row, 4)?,
            })
        };
        let waits = rows.iter().map(read).collect::<Result<Vec<Wait>>>()?;
        Ok(Wait::merged(waits))
    }

    async fn writer_loads(&self, since: Timestamp) -> Result<Vec<WriterLoad>> {
        let operation = "see what the writers do";
        let rows = self.pg.query(operation, LOADS, &[(&since as _, Type::TIMESTAMPTZ)]).await?;
        let read = |row| {
            Ok(WriterLoad {
                writer: WriterId(get(operation, row, 0)?),
                under_way: get(operation, row, 1)?,
                completed: get(operation, row, 2)?,
                failed: get(operation, row, 3)?,
            })
        };
        rows.iter().map(read).collect()
    }
}
