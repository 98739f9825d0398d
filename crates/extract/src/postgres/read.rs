//! What is asked without changing anything.

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::tokio_postgres::{self, Row};
use lavra_tasks::model::ProcessId;
use uuid::Uuid;

use super::Postgres;
use crate::error::{Error, Result};
use crate::model::{Extraction, ExtractionId, Page, Status, Stored, Totals, Window};
use crate::store::{Progress, Reads, Scope, Want};

pub(super) const TASK: &str = "t.task_id, t.endpoint_name, t.data_date, t.status, t.total_pages,
    t.total_records, t.last_error, t.updated_at, t.token, t.process, t.attempts, t.failing_since,
    t.next_attempt_at, t.discoveries, t.generation, t.discovered_at, t.is_final, t.verdict";

/// The columns of [`TASK`]; a status that nobody knows is `None`.
pub(super) fn task(row: &Row) -> Result<Option<Extraction>, tokio_postgres::Error> {
    let Some(status) = Status::parse(row.try_get(3)?) else { return Ok(None) };
    let (pages, records): (Option<i32>, Option<i32>) = (row.try_get(4)?, row.try_get(5)?);
    Ok(Some(Extraction {
        task_id: ExtractionId(row.try_get(0)?),
        endpoint_name: row.try_get(1)?,
        data_date: row.try_get(2)?,
        status,
        total_pages: pages.map(i64::from),
        total_records: records.map(i64::from),
        last_error: row.try_get(6)?,
        updated_at: row.try_get(7)?,
        token: row.try_get(8)?,
        process: row.try_get::<_, Option<Uuid>>(9)?.map(ProcessId),
        attempts: row.try_get(10)?,
        failing_since: row.try_get(11)?,
        next_attempt_at: row.try_get(12)?,
        discoveries: row.try_get(13)?,
        generation: row.try_get(14)?,
        discovered_at: row.try_get(15)?,
        is_final: row.try_get(16)?,
        verdict: row.try_get(17)?,
    }))
}

pub(super) const PAGE: &str = "p.page, p.records, p.total_records, p.generation, p.bytes,
    p.response_id, p.body_hash, p.content_hash, p.fetched_at";

/// The columns of [`PAGE`].
pub(super) fn page(row: &Row) -> Result<Page, tokio_postgres::Error> {
    let whole = |place: usize| row.try_get::<_, i32>(place).map(i64::from);
    Ok(Page {
        stored: Stored {
            page: whole(0)?,
            records: whole(1)?,
            total_records: whole(2)?,
            generation: row.try_get(3)?,
        },
        bytes: whole(4)?,
        response: row.try_get(5)?,
        body_hash: row.try_get(6)?,
        content_hash: row.try_get(7)?,
        fetched_at: row.try_get(8)?,
    })
}

pub(super) fn known<T>(all: Vec<Option<T>>) -> Result<Vec<T>> {
    let unknown = || Error::Unreadable("a task has a status that nobody knows".into());
    all.into_iter().collect::<Option<_>>().ok_or_else(unknown)
}

/// What a statement knows of a scope: `$1` to `$3`.
pub(super) const IN_SCOPE: &str = "(cardinality($1) = 0 OR t.endpoint_name = ANY ($1))
    AND t.data_date BETWEEN $2 AND $3";

#[async_trait]
impl Reads for Postgres {
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
               AND (t.next_attempt_at IS NULL OR t.next_attempt_at <= now())
               AND (t.process IS NULL OR p.id IS NULL
                    OR p.beat_at < now() - make_interval(secs => $4)
                    OR (t.status = 'FETCHING' AND NOT t.is_begun))
             ORDER BY {order} COLLATE \"C\" LIMIT $5"
        );
        let (stale, limit) = (stale.as_secs_f64(), limit as i64);
        let params = [
            (&of.endpoints as _, Type::TEXT_ARRAY),
            (&of.from as _, Type::DATE),
            (&of.to as _, Type::DATE),
            (&stale as _, Type::FLOAT8),
            (&limit as _, Type::INT8),
        ];
        known(self.query("find tasks to work on", &sql, &params, task).await?)
    }

    async fn task(&self, id: &ExtractionId) -> Result<Option<Extraction>> {
        let sql =
            format!("SELECT {TASK} FROM psa.{{source}}_extraction_tasks t WHERE t.task_id = $1");
        let params = [(&id.0 as _, Type::TEXT)];
        Ok(known(self.query("read a task", &sql, &params, task).await?)?.pop())
    }

    async fn tasks(&self, of: &Scope) -> Result<Vec<Extraction>> {
        let sql = format!(
            "SELECT {TASK} FROM psa.{{source}}_extraction_tasks t
             WHERE {IN_SCOPE} ORDER BY t.data_date, t.endpoint_name COLLATE \"C\""
        );
        known(self.query("read the plan", &sql, &scope(of), task).await?)
    }

    async fn progress(&self, of: &Scope) -> Result<Vec<Progress>> {
        let sql = format!(
            "SELECT {TASK}, t.stored_pages, t.stored_records, t.stored_bytes
             FROM psa.{{source}}_extraction_tasks t
             WHERE {IN_SCOPE} ORDER BY t.data_date, t.endpoint_name COLLATE \"C\""
        );
        let read = |row: &Row| {
            let (pages, records, bytes) = (row.try_get(18)?, row.try_get(19)?, row.try_get(20)?);
            Ok(task(row)?.map(|task| Progress { task, pages, records, bytes }))
        };
        known(self.query("read the progress", &sql, &scope(of), read).await?)
    }

    async fn windows(&self, id: &ExtractionId) -> Result<Vec<Window>> {
        let sql = "SELECT number, first_day, last_day, base, total_records, total_pages
                   FROM psa.{source}_extraction_windows WHERE task_id = $1 ORDER BY number";
        let read = |row: &Row| {
            let (base, records, pages): (i32, Option<i32>, Option<i32>) =
                (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
            let totals = records.zip(pages);
            Ok(Window {
                number: row.try_get(0)?,
                first_day: row.try_get(1)?,
                last_day: row.try_get(2)?,
                base: base.into(),
                totals: totals.map(|(r, p)| Totals { records: r.into(), pages: p.into() }),
            })
        };
        self.query("read the windows of a task", sql, &[(&id.0 as _, Type::TEXT)], read).await
    }

    async fn stored(&self, id: &ExtractionId) -> Result<Vec<Stored>> {
        let sql = "SELECT page, records, total_records, generation FROM psa.{source}_pages
                   WHERE task_id = $1 ORDER BY page";
        let read = |row: &Row| {
            let whole = |place: usize| row.try_get::<_, i32>(place).map(i64::from);
            Ok(Stored {
                page: whole(0)?,
                records: whole(1)?,
                total_records: whole(2)?,
                generation: row.try_get(3)?,
            })
        };
        self.query("read the pages of a task", sql, &[(&id.0 as _, Type::TEXT)], read).await
    }

    async fn pages(&self, id: &ExtractionId) -> Result<Vec<Page>> {
        let sql = format!(
            "SELECT {PAGE} FROM psa.{{source}}_pages p WHERE p.task_id = $1 ORDER BY p.page"
        );
        self.query("read the pages of a task", &sql, &[(&id.0 as _, Type::TEXT)], page).await
    }

    async fn bodies(
        &self,
        id: &ExtractionId,
        responses: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, Option<String>)>> {
        let sql = "SELECT id, response_content FROM psa.{source}_raw_responses
                   WHERE task_id = $1 AND id = ANY ($2)";
        let params = [(&id.0 as _, Type::TEXT), (&responses as _, Type::UUID_ARRAY)];
        let read = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        self.query("read bodies", sql, &params, read).await
    }
}

pub(super) fn scope(scope: &Scope) -> [lavra_db::Param<'_>; 3] {
    [
        (&scope.endpoints as _, Type::TEXT_ARRAY),
        (&scope.from as _, Type::DATE),
        (&scope.to as _, Type::DATE),
    ]
}
