//! What people look at, a part at a time. Limits stand in the statement: with a parameter, all rows
//! would be sorted.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use async_trait::async_trait;
use lavra_db::duckdb::{self, Row};
use lavra_db::timestamp;
use uuid::Uuid;

use super::read::{IN_SCOPE, PAGE, TASK, page, scope, task};
use super::{DuckDb, date, wrong};
use crate::error::Result;
use crate::missing::GAPS;
use crate::model::{Cell, ExtractionId, Page, PageFailure, Status};
use crate::store::{Looks, Progress, Scope, Slice, Volume};

fn status(text: &str) -> duckdb::Result<Status> {
    Status::parse(text).ok_or_else(|| wrong(format!("no status: {text}")))
}

#[async_trait]
impl Looks for DuckDb {
    async fn statuses(&self) -> Result<BTreeMap<Status, i64>> {
        let sql = "SELECT status, count(*) FROM psa.{source}_extraction_tasks GROUP BY status";
        let read = |row: &Row<'_>| Ok((status(&row.get::<_, String>(0)?)?, row.get(1)?));
        Ok(self.select("count the tasks", sql, (), read).await?.into_iter().collect())
    }

    async fn volume(&self) -> Result<Volume> {
        let sql = "SELECT count(*), coalesce(sum(records), 0)::BIGINT,
                          coalesce(sum(bytes), 0)::BIGINT
                   FROM psa.{source}_pages";
        let read = |row: &Row<'_>| {
            Ok(Volume { pages: row.get(0)?, records: row.get(1)?, bytes: row.get(2)? })
        };
        Ok(self.select("sum up what is stored", sql, (), read).await?.pop().unwrap_or_default())
    }

    async fn progress_slice(&self, of: &Scope, slice: &Slice) -> Result<Vec<Progress>> {
        let sql = format!(
            "WITH t AS MATERIALIZED (
                 SELECT * FROM psa.{{source}}_extraction_tasks t
                 WHERE {IN_SCOPE} AND ($4 IS NULL OR t.status = $4)
                   AND ($5 IS NULL OR (t.data_date, t.endpoint_name) > ($5::DATE, $6))
                 ORDER BY t.data_date, t.endpoint_name LIMIT {}
             )
             SELECT {TASK}, coalesce(p.pages, 0), coalesce(p.records, 0), coalesce(p.bytes, 0)
             FROM t LEFT JOIN (
                 SELECT task_id, count(*) AS pages, sum(records)::BIGINT AS records,
                        sum(bytes)::BIGINT AS bytes
                 FROM psa.{{source}}_pages WHERE task_id IN (SELECT task_id FROM t)
                 GROUP BY task_id
             ) p ON p.task_id = t.task_id
             ORDER BY t.data_date, t.endpoint_name",
            slice.limit
        );
        let (endpoints, from, to) = scope(of)?;
        let (day, name) = slice.after.clone().unzip();
        let day = day.map(|day| day.to_string());
        let params = (endpoints, from, to, slice.status.map(Status::as_str), day, name);
        let read = |row: &Row<'_>| {
            let (pages, records, bytes) = (row.get(18)?, row.get(19)?, row.get(20)?);
            Ok(Progress { task: task(row)?, pages, records, bytes })
        };
        self.select("read a part of the progress", &sql, params, read).await
    }

    async fn grid(&self, of: &Scope) -> Result<Vec<Cell>> {
        let sql = format!(
            "WITH t AS MATERIALIZED (
                 SELECT * FROM psa.{{source}}_extraction_tasks t WHERE {IN_SCOPE}
             )
             SELECT t.endpoint_name, t.data_date::VARCHAR, t.status, t.total_pages,
                    t.total_records,
                    CASE t.status WHEN 'COMPLETE' THEN coalesce(t.total_pages, 0)
                                  ELSE coalesce(p.pages, 0) END,
                    CASE t.status WHEN 'COMPLETE' THEN coalesce(t.total_records, 0)
                                  ELSE coalesce(p.records, 0) END
             FROM t LEFT JOIN (
                 SELECT task_id, count(*) AS pages, sum(records)::BIGINT AS records
                 FROM psa.{{source}}_pages
                 WHERE task_id IN (SELECT task_id FROM t WHERE status <> 'COMPLETE')
                 GROUP BY task_id
             ) p ON p.task_id = t.task_id
             ORDER BY t.endpoint_name, t.data_date"
        );
        let read = |row: &Row<'_>| {
            Ok(Cell {
                endpoint_name: row.get(0)?,
                data_date: date(&row.get::<_, String>(1)?)?,
                status: status(&row.get::<_, String>(2)?)?,
                total_pages: row.get(3)?,
                total_records: row.get(4)?,
                pages: row.get(5)?,
                records: row.get(6)?,
            })
        };
        self.select("read the grid", &sql, scope(of)?, read).await
    }

    async fn pages_after(&self, id: &ExtractionId, after: i64, limit: usize) -> Result<Vec<Page>> {
        let sql = format!(
            "SELECT {PAGE} FROM psa.{{source}}_pages p WHERE p.task_id = $1 AND p.page > $2
             ORDER BY p.page LIMIT {limit}"
        );
        self.select("read pages of a task", &sql, (id.0.clone(), after), page).await
    }

    async fn pages_named(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<Page>> {
        let sql = format!(
            "SELECT {PAGE} FROM psa.{{source}}_pages p
             WHERE p.task_id = $1 AND p.page IN (SELECT unnest($2::JSON::BIGINT[]))
             ORDER BY p.page"
        );
        let params = (id.0.clone(), super::set(&pages)?);
        self.select("read pages of a task", &sql, params, page).await
    }

    async fn missing_after(
        &self,
        id: &ExtractionId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RangeInclusive<i64>>> {
        let sql = format!(
            "{GAPS} SELECT greatest(first, $2 + 1)::BIGINT, last::BIGINT FROM gaps
             WHERE last > $2 ORDER BY last LIMIT {limit}"
        );
        let read = |row: &Row<'_>| Ok(row.get(0)?..=row.get(1)?);
        self.select("find missing pages", &sql, (id.0.clone(), after), read).await
    }

    async fn missing_count(&self, id: &ExtractionId) -> Result<i64> {
        let sql = format!("{GAPS} SELECT coalesce(sum(last - first + 1), 0)::BIGINT FROM gaps");
        let read = |row: &Row<'_>| row.get(0);
        let found = self.select("count missing pages", &sql, (id.0.clone(),), read).await?;
        Ok(found.first().copied().unwrap_or(0))
    }

    async fn opening(
        &self,
        id: &ExtractionId,
        response: Uuid,
        most: usize,
    ) -> Result<Option<String>> {
        let sql = "SELECT left(response_content::VARCHAR, $3) FROM psa.{source}_raw_responses
                   WHERE id = $1 AND task_id = $2 LIMIT 1";
        let params = (response, id.0.clone(), i64::try_from(most).unwrap_or(i64::MAX));
        let found = self.select("read the beginning of a body", sql, params, |row| row.get(0));
        Ok(found.await?.pop().flatten())
    }

    async fn page_failures(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<PageFailure>> {
        let sql = "SELECT page, epoch_us(max(extracted_at)), arg_max(response_code, id),
                          arg_max(coalesce(error, ''), id)
                   FROM psa.{source}_raw_responses
                   WHERE task_id = $1 AND outcome = 'failed' 
                     AND page IN (SELECT unnest($2::JSON::BIGINT[]))
                   GROUP BY page ORDER BY page";
        let read = |row: &Row<'_>| {
            let (page, at) =
                (row.get(0)?, timestamp(row.get::<_, Option<i64>>(1)?.unwrap_or_default()));
            Ok(PageFailure { page, at, code: row.get(2)?, error: row.get(3)? })
        };
        let params = (id.0.clone(), super::set(&pages)?);
        self.select("find failures of pages", sql, params, read).await
    }
}
