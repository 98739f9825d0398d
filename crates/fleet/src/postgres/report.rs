//! The reports of the seed's section 10.3, with the window as a parameter.

use jiff::Timestamp;
use lavra_db::tokio_postgres::types::Type;
use serde_json::{Value, json};

use super::{Postgres, get};
use crate::error::Result;

const FAILURES: &str = "
SELECT m.id, m.status::text, m.error_code, m.error_message, coalesce(m.retry_count, 0),
       l.timestamp, coalesce(l.details, '{}')
FROM public.missions m
JOIN public.mission_logs l ON l.mission_id = m.id
WHERE l.event = 'mission_failed' AND l.timestamp > $1
ORDER BY l.timestamp DESC, l.id DESC";

/// To the worker that did it, which the entry names: a mission may have had several. What is no
/// number of milliseconds counts for no average.
const PERFORMANCE: &str = "
SELECT w.name,
       count(*) FILTER (WHERE l.event = 'scrape_completed'),
       count(*) FILTER (WHERE l.event = 'scrape_failed'),
       (avg(CASE WHEN l.details->>'duration_ms' ~ '^[0-9]{1,18}$'
                 THEN (l.details->>'duration_ms')::bigint END)
            FILTER (WHERE l.event = 'scrape_completed'))::float8
FROM public.workers w
JOIN public.mission_logs l ON l.details->>'worker_id' = w.id
WHERE l.event IN ('scrape_completed', 'scrape_failed') AND l.timestamp > $1
GROUP BY w.id, w.name
ORDER BY w.id";

const PROXIES: &str = "
SELECT p.name, p.host, coalesce(p.fail_count, 0), coalesce(p.active, false),
       count(l.id) FILTER (WHERE l.event = 'session_failed'),
       count(l.id) FILTER (WHERE l.event = 'proxy_rotated')
FROM public.proxies p
LEFT JOIN public.mission_logs l ON l.details->>'proxy_name' = coalesce(p.name, p.id)
    AND l.event IN ('session_failed', 'proxy_rotated') AND l.timestamp > $1
GROUP BY p.id, p.name, p.host, p.fail_count, p.active
ORDER BY coalesce(p.fail_count, 0) DESC, p.id";

impl Postgres {
    pub(super) async fn failures(&self, since: Timestamp) -> Result<Vec<Value>> {
        let operation = "report the missions that failed";
        let rows = self.pg.query(operation, FAILURES, &[(&since as _, Type::TIMESTAMPTZ)]).await?;
        let read = |row| {
            Ok(json!({
                "id": get::<String>(operation, row, 0)?,
                "status": get::<String>(operation, row, 1)?,
                "error_code": get::<Option<String>>(operation, row, 2)?,
                "error_message": get::<Option<String>>(operation, row, 3)?,
                "retry_count": get::<i32>(operation, row, 4)?,
                "failed_at": get::<Timestamp>(operation, row, 5)?,
                "details": get::<Value>(operation, row, 6)?,
            }))
        };
        rows.iter().map(read).collect()
    }

    pub(super) async fn performance(&self, since: Timestamp) -> Result<Vec<Value>> {
        let operation = "report what the workers did";
        let params = [(&since as _, Type::TIMESTAMPTZ)];
        let rows = self.pg.query(operation, PERFORMANCE, &params).await?;
        let read = |row| {
            Ok(json!({
                "worker_name": get::<String>(operation, row, 0)?,
                "completed_count": get::<i64>(operation, row, 1)?,
                "failed_count": get::<i64>(operation, row, 2)?,
                "avg_duration_ms": get::<Option<f64>>(operation, row, 3)?,
            }))
        };
        rows.iter().map(read).collect()
    }

    pub(super) async fn troubled_proxies(&self, since: Timestamp) -> Result<Vec<Value>> {
        let operation = "report the proxies that failed";
        let rows = self.pg.query(operation, PROXIES, &[(&since as _, Type::TIMESTAMPTZ)]).await?;
        let read = |row| {
            Ok(json!({
                "name": get::<Option<String>>(operation, row, 0)?,
                "host": get::<String>(operation, row, 1)?,
                "fail_count": get::<i32>(operation, row, 2)?,
                "active": get::<bool>(operation, row, 3)?,
                "session_failures": get::<i64>(operation, row, 4)?,
                "rotations": get::<i64>(operation, row, 5)?,
            }))
        };
        rows.iter().map(read).collect()
    }
}
