//! Dead letters.

use async_trait::async_trait;
use lavra_db::tokio_postgres::types::Type;
use lavra_db::tokio_postgres::{self, Row};
use uuid::Uuid;

use super::{Postgres, rows};
use crate::error::{Error, Result};
use crate::model::{DeadLetterId, TaskId};
use crate::store::{DeadLetter, DeadLetters};

const LETTER: &str = "id, task_id, type, reason, body, created_at";

fn letter(row: &Row) -> Result<DeadLetter, tokio_postgres::Error> {
    let task: Option<Uuid> = row.try_get(1)?;
    Ok(DeadLetter {
        id: DeadLetterId(row.try_get(0)?),
        task_id: task.map(TaskId),
        kind: row.try_get(2)?,
        reason: row.try_get(3)?,
        body: row.try_get(4)?,
        created_at: row.try_get(5)?,
    })
}

#[async_trait]
impl DeadLetters for Postgres {
    async fn dead_letters(
        &self,
        before: Option<DeadLetterId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>> {
        let operation = "list the dead letters";
        let sql = format!(
            "SELECT {LETTER} FROM kodus_workflow.task_dead_letters
             WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2"
        );
        let (before, limit) = (before.map(|id| id.0), limit as i64);
        let params = [(&before as _, Type::UUID), (&limit as _, Type::INT8)];
        let answer = self.pg.query(operation, &sql, &params).await?;
        rows(operation, &answer, letter)
    }

    async fn dead_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>> {
        let operation = "read a dead letter";
        let sql = format!("SELECT {LETTER} FROM kodus_workflow.task_dead_letters WHERE id = $1");
        let answer = self.pg.query(operation, &sql, &[(&id.0 as _, Type::UUID)]).await?;
        Ok(rows(operation, &answer, letter)?.pop())
    }

    async fn bury(&self, letter: DeadLetter) -> Result<()> {
        let sql = "INSERT INTO kodus_workflow.task_dead_letters (id, task_id, type, reason, body)
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
        let task = letter.task_id.map(|id| id.0);
        // PostgreSQL's text cannot hold a zero byte, and a dead letter may hold anything.
        let body = letter.body.map(|body| body.replace('\0', "\u{FFFD}"));
        let params = [
            (&letter.id.0 as _, Type::UUID),
            (&task as _, Type::UUID),
            (&letter.kind as _, Type::TEXT),
            (&letter.reason as _, Type::TEXT),
            (&body as _, Type::TEXT),
        ];
        self.pg.query("keep a dead letter", sql, &params).await.map_err(Error::from)?;
        Ok(())
    }

    async fn remove_dead_letter(&self, id: DeadLetterId) -> Result<bool> {
        let operation = "remove a dead letter";
        let sql = "DELETE FROM kodus_workflow.task_dead_letters WHERE id = $1 RETURNING id";
        Ok(!self.pg.query(operation, sql, &[(&id.0 as _, Type::UUID)]).await?.is_empty())
    }
}
