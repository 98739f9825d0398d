//! What is asked without changing anything.

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::duckdb::{self, Row};
use lavra_db::timestamp;
use lavra_tasks::model::ProcessId;
use uuid::Uuid;

use super::{DuckDb, date, wrong};
use crate::error::Result;
use crate::model::{Extraction, ExtractionId, Page, Status, Stored, Totals, Window};
use crate::store::{Progress, Reads, Scope, Want};

pub(super) const TASK: &str =
    "t.task_id, t.endpoint_name, t.data_date::VARCHAR, t.status, t.total_pages,
    t.total_records, t.last_error, epoch_us(t.updated_at), t.token, t.process, t.attempts,
    epoch_us(t.failing_since), epoch_us(t.next_attempt_at), t.discoveries, t.generation,
    epoch_us(t.discovered_at), t.is_final, t.verdict";

/// The columns of [`TASK`].
pub(super) fn task(row: &Row<'_>) -> duckdb::Result<Extraction> {
    let time = |place: usize| row.get::<_, Option<i64>>(place).map(|t| t.map(timestamp));
    let status: String = row.get(3)?;
    Ok(Extraction {
        task_id: ExtractionId(row.get(0)?),
        endpoint_name: row.get(1)?,
        data_date: date(&row.get::<_, String>(2)?)?,
        status: Status::parse(&status).ok_or_else(|| wrong(format!("no status: {status}")))?,
        total_pages: row.get(4)?,
        total_records: row.get(5)?,
        last_error: row.get(6)?,
        updated_at: timestamp(row.get(7)?),
        token: row.get(8)?,
        process: row.get::<_, Option<uuid::Uuid>>(9)?.map(ProcessId),
        attempts: row.get(10)?,
        failing_since: time(11)?,
        next_attempt_at: time(12)?,
        discoveries: row.get(13)?,
        generation: row.get(14)?,
        discovered_at: time(15)?,
        is_final: row.get(16)?,
        verdict: row.get(17)?,
    })
}

pub(super) const PAGE: &str = "p.page, p.records, p.total_records, p.generation, p.bytes,
    p.response_id, p.body_hash, p.content_hash, epoch_us(p.fetched_at)";

/// The columns of [`PAGE`].
pub(super) fn page(row: &Row<'_>) -> duckdb::Result<Page> {
    let (page, records, total_records) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(Page {
        stored: Stored { page, records, total_records, generation: row.get(3)? },
        bytes: row.get(4)?,
        response: row.get(5)?,
        body_hash: row.get(6)?,
        content_hash: row.get(7)?,
        fetched_at: timestamp(row.get(8)?),
    })
}

/// What a statement knows of a scope: `$1` to `$3`.
pub(super) const IN_SCOPE: &str =
    "($1 = '[]' OR t.endpoint_name IN (SELECT unnest($1::JSON::VARCHAR[])))
    AND t.data_date BETWEEN $2::DATE AND $3::DATE";

pub(super) fn scope(scope: &Scope) -> Result<(String, String, String)> {
    Ok((super::set(&scope.endpoints)?, scope.from.to_string(), scope.to.to_string()))
}

#[async_trait]
impl Reads for DuckDb {
    async fn candidates(
        &self,
        of: &Scope,
        want: Want,
        stale: Duration,
        limit: usize,
    ) -> Result<Vec<Extraction>> {
        let (wanted, order) = match want {
            Want::Discovery => {
                ("t.status IN ('PENDING', 'DISCOVERING')", "t.data_date, t.endpoint_name")
            }
            Want::Pages => (
                "t.status IN ('PARTIAL', 'FETCHING')",
                "t.status DESC, t.data_date, t.endpoint_name",
            ),
        };
        let sql = format!(
            "SELECT {TASK} FROM psa.{{source}}_extraction_tasks t
             LEFT JOIN kodus_workflow.processes p ON p.id = t.process
             WHERE {IN_SCOPE} AND {wanted}
               AND (t.next_attempt_at IS NULL OR t.next_attempt_at <= make_timestamp($4))
               AND (t.process IS NULL OR p.id IS NULL OR p.beat_at < make_timestamp($4 - $5)
                    OR (t.status = 'FETCHING' AND NOT t.is_begun))
             ORDER BY {order} LIMIT $6"
        );
        let (endpoints, from, to) = scope(of)?;
        let params = (endpoints, from, to, self.now(), stale.as_micros() as i64, limit as i64);
        self.select("find tasks to work on", &sql, params, task).await
    }

    async fn task(&self, id: &ExtractionId) -> Result<Option<Extraction>> {
        let sql =
            format!("SELECT {TASK} FROM psa.{{source}}_extraction_tasks t WHERE t.task_id = $1");
        Ok(self.select("read a task", &sql, (id.0.clone(),), task).await?.pop())
    }

    async fn tasks(&self, of: &Scope) -> Result<Vec<Extraction>> {
        let sql = format!(
            "SELECT {TASK} FROM psa.{{source}}_extraction_tasks t
             WHERE {IN_SCOPE} ORDER BY t.data_date, t.endpoint_name"
        );
        self.select("read the plan", &sql, scope(of)?, task).await
    }

    async fn progress(&self, of: &Scope) -> Result<Vec<Progress>> {
        let sql = format!(
            "SELECT {TASK}, coalesce(p.pages, 0), coalesce(p.records, 0), coalesce(p.bytes, 0)
             FROM psa.{{source}}_extraction_tasks t
             LEFT JOIN (
                 SELECT task_id, count(*) AS pages, sum(records)::BIGINT AS records,
                        sum(bytes)::BIGINT AS bytes
                 FROM psa.{{source}}_pages GROUP BY task_id
             ) p ON p.task_id = t.task_id
             WHERE {IN_SCOPE} ORDER BY t.data_date, t.endpoint_name"
        );
        let read = |row: &Row<'_>| {
            let (pages, records, bytes) = (row.get(18)?, row.get(19)?, row.get(20)?);
            Ok(Progress { task: task(row)?, pages, records, bytes })
        };
        self.select("read the progress", &sql, scope(of)?, read).await
    }

    async fn windows(&self, id: &ExtractionId) -> Result<Vec<Window>> {
        let sql = "SELECT number, first_day::VARCHAR, last_day::VARCHAR, base, total_records,
                          total_pages
                   FROM psa.{source}_extraction_windows WHERE task_id = $1 ORDER BY number";
        let read = |row: &Row<'_>| {
            let (records, pages): (Option<i64>, Option<i64>) = (row.get(4)?, row.get(5)?);
            Ok(Window {
                number: row.get(0)?,
                first_day: date(&row.get::<_, String>(1)?)?,
                last_day: date(&row.get::<_, String>(2)?)?,
                base: row.get(3)?,
                totals: records.zip(pages).map(|(records, pages)| Totals { records, pages }),
            })
        };
        self.select("read the windows of a task", sql, (id.0.clone(),), read).await
    }

    async fn stored(&self, id: &ExtractionId) -> Result<Vec<Stored>> {
        let sql = "SELECT page, records, total_records, generation FROM psa.{source}_pages
                   WHERE task_id = $1 ORDER BY page";
        let read = |row: &Row<'_>| {
            let (page, records, total_records) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Stored { page, records, total_records, generation: row.get(3)? })
        };
        self.select("read the pages of a task", sql, (id.0.clone(),), read).await
    }

    async fn pages(&self, id: &ExtractionId) -> Result<Vec<Page>> {
        let sql = format!(
            "SELECT {PAGE} FROM psa.{{source}}_pages p WHERE p.task_id = $1 ORDER BY p.page"
        );
        self.select("read the pages of a task", &sql, (id.0.clone(),), page).await
    }

    async fn bodies(
        &self,
        id: &ExtractionId,
        responses: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, Option<String>)>> {
        let sql = "SELECT id, response_content FROM psa.{source}_raw_responses
                   WHERE task_id = $1 AND id IN (SELECT unnest($2::JSON::UUID[]))";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.select("read bodies", sql, (id.0.clone(), super::set(&responses)?), read).await
    }
}
