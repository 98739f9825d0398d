//! The outbox: rows that stand until the broker has confirmed. Nothing is held open across a
//! publish; `next_at` in the future is the lease of whoever is publishing.

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::Type;

use super::{Postgres, rows, uuids};
use crate::error::Result;
use crate::model::{OutboxId, TaskId};
use crate::store::{Announcement, Outbox};

#[async_trait]
impl Outbox for Postgres {
    async fn take_announcements(&self, lease: Duration, limit: usize) -> Result<Vec<Announcement>> {
        let operation = "take messages from the outbox";
        let sql = "UPDATE kodus_workflow.task_outbox o
                   SET next_at = now() + make_interval(secs => $1), attempts = attempts + 1
                   WHERE id = ANY (ARRAY(
                       SELECT id FROM kodus_workflow.task_outbox WHERE next_at <= now()
                       ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED))
                   RETURNING o.id, o.task_id, o.type";
        let (lease, limit) = (lease.as_secs_f64(), limit as i64);
        let params = [(&lease as _, Type::FLOAT8), (&limit as _, Type::INT8)];
        let answer = self.pg.query(operation, sql, &params).await?;
        rows(operation, &answer, |row| {
            Ok(Announcement {
                id: OutboxId(row.try_get(0)?),
                task: TaskId(row.try_get(1)?),
                kind: row.try_get(2)?,
            })
        })
    }

    async fn announced(&self, ids: Vec<OutboxId>) -> Result<()> {
        let ids = uuids(&ids, |id| id.0);
        let sql = "DELETE FROM kodus_workflow.task_outbox WHERE id = ANY($1)";
        self.pg.query("clear the outbox", sql, &[(&ids as _, Type::UUID_ARRAY)]).await?;
        Ok(())
    }

    async fn postpone(&self, ids: Vec<OutboxId>, delay: Duration) -> Result<()> {
        let (ids, delay) = (uuids(&ids, |id| id.0), delay.as_secs_f64());
        let sql = "UPDATE kodus_workflow.task_outbox
                   SET next_at = now() + make_interval(secs => $2) WHERE id = ANY($1)";
        let params = [(&ids as _, Type::UUID_ARRAY), (&delay as _, Type::FLOAT8)];
        self.pg.query("postpone messages", sql, &params).await?;
        Ok(())
    }

    async fn announce_again(&self, kind: String, age: Duration, limit: usize) -> Result<usize> {
        let operation = "announce waiting tasks again";
        let sql = "INSERT INTO kodus_workflow.task_outbox (id, task_id, type)
                   SELECT gen_random_uuid(), t.id, t.type FROM kodus_workflow.tasks t
                   WHERE t.type = $1 AND t.status = 'PENDING' AND t.run_at IS NULL
                     AND t.updated_at < now() - make_interval(secs => $2)
                     AND NOT EXISTS (SELECT 1 FROM kodus_workflow.task_outbox o
                                     WHERE o.task_id = t.id)
                   ORDER BY t.priority DESC, t.id LIMIT $3
                   RETURNING id";
        let (age, limit) = (age.as_secs_f64(), limit as i64);
        let params =
            [(&kind as _, Type::TEXT), (&age as _, Type::FLOAT8), (&limit as _, Type::INT8)];
        Ok(self.pg.query(operation, sql, &params).await?.len())
    }

    async fn outbox_depth(&self) -> Result<i64> {
        let operation = "count the outbox";
        let sql = "SELECT count(*) FROM kodus_workflow.task_outbox";
        let answer = self.pg.query(operation, sql, &[]).await?;
        let counts = rows(operation, &answer, |row| row.try_get(0))?;
        Ok(counts.first().copied().unwrap_or(0))
    }
}
