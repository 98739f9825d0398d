//! What people look at, a part at a time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use async_trait::async_trait;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::types::Type;
use uuid::Uuid;

use super::Postgres;
use super::read::{IN_SCOPE, PAGE, TASK, known, page, scope, task};
use crate::error::Result;
use crate::missing::GAPS;
use crate::model::{Cell, ExtractionId, Page, PageFailure, Status};
use crate::store::{Looks, Progress, Scope, Slice, Volume};

#[async_trait]
impl Looks for Postgres {
    async fn statuses(&self) -> Result<BTreeMap<Status, i64>> {
        let sql = "SELECT status, count(*) FROM psa.{source}_extraction_tasks GROUP BY status";
        let read = |row: &Row| {
            let (status, count) = (Status::parse(row.try_get(0)?), row.try_get(1)?);
            Ok(status.map(|status| (status, count)))
        };
        Ok(known(self.query("count the tasks", sql, &[], read).await?)?.into_iter().collect())
    }

    async fn volume(&self) -> Result<Volume> {
        let sql = "SELECT coalesce(sum(stored_pages), 0)::bigint,
                          coalesce(sum(stored_records), 0)::bigint,
                          coalesce(sum(stored_bytes), 0)::bigint
                   FROM psa.{source}_extraction_tasks";
        let read = |row: &Row| {
            let (pages, records, bytes) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            Ok(Volume { pages, records, bytes })
        };
        Ok(self.query("sum up what is stored", sql, &[], read).await?.pop().unwrap_or_default())
    }

    async fn progress_slice(&self, of: &Scope, slice: &Slice) -> Result<Vec<Progress>> {
        let sql = format!(
            "SELECT {TASK}, t.stored_pages, t.stored_records, t.stored_bytes
             FROM (
                 SELECT * FROM psa.{{source}}_extraction_tasks t
                 WHERE {IN_SCOPE} AND ($4 IS NULL OR t.status = $4)
                   AND ($5 IS NULL
                        OR (t.data_date, t.endpoint_name COLLATE \"C\") > ($5, $6))
                 ORDER BY t.data_date, t.endpoint_name COLLATE \"C\" LIMIT $7
             ) t
             ORDER BY t.data_date, t.endpoint_name COLLATE \"C\""
        );
        let status = slice.status.map(Status::as_str);
        let (day, name) = slice.after.clone().unzip();
        let limit = slice.limit as i64;
        let mut params = scope(of).to_vec();
        params.extend([
            (&status as _, Type::TEXT),
            (&day as _, Type::DATE),
            (&name as _, Type::TEXT),
            (&limit as _, Type::INT8),
        ]);
        let read = |row: &Row| {
            let (pages, records, bytes) = (row.try_get(18)?, row.try_get(19)?, row.try_get(20)?);
            Ok(task(row)?.map(|task| Progress { task, pages, records, bytes }))
        };
        known(self.query("read a part of the progress", &sql, &params, read).await?)
    }

    async fn grid(&self, of: &Scope) -> Result<Vec<Cell>> {
        let sql = format!(
            "SELECT t.endpoint_name, t.data_date, t.status, t.total_pages, t.total_records,
                    CASE t.status WHEN 'COMPLETE' THEN coalesce(t.total_pages, 0)
                                  ELSE t.stored_pages END,
                    CASE t.status WHEN 'COMPLETE' THEN coalesce(t.total_records, 0)
                                  ELSE t.stored_records END
             FROM psa.{{source}}_extraction_tasks t
             WHERE {IN_SCOPE} ORDER BY t.endpoint_name COLLATE \"C\", t.data_date"
        );
        let read = |row: &Row| {
            let Some(status) = Status::parse(row.try_get(2)?) else { return Ok(None) };
            let whole = |place: usize| row.try_get::<_, Option<i32>>(place);
            Ok(Some(Cell {
                endpoint_name: row.try_get(0)?,
                data_date: row.try_get(1)?,
                status,
                total_pages: whole(3)?.map(i64::from),
                total_records: whole(4)?.map(i64::from),
                pages: row.try_get(5)?,
                records: row.try_get(6)?,
            }))
        };
        known(self.query("read the grid", &sql, &scope(of), read).await?)
    }

    async fn pages_after(&self, id: &ExtractionId, after: i64, limit: usize) -> Result<Vec<Page>> {
        let sql = format!(
            "SELECT {PAGE} FROM psa.{{source}}_pages p WHERE p.task_id = $1 AND p.page > $2
             ORDER BY p.page LIMIT $3"
        );
        let limit = limit as i64;
        let params =
            [(&id.0 as _, Type::TEXT), (&after as _, Type::INT8), (&limit as _, Type::INT8)];
        self.query("read pages of a task", &sql, &params, page).await
    }

    async fn pages_named(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<Page>> {
        let sql = format!(
            "SELECT {PAGE} FROM psa.{{source}}_pages p
             WHERE p.task_id = $1 AND p.page = ANY ($2) ORDER BY p.page"
        );
        let params = [(&id.0 as _, Type::TEXT), (&pages as _, Type::INT8_ARRAY)];
        self.query("read pages of a task", &sql, &params, page).await
    }

    async fn missing_after(
        &self,
        id: &ExtractionId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RangeInclusive<i64>>> {
        let sql = format!(
            "{GAPS} SELECT greatest(first, $2 + 1)::bigint, last::bigint FROM gaps
             WHERE last > $2 ORDER BY last LIMIT $3"
        );
        let limit = limit as i64;
        let params =
            [(&id.0 as _, Type::TEXT), (&after as _, Type::INT8), (&limit as _, Type::INT8)];
        let read = |row: &Row| Ok(row.try_get(0)?..=row.try_get(1)?);
        self.query("find missing pages", &sql, &params, read).await
    }

    async fn missing_count(&self, id: &ExtractionId) -> Result<i64> {
        let sql = format!("{GAPS} SELECT coalesce(sum(last - first + 1), 0)::bigint FROM gaps");
        let params = [(&id.0 as _, Type::TEXT)];
        let found = self.query("count missing pages", &sql, &params, |row| row.try_get(0)).await?;
        Ok(found.first().copied().unwrap_or(0))
    }

    async fn opening(
        &self,
        id: &ExtractionId,
        response: Uuid,
        most: usize,
    ) -> Result<Option<String>> {
        let sql = "SELECT left(response_content, $3) FROM psa.{source}_raw_responses
                   WHERE id = $2 AND task_id = $1";
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        let params =
            [(&id.0 as _, Type::TEXT), (&response as _, Type::UUID), (&most as _, Type::INT4)];
        let found = self.query("read the beginning of a body", sql, &params, |row| row.try_get(0));
        Ok(found.await?.pop().flatten())
    }

    async fn page_failures(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<PageFailure>> {
        let sql = "SELECT DISTINCT ON (page) page, extracted_at, response_code,
                          coalesce(error, '')
                   FROM psa.{source}_raw_responses
                   WHERE task_id = $1 AND outcome = 'failed' AND page = ANY ($2)
                   ORDER BY page, id DESC";
        let params = [(&id.0 as _, Type::TEXT), (&pages as _, Type::INT8_ARRAY)];
        let read = |row: &Row| {
            let at: Option<DateTime> = row.try_get(1)?;
            let at = at.and_then(|at| TimeZone::UTC.to_timestamp(at).ok()).unwrap_or_default();
            let page = row.try_get::<_, i32>(0)?.into();
            Ok(PageFailure { page, at, code: row.try_get(2)?, error: row.try_get(3)? })
        };
        self.query("find failures of pages", sql, &params, read).await
    }
}
