//! The reports of section 10.3, over what happened since a time.

use jiff::Timestamp;
use lavra_db::duckdb::{self, Row};
use lavra_db::{micros, timestamp};
use serde_json::{Value, json};

use super::{DuckDb, wrong};
use crate::error::Result;
use crate::store::Report;

const FAILURES: &str = "
SELECT m.id, m.status, m.error_code, m.error_message, m.retry_count, epoch_us(ml.timestamp),
       coalesce(ml.details, '{}')::VARCHAR
FROM public.mission_logs ml JOIN public.missions m ON m.id = ml.mission_id
WHERE ml.event = 'mission_failed' AND ml.timestamp > make_timestamp($1)
ORDER BY ml.timestamp DESC, ml.id DESC";

/// By who did it: a mission may have had several workers. What is no number of milliseconds counts
/// for no average.
const WORKERS: &str = "
SELECT w.name, count(*) FILTER (WHERE ml.event = 'scrape_completed'),
       count(*) FILTER (WHERE ml.event = 'scrape_failed'),
       avg(TRY_CAST((ml.details->>'duration_ms') AS BIGINT))
           FILTER (WHERE ml.event = 'scrape_completed'
                     AND json_type(ml.details, '$.duration_ms') = 'UBIGINT')
FROM public.workers w JOIN public.mission_logs ml ON (ml.details->>'worker_id') = w.id
WHERE ml.event IN ('scrape_completed', 'scrape_failed') AND ml.timestamp > make_timestamp($1)
GROUP BY w.id, w.name ORDER BY w.id";

const PROXIES: &str = "
WITH recent AS MATERIALIZED (
    SELECT event, details->>'proxy_name' AS proxy_name FROM public.mission_logs
    WHERE event IN ('session_failed', 'proxy_rotated') AND timestamp > make_timestamp($1))
SELECT p.name, p.host, p.fail_count, p.active,
       count(*) FILTER (WHERE ml.event = 'session_failed'),
       count(*) FILTER (WHERE ml.event = 'proxy_rotated')
FROM public.proxies p LEFT JOIN recent ml ON ml.proxy_name = coalesce(p.name, p.id)
GROUP BY p.id, p.name, p.host, p.fail_count, p.active
ORDER BY p.fail_count DESC, p.id";

impl DuckDb {
    pub(super) async fn report_of(&self, report: Report, since: Timestamp) -> Result<Vec<Value>> {
        let (sql, read): (_, fn(&Row<'_>) -> duckdb::Result<Value>) = match report {
            Report::Failures => (FAILURES, failure),
            Report::Workers => (WORKERS, worker),
            Report::Proxies => (PROXIES, proxy),
        };
        self.select("read a report", sql, (micros(since),), read).await
    }
}

fn failure(row: &Row<'_>) -> duckdb::Result<Value> {
    let details: String = row.get(6)?;
    let details: Value = serde_json::from_str(&details).map_err(wrong)?;
    Ok(json!({
        "id": row.get::<_, String>(0)?, "status": row.get::<_, String>(1)?,
        "error_code": row.get::<_, Option<String>>(2)?,
        "error_message": row.get::<_, Option<String>>(3)?,
        "retry_count": row.get::<_, i32>(4)?,
        "failed_at": timestamp(row.get(5)?), "details": details,
    }))
}

fn worker(row: &Row<'_>) -> duckdb::Result<Value> {
    Ok(json!({
        "worker_name": row.get::<_, String>(0)?, "completed_count": row.get::<_, i64>(1)?,
        "failed_count": row.get::<_, i64>(2)?, "avg_duration_ms": row.get::<_, Option<f64>>(3)?,
    }))
}

fn proxy(row: &Row<'_>) -> duckdb::Result<Value> {
    Ok(json!({
        "name": row.get::<_, Option<String>>(0)?, "host": row.get::<_, String>(1)?,
        "fail_count": row.get::<_, i32>(2)?, "active": row.get::<_, bool>(3)?,
        "session_failures": row.get::<_, i64>(4)?, "rotations": row.get::<_, i64>(5)?,
    }))
}
