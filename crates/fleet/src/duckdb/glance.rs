//! What an overview shows: what ended when, what failed with what, what waits for what.

use async_trait::async_trait;
use std::time::Duration;

use jiff::Timestamp;
use lavra_db::duckdb::{self, Row, params_from_iter};
use lavra_db::{micros, timestamp};

use super::DuckDb;
use super::condition::Conditions;
use crate::code::ErrorCode;
use crate::error::Result;
use crate::model::WriterId;
use crate::store::{Filter, Glances, Pace, Wait, Waiter, WaitsFor, WriterLoad};

const PACE: &str = "
SELECT epoch_us(finished_at) // $2 * $2,
       count(*) FILTER (WHERE status = 'completed'),
       count(*) FILTER (WHERE status = 'failed'),
       coalesce(sum(ads_count) FILTER (WHERE status = 'completed'), 0)::BIGINT
FROM public.missions
WHERE finished_at >= make_timestamp($1) AND status IN ('completed', 'failed')
GROUP BY 1 ORDER BY 1";

const FAILURES: &str = "
SELECT error_code, count(*) FROM public.missions
WHERE finished_at >= make_timestamp($1) AND status = 'failed' AND error_code IS NOT NULL
GROUP BY error_code ORDER BY count(*) DESC, error_code";

const WAITS: &str = "
SELECT true, waiting, worker_data_url IS NOT NULL, count(*),
       epoch_us(min(coalesce(phase_started_at, queued_at)))
FROM public.missions
WHERE status = 'queued' AND queued_at IS NOT NULL OR status = 'running' AND waiting IS NOT NULL
GROUP BY waiting, worker_data_url IS NOT NULL
UNION ALL
SELECT false, waiting, false, count(*), epoch_us(min(updated_at))
FROM public.workers WHERE active AND waiting IS NOT NULL
GROUP BY waiting
ORDER BY 1 DESC, 4 DESC, 2";

const LOADS: &str = "
SELECT writer_id, count(*) FILTER (WHERE status = 'running'),
       count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed')
FROM public.missions
WHERE writer_id IS NOT NULL AND (status = 'running' OR finished_at >= make_timestamp($1))
GROUP BY writer_id ORDER BY writer_id";

const STAMP: &str = "
SELECT concat_ws(' ',
    (SELECT max(id) FROM public.missions),
    (SELECT concat(count(*), ' ', max(updated_at)) FROM public.workers),
    (SELECT concat(count(*), ' ', max(last_used_at), max(last_test_at), sum(fail_count),
                   count(*) FILTER (WHERE active), count(in_use_by_worker_id),
                   sum(hash(concat(name, host, port, username)))) FROM public.proxies),
    (SELECT concat(count(*), ' ', max(updated_at), max(last_test_at)) FROM public.writers),
    (SELECT concat(mode, task_id, adjustable) FROM public.fleet_settings))";

#[async_trait]
impl Glances for DuckDb {
    async fn count(&self, filter: &Filter) -> Result<i64> {
        let conditions = Conditions::of_missions(filter)?;
        let sql = format!("SELECT count(*) FROM public.missions WHERE {}", conditions.sql());
        let params = params_from_iter(conditions.params);
        let found = self.select("count missions", &sql, params, |row| row.get(0)).await?;
        Ok(found.into_iter().next().unwrap_or(0))
    }

    async fn stamp(&self) -> Result<String> {
        let found = self.select("see whether something has changed", STAMP, (), |row| row.get(0));
        Ok(found.await?.into_iter().next().unwrap_or_default())
    }

    async fn pace(&self, since: Timestamp, step: Duration) -> Result<Vec<Pace>> {
        let step = step.as_micros().max(1_000_000) as i64;
        self.select("see what ended when", PACE, (micros(since), step), pace).await
    }

    async fn failures_by_code(&self, since: Timestamp) -> Result<Vec<(ErrorCode, i64)>> {
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
        let found =
            self.select("see what failed with what", FAILURES, (micros(since),), read).await?;
        // A code that someone wrote by hand is in the list of missions all the same.
        Ok(found.into_iter().filter_map(|(code, n)| Some((code.parse().ok()?, n))).collect())
    }

    async fn waits(&self) -> Result<Vec<Wait>> {
        Ok(Wait::merged(self.select("see what waits", WAITS, (), wait).await?))
    }

    async fn writer_loads(&self, since: Timestamp) -> Result<Vec<WriterLoad>> {
        let read = |row: &Row<'_>| {
            Ok(WriterLoad {
                writer: WriterId(row.get(0)?),
                under_way: row.get(1)?,
                completed: row.get(2)?,
                failed: row.get(3)?,
            })
        };
        self.select("see what the writers do", LOADS, (micros(since),), read).await
    }
}

fn pace(row: &Row<'_>) -> duckdb::Result<Pace> {
    Ok(Pace {
        at: timestamp(row.get(0)?),
        completed: row.get(1)?,
        failed: row.get(2)?,
        ads: row.get(3)?,
    })
}

fn wait(row: &Row<'_>) -> duckdb::Result<Wait> {
    let is_mission: bool = row.get(0)?;
    let word: Option<String> = row.get(1)?;
    Ok(Wait {
        who: if is_mission { Waiter::Mission } else { Waiter::Worker },
        what: WaitsFor::read(word.as_deref(), row.get(2)?),
        count: row.get(3)?,
        since: row.get::<_, Option<i64>>(4)?.map(timestamp),
    })
}
