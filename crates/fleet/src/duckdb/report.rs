//! The reports of the specification, over what happened in a window.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::duckdb::types::Value;
use lavra_db::duckdb::{self, Row, params_from_iter};
use lavra_db::{micros, timestamp};

use super::condition::Conditions;
use super::{DuckDb, at_most, wrong};
use crate::error::Result;
use crate::model::{LogId, MissionId, ProxyId, WorkerId};
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::store::Reports;

/// What is no number of milliseconds counts for no average.
const WORKERS: &str = "
SELECT w.name, count(*) FILTER (WHERE ml.event = 'scrape_completed'),
       count(*) FILTER (WHERE ml.event = 'scrape_failed'),
       avg(TRY_CAST((ml.details->>'duration_ms') AS BIGINT))
           FILTER (WHERE ml.event = 'scrape_completed'
                     AND json_type(ml.details, '$.duration_ms') = 'UBIGINT'), w.id
FROM public.workers w JOIN public.mission_logs ml ON (ml.details->>'worker_id') = w.id
WHERE ml.event IN ('scrape_completed', 'scrape_failed')
  AND ml.timestamp > make_timestamp($1) AND ml.timestamp < make_timestamp($2)
GROUP BY w.id, w.name ORDER BY w.id";

const PROXIES: &str = "
WITH recent AS MATERIALIZED (
    SELECT event, details->>'proxy_name' AS proxy_name FROM public.mission_logs
    WHERE event IN ('session_failed', 'proxy_rotated')
      AND timestamp > make_timestamp($1) AND timestamp < make_timestamp($2))
SELECT p.name, p.host, p.fail_count, p.active,
       count(*) FILTER (WHERE ml.event = 'session_failed'),
       count(*) FILTER (WHERE ml.event = 'proxy_rotated'), p.id
FROM public.proxies p LEFT JOIN recent ml ON ml.proxy_name = coalesce(p.name, p.id)
GROUP BY p.id, p.name, p.host, p.fail_count, p.active
ORDER BY p.fail_count DESC, p.id";

fn times(window: Window) -> (i64, i64) {
    (micros(window.since), micros(window.until))
}

#[async_trait]
impl Reports for DuckDb {
    async fn failures(
        &self,
        window: Window,
        before: Option<(Timestamp, LogId)>,
        limit: usize,
    ) -> Result<Vec<Failure>> {
        let (since, until) = times(window);
        let mut conditions = Conditions::default();
        conditions.add_plain("event = 'mission_failed' AND mission_id IS NOT NULL");
        conditions.add("timestamp > make_timestamp(?)", Value::BigInt(since));
        conditions.add("timestamp < make_timestamp(?)", Value::BigInt(until));
        conditions.add_older(before.as_ref());
        let sql = format!(
            "SELECT m.id, m.status, m.error_code, m.error_message, m.retry_count,
                    epoch_us(ml.timestamp), coalesce(ml.details, '{{}}')::VARCHAR, ml.id
             FROM (SELECT * FROM public.mission_logs WHERE {}
                   ORDER BY timestamp DESC, id DESC LIMIT {}) ml
             JOIN public.missions m ON m.id = ml.mission_id
             ORDER BY ml.timestamp DESC, ml.id DESC",
            conditions.sql(),
            at_most(limit),
        );
        let params = params_from_iter(conditions.params);
        self.select("report the missions that failed", &sql, params, failure).await
    }

    async fn performance(&self, window: Window) -> Result<Vec<Performance>> {
        self.select("report what the workers did", WORKERS, times(window), performance).await
    }

    async fn troubled_proxies(&self, window: Window) -> Result<Vec<ProxyTrouble>> {
        self.select("report the proxies that failed", PROXIES, times(window), trouble).await
    }
}

fn failure(row: &Row<'_>) -> duckdb::Result<Failure> {
    let (status, details): (String, String) = (row.get(1)?, row.get(6)?);
    Ok(Failure {
        id: MissionId(row.get(0)?),
        status: status.parse().map_err(wrong)?,
        error_code: row.get(2)?,
        error_message: row.get(3)?,
        retry_count: row.get(4)?,
        failed_at: timestamp(row.get(5)?),
        details: serde_json::from_str(&details).map_err(wrong)?,
        log_id: LogId(row.get(7)?),
    })
}

fn performance(row: &Row<'_>) -> duckdb::Result<Performance> {
    Ok(Performance {
        worker_name: row.get(0)?,
        completed_count: row.get(1)?,
        failed_count: row.get(2)?,
        avg_duration_ms: row.get(3)?,
        worker_id: WorkerId(row.get(4)?),
    })
}

fn trouble(row: &Row<'_>) -> duckdb::Result<ProxyTrouble> {
    Ok(ProxyTrouble {
        name: row.get(0)?,
        host: row.get(1)?,
        fail_count: row.get(2)?,
        active: row.get(3)?,
        session_failures: row.get(4)?,
        rotations: row.get(5)?,
        proxy_id: ProxyId(row.get(6)?),
    })
}
