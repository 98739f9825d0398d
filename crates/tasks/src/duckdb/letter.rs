//! Dead letters: tasks that failed for good, and messages that nobody could read.

use async_trait::async_trait;
use lavra_db::duckdb::{self, Connection, Row};
use lavra_db::timestamp;
use uuid::Uuid;

use super::append::{self, Letter};
use super::{DuckDb, all};
use crate::error::Result;
use crate::model::{DeadLetterId, TaskId};
use crate::store::{DeadLetter, DeadLetters};

const LETTER: &str = "id, task_id, type, reason, body, epoch_us(created_at)";

fn letter(row: &Row<'_>) -> duckdb::Result<DeadLetter> {
    let task: Option<Uuid> = row.get(1)?;
    Ok(DeadLetter {
        id: DeadLetterId(row.get(0)?),
        task_id: task.map(TaskId),
        kind: row.get(2)?,
        reason: row.get(3)?,
        body: row.get(4)?,
        created_at: timestamp(row.get(5)?),
    })
}

#[async_trait]
impl DeadLetters for DuckDb {
    async fn dead_letters(
        &self,
        before: Option<DeadLetterId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>> {
        let sql = format!(
            "SELECT {LETTER} FROM kodus_workflow.task_dead_letters
             WHERE $1::UUID IS NULL OR id < $1::UUID ORDER BY id DESC LIMIT $2"
        );
        let params = (before.map(|id| id.0), limit as i64);
        self.select("list the dead letters", &sql, params, letter).await
    }

    async fn dead_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>> {
        let sql = format!("SELECT {LETTER} FROM kodus_workflow.task_dead_letters WHERE id = $1");
        Ok(self.select("read a dead letter", &sql, (id.0,), letter).await?.pop())
    }

    /// The table has no key that would refuse a second one.
    async fn bury(&self, new: DeadLetter) -> Result<()> {
        let known = self.sql("SELECT 1 FROM kodus_workflow.task_dead_letters WHERE id = $1");
        let (now, schema) = (self.now(), self.duck.schema().name().to_owned());
        // As on PostgreSQL, whose text cannot hold a zero byte: a dead letter may hold anything.
        let body = new.body.map(|body| body.replace('\0', "\u{FFFD}"));
        let job = move |tx: &Connection| {
            if !all(tx, &known, (new.id.0,), |_| Ok(()))?.is_empty() {
                return Ok(());
            }
            let letter = Letter {
                id: new.id.0,
                task: new.task_id,
                kind: new.kind.as_deref(),
                reason: &new.reason,
                body: body.as_deref(),
            };
            append::letters(tx, &schema, now, std::iter::once(letter))
        };
        Ok(self.duck.write("keep a dead letter", job).await?)
    }

    async fn remove_dead_letter(&self, id: DeadLetterId) -> Result<bool> {
        let sql =
            self.sql("DELETE FROM kodus_workflow.task_dead_letters WHERE id = $1 RETURNING id");
        let job = move |tx: &Connection| all(tx, &sql, (id.0,), |_| Ok(()));
        Ok(!self.duck.write("remove a dead letter", job).await?.is_empty())
    }
}
