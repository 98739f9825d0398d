//! The rows of jobs.

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::types::{FromSqlOwned, Type};
use uuid::Uuid;

use super::Postgres;
use crate::failure::{Code, Failure};
use crate::model::{FailedItem, Job, JobId, Outcome, Progress, Status};
use crate::store::{Added, Claim, Jobs, Stopped};

const JOB: &str = "job_id, status, total, processed, success_count, failed_count, duplicate_count, \
                   unknown_keys, error_code, error_message, created_at, started_at, completed_at";

#[async_trait]
impl Jobs for Postgres {
    async fn probe(&self) -> Result<(), Failure> {
        self.pg.query("look whether the database answers", "SELECT 1", &[]).await?;
        Ok(())
    }

    async fn add(
        &self,
        id: &JobId,
        request: &str,
        has_secret: bool,
        holder: Option<Uuid>,
        waiting: usize,
    ) -> Result<Added, Failure> {
        let sql = format!(
            "INSERT INTO kodus_workflow.writer_jobs (job_id, request, has_headers, held_by)
             SELECT $1, $2, $3, $5
             WHERE (SELECT count(*) FROM kodus_workflow.writer_jobs
                    WHERE completed_at IS NULL AND (held_by IS NULL OR token = 0)) < $4
             ON CONFLICT (job_id) DO NOTHING
             RETURNING {JOB}"
        );
        let (id_text, waiting) = (id.as_str(), waiting as i64);
        let params = [
            (&id_text as _, Type::TEXT),
            (&request as _, Type::TEXT),
            (&has_secret as _, Type::BOOL),
            (&waiting as _, Type::INT8),
            (&holder as _, Type::UUID),
        ];
        let rows = self.pg.query("add a job", &sql, &params).await?;
        if let Some(row) = rows.first() {
            return Ok(Added::New(job(row)?));
        }
        let sql =
            format!("SELECT {JOB}, request FROM kodus_workflow.writer_jobs WHERE job_id = $1");
        let rows = self.pg.query("add a job", &sql, &params[..1]).await?;
        let Some(row) = rows.first() else { return Ok(Added::Full) };
        if get::<String>(row, "request")? == request {
            Ok(Added::Known(job(row)?))
        } else {
            Ok(Added::Differs)
        }
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, Failure> {
        let sql = format!("SELECT {JOB} FROM kodus_workflow.writer_jobs WHERE job_id = $1");
        let params = [(&id.as_str() as _, Type::TEXT)];
        let rows = self.pg.query("read a job", &sql, &params).await?;
        rows.first().map(job).transpose()
    }

    async fn failed_sizes(
        &self,
        id: &JobId,
        after: Option<u64>,
    ) -> Result<Vec<(u64, usize)>, Failure> {
        let sql = "SELECT item_index, octet_length(data)::int8 + octet_length(error) AS size
                   FROM kodus_workflow.writer_failed_items
                   WHERE job_id = $1 AND item_index > $2 ORDER BY item_index";
        let after = after.map_or(-1, |index| i64::try_from(index).unwrap_or(i64::MAX));
        let params = [(&id.as_str() as _, Type::TEXT), (&after as _, Type::INT8)];
        let rows = self.pg.query("measure failed items", sql, &params).await?;
        let number = |row: &Row, name| get::<i64>(row, name);
        rows.iter()
            .map(|row| Ok((number(row, "item_index")? as u64, number(row, "size")? as usize)))
            .collect()
    }

    async fn failed_items(
        &self,
        id: &JobId,
        after: Option<u64>,
        last: u64,
    ) -> Result<Vec<FailedItem>, Failure> {
        let sql = "SELECT item_index, data, error FROM kodus_workflow.writer_failed_items
                   WHERE job_id = $1 AND item_index > $2 AND item_index <= $3 ORDER BY item_index";
        let after = after.map_or(-1, |index| i64::try_from(index).unwrap_or(i64::MAX));
        let params = [
            (&id.as_str() as _, Type::TEXT),
            (&after as _, Type::INT8),
            (&(last as i64) as _, Type::INT8),
        ];
        let rows = self.pg.query("read failed items", sql, &params).await?;
        rows.iter()
            .map(|row| {
                Ok(FailedItem {
                    index: get::<i64>(row, "item_index")? as u64,
                    data: get(row, "data")?,
                    error: get(row, "error")?,
                })
            })
            .collect()
    }

    async fn beat(&self, process: Uuid, stale: Duration) -> Result<(), Failure> {
        let sql = "WITH gone AS (
                       DELETE FROM kodus_workflow.writer_processes
                       WHERE seen_at < now() - make_interval(secs => 10 * $2) AND id <> $1
                   )
                   INSERT INTO kodus_workflow.writer_processes (id, seen_at) VALUES ($1, now())
                   ON CONFLICT (id) DO UPDATE SET seen_at = now()";
        let params = [(&process as _, Type::UUID), (&stale.as_secs_f64() as _, Type::FLOAT8)];
        self.pg.query("renew the writer's row", sql, &params).await?;
        Ok(())
    }

    async fn claim(
        &self,
        process: Uuid,
        stale: Duration,
        in_hand: &[String],
    ) -> Result<Option<Claim>, Failure> {
        let sql = "WITH next AS (
                SELECT job_id FROM kodus_workflow.writer_jobs AS j
                WHERE completed_at IS NULL AND job_id <> ALL ($3) AND NOT EXISTS (
                    SELECT FROM kodus_workflow.writer_processes AS p
                    WHERE p.id = j.held_by AND p.id <> $1
                      AND p.seen_at > now() - make_interval(secs => $2))
                ORDER BY created_at, job_id LIMIT 1
                FOR UPDATE SKIP LOCKED
            )
            UPDATE kodus_workflow.writer_jobs AS j
            SET held_by = $1, token = j.token + 1, started_at = coalesce(j.started_at, now())
            FROM next WHERE j.job_id = next.job_id
            RETURNING j.job_id, j.token, j.request, j.has_headers, j.total, j.processed,
                j.success_count, j.failed_count, j.duplicate_count, j.unknown_keys";
        let params = [
            (&process as _, Type::UUID),
            (&stale.as_secs_f64() as _, Type::FLOAT8),
            (&in_hand as _, Type::TEXT_ARRAY),
        ];
        let rows = self.pg.query("claim a job", sql, &params).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Claim {
            id: id(row)?,
            token: get(row, "token")?,
            request: get::<String>(row, "request")?.into(),
            has_secret: get(row, "has_headers")?,
            progress: progress(row)?,
        }))
    }

    async fn restart(&self, claim: &Claim) -> Result<(), Stopped> {
        let mut transaction = self.pg.transaction("begin a job").await?;
        let sql = "DELETE FROM kodus_workflow.writer_failed_items WHERE job_id = (
                       SELECT job_id FROM kodus_workflow.writer_jobs
                       WHERE job_id = $1 AND token = $2 AND completed_at IS NULL FOR UPDATE)";
        let params = [(&claim.id.as_str() as _, Type::TEXT), (&claim.token as _, Type::INT8)];
        transaction.query(sql, &params).await?;
        let sql = "UPDATE kodus_workflow.writer_jobs
                   SET total = 0, processed = 0, success_count = 0, failed_count = 0,
                       duplicate_count = 0, unknown_keys = '{}'
                   WHERE job_id = $1 AND token = $2 AND completed_at IS NULL RETURNING 1";
        let rows = transaction.finish(sql, &params).await?;
        if rows.is_empty() { Err(Stopped::Replaced) } else { Ok(()) }
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
        let sql = "UPDATE kodus_workflow.writer_jobs
                   SET status = $3, error_code = $4, error_message = $5,
                       total = greatest(total, $6), completed_at = coalesce(completed_at, now()),
                       held_by = NULL
                   WHERE job_id = $1 AND token = $2 RETURNING 1";
        let code = failure.map(|failure| failure.code.as_str());
        let message = failure.map(|failure| failure.message.as_str());
        let params = [
            (&claim.id.as_str() as _, Type::TEXT),
            (&claim.token as _, Type::INT8),
            (&status.as_str() as _, Type::TEXT),
            (&code as _, Type::TEXT),
            (&message as _, Type::TEXT),
            (&(progress.total as i64) as _, Type::INT8),
        ];
        let rows = self.pg.query("end a job", sql, &params).await?;
        if rows.is_empty() { Err(Stopped::Replaced) } else { Ok(()) }
    }

    async fn release(&self, claim: &Claim) -> Result<(), Failure> {
        let sql = "UPDATE kodus_workflow.writer_jobs SET held_by = NULL
                   WHERE job_id = $1 AND token = $2 AND completed_at IS NULL";
        let params = [(&claim.id.as_str() as _, Type::TEXT), (&claim.token as _, Type::INT8)];
        self.pg.query("give a job back", sql, &params).await?;
        Ok(())
    }

    async fn leave(&self, process: Uuid) -> Result<(), Failure> {
        let sql = "DELETE FROM kodus_workflow.writer_processes WHERE id = $1";
        self.pg.query("remove the writer's row", sql, &[(&process as _, Type::UUID)]).await?;
        Ok(())
    }

    async fn forget(&self, kept: Duration, most: usize) -> Result<usize, Failure> {
        let sql = "DELETE FROM kodus_workflow.writer_jobs WHERE job_id IN (
                       SELECT job_id FROM kodus_workflow.writer_jobs
                       WHERE completed_at < now() - make_interval(secs => $1) LIMIT $2)
                   RETURNING 1";
        let params = [(&kept.as_secs_f64() as _, Type::FLOAT8), (&(most as i64) as _, Type::INT8)];
        Ok(self.pg.query("remove old jobs", sql, &params).await?.len())
    }
}

pub(super) fn get<T: FromSqlOwned>(row: &Row, name: &str) -> Result<T, Failure> {
    row.try_get(name).map_err(|error| {
        Failure::new(Code::Internal, format!("the column {name} cannot be read: {error}"))
    })
}

fn id(row: &Row) -> Result<JobId, Failure> {
    let text: String = get(row, "job_id")?;
    let wrong = || Failure::new(Code::Internal, "a job has an id that is none");
    JobId::parse(&text).ok_or_else(wrong)
}

fn job(row: &Row) -> Result<Job, Failure> {
    Ok(Job {
        id: id(row)?,
        status: Status::parse(&get::<String>(row, "status")?),
        progress: progress(row)?,
        error_code: get(row, "error_code")?,
        error_message: get(row, "error_message")?,
        created_at: get(row, "created_at")?,
        started_at: get(row, "started_at")?,
        completed_at: get(row, "completed_at")?,
    })
}

pub(super) fn progress(row: &Row) -> Result<Progress, Failure> {
    let number = |name| get::<i64>(row, name).map(|number| number as u64);
    Ok(Progress {
        total: number("total")?,
        processed: number("processed")?,
        success_count: number("success_count")?,
        failed_count: number("failed_count")?,
        duplicate_count: number("duplicate_count")?,
        unknown_keys: serde_json::from_str(&get::<String>(row, "unknown_keys")?)
            .unwrap_or_default(),
    })
}
