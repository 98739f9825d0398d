//! The rows of jobs.

use std::time::Duration;

use async_trait::async_trait;
use jiff::SignedDuration;
use lavra_db::duckdb::{self, Connection, OptionalExt, Row, params};
use lavra_db::{micros, timestamp};
use uuid::Uuid;

use super::DuckDb;
use crate::failure::Failure;
use crate::model::{FailedItem, Job, JobId, Outcome, Progress, Status};
use crate::store::{Added, Claim, Jobs, Stopped};

const JOB: &str = "SELECT job_id, status, total, processed, success_count, failed_count, \
    duplicate_count, unknown_keys, error_code, error_message, epoch_us(created_at), \
    epoch_us(started_at), epoch_us(completed_at), request, has_headers, token \
    FROM kodus_workflow.writer_jobs";

#[async_trait]
impl Jobs for DuckDb {
    async fn probe(&self) -> Result<(), Failure> {
        let look = |connection: &Connection| connection.execute_batch("SELECT 1");
        Ok(self.duck.read("look whether the database answers", look).await?)
    }

    async fn add(
        &self,
        id: &JobId,
        request: &str,
        has_secret: bool,
        _: Option<Uuid>,
        waiting: usize,
    ) -> Result<Added, Failure> {
        let (id, request, now) = (id.clone(), request.to_owned(), self.now());
        let read = self.duck.schema().apply(JOB).into_owned() + " WHERE job_id = $1";
        let count = self.duck.sql(
            "SELECT count(*) FROM kodus_workflow.writer_jobs
             WHERE completed_at IS NULL AND held_by IS NULL",
        );
        let insert = self.duck.sql(
            "INSERT INTO kodus_workflow.writer_jobs (job_id, request, has_headers, created_at)
             VALUES ($1, $2, $3, make_timestamp($4))",
        );
        let job = move |tx: &Connection| {
            if let Some((known, before)) = stored(tx, &read, &id)? {
                return Ok(if before == request { Added::Known(known) } else { Added::Differs });
            }
            let waits: i64 = tx.query_row(&count, [], |row| row.get(0))?;
            if waits >= waiting as i64 {
                return Ok(Added::Full);
            }
            tx.execute(&insert, params![id.as_str(), request, has_secret, now])?;
            let made = stored(tx, &read, &id)?;
            made.map(|(job, _)| Added::New(job)).ok_or(duckdb::Error::QueryReturnedNoRows)
        };
        Ok(self.duck.write("add a job", job).await?)
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, Failure> {
        let read = self.duck.schema().apply(JOB).into_owned() + " WHERE job_id = $1";
        let id = id.clone();
        let look = move |connection: &Connection| stored(connection, &read, &id);
        Ok(self.duck.read("read a job", look).await?.map(|(job, _)| job))
    }

    async fn failed_sizes(
        &self,
        id: &JobId,
        after: Option<u64>,
    ) -> Result<Vec<(u64, usize)>, Failure> {
        let sql = self.duck.sql(
            "SELECT item_index, CAST(strlen(data) + strlen(error) AS BIGINT)
             FROM kodus_workflow.writer_failed_items
             WHERE job_id = $1 AND item_index > $2 ORDER BY item_index",
        );
        let (id, after) =
            (id.clone(), after.map_or(-1, |index| i64::try_from(index).unwrap_or(i64::MAX)));
        let look = move |connection: &Connection| {
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map(params![id.as_str(), after], |row| {
                let (index, size): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok((index as u64, size as usize))
            })?;
            rows.collect()
        };
        Ok(self.duck.read("measure failed items", look).await?)
    }

    async fn failed_items(
        &self,
        id: &JobId,
        after: Option<u64>,
        last: u64,
    ) -> Result<Vec<FailedItem>, Failure> {
        let sql = self.duck.sql(
            "SELECT item_index, data, error FROM kodus_workflow.writer_failed_items
             WHERE job_id = $1 AND item_index > $2 AND item_index <= $3 ORDER BY item_index",
        );
        let (id, after) =
            (id.clone(), after.map_or(-1, |index| i64::try_from(index).unwrap_or(i64::MAX)));
        let look = move |connection: &Connection| {
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map(params![id.as_str(), after, last as i64], |row| {
                let index: i64 = row.get(0)?;
                Ok(FailedItem { index: index as u64, data: row.get(1)?, error: row.get(2)? })
            })?;
            rows.collect()
        };
        Ok(self.duck.read("read failed items", look).await?)
    }

    /// Nobody else could miss it.
    async fn beat(&self, _: Uuid, _: Duration) -> Result<(), Failure> {
        Ok(())
    }

    /// A job that is not in hand is nobody's: the file has one owner at a time.
    async fn claim(
        &self,
        process: Uuid,
        _: Duration,
        in_hand: &[String],
    ) -> Result<Option<Claim>, Failure> {
        let next = self.duck.schema().apply(JOB).into_owned()
            + " WHERE completed_at IS NULL
                  AND NOT list_contains(CAST(CAST($1 AS JSON) AS VARCHAR[]), job_id)
                ORDER BY created_at, job_id LIMIT 1";
        let take = self.duck.sql(
            "UPDATE kodus_workflow.writer_jobs
             SET held_by = $2, token = $3, started_at = coalesce(started_at, make_timestamp($4))
             WHERE job_id = $1",
        );
        let (now, in_hand) = (self.now(), serde_json::json!(in_hand).to_string());
        let job = move |tx: &Connection| {
            let found = tx
                .query_row(&next, params![in_hand], |row| {
                    let id: String = row.get(0)?;
                    let token: i64 = row.get(15)?;
                    let request: String = row.get(13)?;
                    Ok((id, request.into(), row.get(14)?, token + 1, progress(row)?))
                })
                .optional()?;
            let Some((id, request, has_secret, token, progress)) = found else { return Ok(None) };
            tx.execute(&take, params![id, process, token, now])?;
            let id = JobId::parse(&id).ok_or(duckdb::Error::QueryReturnedNoRows)?;
            Ok(Some(Claim { id, token, request, has_secret, progress }))
        };
        Ok(self.duck.write("claim a job", job).await?)
    }

    async fn restart(&self, claim: &Claim) -> Result<(), Stopped> {
        let delete =
            self.duck.sql("DELETE FROM kodus_workflow.writer_failed_items WHERE job_id = $1");
        let reset = self.duck.sql(
            "UPDATE kodus_workflow.writer_jobs
             SET total = 0, processed = 0, success_count = 0, failed_count = 0,
                 duplicate_count = 0, unknown_keys = '{}'
             WHERE job_id = $1",
        );
        self.guarded("begin a job", claim, move |tx, id| {
            tx.execute(&delete, [id])?;
            tx.execute(&reset, [id])?;
            Ok(())
        })
        .await
    }

    async fn end(
        &self,
        claim: &Claim,
        progress: &Progress,
        outcome: &Outcome,
    ) -> Result<(), Stopped> {
        let (status, failure) = match outcome {
            Outcome::Done(status) => (*status, None),
            Outcome::Failed(failure) => (Status::Failed, Some(failure)),
        };
        let sql = self.duck.sql(
            "UPDATE kodus_workflow.writer_jobs
             SET status = $2, error_code = $3, error_message = $4, total = greatest(total, $5),
                 completed_at = coalesce(completed_at, make_timestamp($6)), held_by = NULL
             WHERE job_id = $1",
        );
        let code = failure.map(|failure| failure.code.as_str());
        let message = failure.map(|failure| failure.message.clone());
        let (total, now) = (progress.total as i64, self.now());
        self.guarded("end a job", claim, move |tx, id| {
            tx.execute(&sql, params![id, status.as_str(), code, message, total, now])?;
            Ok(())
        })
        .await
    }

    async fn release(&self, claim: &Claim) -> Result<(), Failure> {
        let sql =
            self.duck.sql("UPDATE kodus_workflow.writer_jobs SET held_by = NULL WHERE job_id = $1");
        let given = self.guarded("give a job back", claim, move |tx, id| {
            tx.execute(&sql, [id])?;
            Ok(())
        });
        match given.await {
            Ok(()) | Err(Stopped::Replaced) => Ok(()),
            Err(Stopped::Failed(failure)) => Err(failure),
        }
    }

    async fn leave(&self, _: Uuid) -> Result<(), Failure> {
        Ok(())
    }

    async fn forget(&self, kept: Duration, most: usize) -> Result<usize, Failure> {
        let kept = SignedDuration::try_from(kept).unwrap_or(SignedDuration::MAX);
        let now = self.duck.clock().now();
        let Ok(before) = now.checked_sub(kept) else { return Ok(0) };
        let old = self.duck.sql(
            "SELECT job_id FROM kodus_workflow.writer_jobs
             WHERE completed_at < make_timestamp($1) LIMIT $2",
        );
        let of_old = "job_id IN (SELECT unnest(CAST(CAST($1 AS JSON) AS VARCHAR[])))";
        let items = format!("DELETE FROM kodus_workflow.writer_failed_items WHERE {of_old}");
        let jobs = format!("DELETE FROM kodus_workflow.writer_jobs WHERE {of_old}");
        let [items, jobs] = [items, jobs].map(|sql| self.duck.schema().apply(&sql).into_owned());
        let (before, most) = (micros(before), most as i64);
        let job = move |tx: &Connection| {
            let mut found = tx.prepare(&old)?;
            let found = found.query_map(params![before, most], |row| row.get(0))?;
            let found: Vec<String> = found.collect::<duckdb::Result<_>>()?;
            let ids = serde_json::json!(found).to_string();
            tx.execute(&items, [&ids])?;
            tx.execute(&jobs, [&ids])?;
            Ok(found.len())
        };
        Ok(self.duck.write("remove old jobs", job).await?)
    }
}

impl DuckDb {
    /// Runs a job in a transaction of its claim; not at all if that is over.
    pub(super) async fn guarded<T, F>(
        &self,
        operation: &'static str,
        claim: &Claim,
        mut job: F,
    ) -> Result<T, Stopped>
    where
        T: Send + 'static,
        F: FnMut(&Connection, &str) -> duckdb::Result<T> + Send + 'static,
    {
        let guard = self.duck.sql("SELECT token FROM kodus_workflow.writer_jobs WHERE job_id = $1");
        let (id, token) = (claim.id.clone(), claim.token);
        let guarded = move |tx: &Connection| {
            let last: Option<i64> =
                tx.query_row(&guard, [id.as_str()], |row| row.get(0)).optional()?;
            if last == Some(token) { job(tx, id.as_str()).map(Some) } else { Ok(None) }
        };
        self.duck.write(operation, guarded).await?.ok_or(Stopped::Replaced)
    }

    pub(super) fn now(&self) -> i64 {
        micros(self.duck.clock().now())
    }
}

fn stored(connection: &Connection, sql: &str, id: &JobId) -> duckdb::Result<Option<(Job, String)>> {
    let read = |row: &Row<'_>| {
        let status: String = row.get(1)?;
        let time =
            |at: usize| Ok::<_, duckdb::Error>(row.get::<_, Option<i64>>(at)?.map(timestamp));
        let job = Job {
            id: id.clone(),
            status: Status::parse(&status),
            progress: progress(row)?,
            error_code: row.get(8)?,
            error_message: row.get(9)?,
            created_at: timestamp(row.get(10)?),
            started_at: time(11)?,
            completed_at: time(12)?,
        };
        Ok((job, row.get(13)?))
    };
    connection.query_row(sql, [id.as_str()], read).optional()
}

fn progress(row: &Row<'_>) -> duckdb::Result<Progress> {
    let number = |at: usize| row.get::<_, i64>(at).map(|number| number as u64);
    let unknown: String = row.get(7)?;
    Ok(Progress {
        total: number(2)?,
        processed: number(3)?,
        success_count: number(4)?,
        failed_count: number(5)?,
        duplicate_count: number(6)?,
        unknown_keys: serde_json::from_str(&unknown).unwrap_or_default(),
    })
}
