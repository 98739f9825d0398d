//! The outbox: rows that stand until the broker has confirmed. Nothing is held open across a
//! publish; `next_at` in the future is the lease of whoever is publishing.

use std::time::Duration;

use async_trait::async_trait;
use lavra_db::duckdb::{Connection, Row};
use uuid::Uuid;

use super::append::{self, Message};
use super::{DuckDb, all, micros_of, run, set};
use crate::error::Result;
use crate::model::{OutboxId, TaskId};
use crate::store::{Announcement, Outbox};

#[async_trait]
impl Outbox for DuckDb {
    async fn take_announcements(&self, lease: Duration, limit: usize) -> Result<Vec<Announcement>> {
        let due = self.sql(
            "SELECT id, task_id, type FROM kodus_workflow.task_outbox
             WHERE epoch_us(next_at) <= $1 ORDER BY id LIMIT $2",
        );
        let take = self.sql(
            "UPDATE kodus_workflow.task_outbox
             SET next_at = make_timestamp($2), attempts = attempts + 1
             WHERE id IN (SELECT unnest($1::JSON::UUID[]))",
        );
        let now = self.now();
        let until = now.saturating_add(micros_of(lease));
        let job = move |tx: &Connection| {
            let found = all(tx, &due, (now, limit as i64), |row: &Row<'_>| {
                let (id, task) = (OutboxId(row.get(0)?), TaskId(row.get(1)?));
                Ok(Announcement { id, task, kind: row.get(2)? })
            })?;
            if !found.is_empty() {
                let ids: Vec<OutboxId> = found.iter().map(|one| one.id).collect();
                run(tx, &take, (set(&ids)?, until))?;
            }
            Ok(found)
        };
        Ok(self.duck.write("take messages from the outbox", job).await?)
    }

    async fn announced(&self, ids: Vec<OutboxId>) -> Result<()> {
        let sql = self.sql(
            "DELETE FROM kodus_workflow.task_outbox
             WHERE id IN (SELECT unnest($1::JSON::UUID[]))",
        );
        let job = move |tx: &Connection| run(tx, &sql, (set(&ids)?,));
        Ok(self.duck.write("clear the outbox", job).await?)
    }

    async fn postpone(&self, ids: Vec<OutboxId>, delay: Duration) -> Result<()> {
        let sql = self.sql(
            "UPDATE kodus_workflow.task_outbox SET next_at = make_timestamp($2)
             WHERE id IN (SELECT unnest($1::JSON::UUID[]))",
        );
        let next = self.now().saturating_add(micros_of(delay));
        let job = move |tx: &Connection| run(tx, &sql, (set(&ids)?, next));
        Ok(self.duck.write("postpone messages", job).await?)
    }

    async fn announce_again(&self, kind: String, age: Duration, limit: usize) -> Result<usize> {
        let silent = self.sql(
            "SELECT id FROM kodus_workflow.tasks t
             WHERE type = $1 AND status = 'PENDING' AND run_at IS NULL
               AND epoch_us(updated_at) < $2
               AND NOT EXISTS (SELECT 1 FROM kodus_workflow.task_outbox o WHERE o.task_id = t.id)
             ORDER BY priority DESC, id LIMIT $3",
        );
        let now = self.now();
        let before = now.saturating_sub(micros_of(age));
        let ids: Vec<Uuid> = (0..limit).map(|_| self.duck.clock().new_id()).collect();
        let schema = self.duck.schema().name().to_owned();
        let job = move |tx: &Connection| {
            let params = (&kind, before, limit as i64);
            let tasks = all(tx, &silent, params, |row| Ok(TaskId(row.get(0)?)))?;
            let messages = tasks.iter().zip(&ids);
            let messages = messages.map(|(task, id)| Message { id: *id, task: *task, kind: &kind });
            append::outbox(tx, &schema, now, messages)?;
            Ok(tasks.len())
        };
        Ok(self.duck.write("announce waiting tasks again", job).await?)
    }

    async fn outbox_depth(&self) -> Result<i64> {
        let sql = "SELECT count(*) FROM kodus_workflow.task_outbox";
        let counts = self.select("count the outbox", sql, (), |row| row.get(0)).await?;
        Ok(counts.first().copied().unwrap_or(0))
    }
}
