//! The reports of the specification, with the window as a parameter.

use async_trait::async_trait;
use jiff::Timestamp;
use lavra_db::Param;
use lavra_db::tokio_postgres::types::Type;
use serde_json::{Map, Value};

use super::{Postgres, get};
use crate::error::{Error, Result};
use crate::model::{LogId, MissionId, ProxyId, WorkerId};
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::store::Reports;

const FAILURES: &str = "
SELECT m.id, m.status::text, m.error_code, m.error_message, coalesce(m.retry_count, 0),
       l.timestamp, coalesce(l.details, '{}'), l.id
FROM public.missions m
JOIN public.mission_logs l ON l.mission_id = m.id
WHERE l.event = 'mission_failed' AND l.timestamp > $1 AND l.timestamp < $2
  AND ($3 IS NULL OR (l.timestamp, l.id) < ($3, $4))
ORDER BY l.timestamp DESC, l.id DESC LIMIT $5";

/// From an index alone, whose columns the entries have made of their details: what is no number of
/// milliseconds counts for no average.
const PERFORMANCE: &str = "
SELECT w.name, l.completed, l.failed, l.average, w.id
FROM public.workers w
JOIN (SELECT scraped_by,
             count(*) FILTER (WHERE event = 'scrape_completed') AS completed,
             count(*) FILTER (WHERE event = 'scrape_failed') AS failed,
             avg(scrape_ms)::float8 AS average
      FROM public.mission_logs
      WHERE event IN ('scrape_completed', 'scrape_failed')
        AND timestamp > $1 AND timestamp < $2
      GROUP BY scraped_by) l ON l.scraped_by = w.id
ORDER BY w.id";

const PROXIES: &str = "
SELECT p.name, p.host, coalesce(p.fail_count, 0), coalesce(p.active, false),
       count(l.id) FILTER (WHERE l.event = 'session_failed'),
       count(l.id) FILTER (WHERE l.event = 'proxy_rotated'), p.id
FROM public.proxies p
LEFT JOIN public.mission_logs l ON l.details->>'proxy_name' = coalesce(p.name, p.id)
    AND l.event IN ('session_failed', 'proxy_rotated')
    AND l.timestamp > $1 AND l.timestamp < $2
GROUP BY p.id, p.name, p.host, p.fail_count, p.active
ORDER BY coalesce(p.fail_count, 0) DESC, p.id";

/// As far as the server can hold it.
fn within(window: Window) -> Window {
    let earliest = Timestamp::UNIX_EPOCH;
    Window { since: window.since.max(earliest), until: window.until.max(earliest) }
}

fn times(window: &Window) -> [Param<'_>; 2] {
    [(&window.since as _, Type::TIMESTAMPTZ), (&window.until as _, Type::TIMESTAMPTZ)]
}

#[async_trait]
impl Reports for Postgres {
    async fn failures(
        &self,
        window: Window,
        before: Option<(Timestamp, LogId)>,
        limit: usize,
    ) -> Result<Vec<Failure>> {
        let operation = "report the missions that failed";
        let window = within(window);
        let (time, id) = before.unzip();
        let (id, limit) = (id.map(|id| id.0), limit as i64);
        let mut params = times(&window).to_vec();
        params.extend([
            (&time as _, Type::TIMESTAMPTZ),
            (&id as _, Type::TEXT),
            (&limit as _, Type::INT8),
        ]);
        let rows = self.pg.query(operation, FAILURES, &params).await?;
        let read = |row| {
            let status: String = get(operation, row, 1)?;
            Ok(Failure {
                id: MissionId(get(operation, row, 0)?),
                status: status.parse().map_err(|error| Error::Unreadable(format!("{error}")))?,
                error_code: get(operation, row, 2)?,
                error_message: get(operation, row, 3)?,
                retry_count: get(operation, row, 4)?,
                failed_at: get(operation, row, 5)?,
                details: object(get(operation, row, 6)?),
                log_id: LogId(get(operation, row, 7)?),
            })
        };
        rows.iter().map(read).collect()
    }

    async fn performance(&self, window: Window) -> Result<Vec<Performance>> {
        let operation = "report what the workers did";
        let window = within(window);
        let rows = self.pg.query(operation, PERFORMANCE, &times(&window)).await?;
        let read = |row| {
            Ok(Performance {
                worker_name: get(operation, row, 0)?,
                completed_count: get(operation, row, 1)?,
                failed_count: get(operation, row, 2)?,
                avg_duration_ms: get(operation, row, 3)?,
                worker_id: WorkerId(get(operation, row, 4)?),
            })
        };
        rows.iter().map(read).collect()
    }

    async fn troubled_proxies(&self, window: Window) -> Result<Vec<ProxyTrouble>> {
        let operation = "report the proxies that failed";
        let window = within(window);
        let rows = self.pg.query(operation, PROXIES, &times(&window)).await?;
        let read = |row| {
            Ok(ProxyTrouble {
                name: get(operation, row, 0)?,
                host: get(operation, row, 1)?,
                fail_count: get(operation, row, 2)?,
                active: get(operation, row, 3)?,
                session_failures: get(operation, row, 4)?,
                rotations: get(operation, row, 5)?,
                proxy_id: ProxyId(get(operation, row, 6)?),
            })
        };
        rows.iter().map(read).collect()
    }
}

/// What others have written there need not be an object.
fn object(details: Value) -> Map<String, Value> {
    match details {
        Value::Object(fields) => fields,
        said => Map::from_iter([("details".to_owned(), said)]),
    }
}
