//! Webhooks, as people add, change and remove them.

use lavra_db::tokio_postgres::Row;
use lavra_db::tokio_postgres::error::SqlState;
use lavra_db::tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Postgres, get};
use crate::error::{Error, Result};
use crate::model::{Topic, Webhook, WebhookId};
use crate::store::{Edit, Edited, New, Outcome};

const COLUMNS: &str = "id, name, url, events, active, created_at, last_ok_at, last_error, since, \
    sealed";

/// The first one ever begins the reading. What is below the oldest transaction that is open has
/// happened before. Some times are the server's and some are this process's, which may be a moment
/// behind: what comes right after must not look as if it had been before.
const ADD: &str = "
WITH added AS (
    INSERT INTO lavra.webhooks (id, workflow, name, url, events, sealed, since)
    VALUES ($1, 'kodus_workflow', $2, $3, $4, $5, LEAST(now(), $7))
    ON CONFLICT (workflow, name) DO NOTHING
    RETURNING id
), begun AS (
    INSERT INTO lavra.webhook_position (workflow, transaction, event, floor, mark, marked_at)
    SELECT 'kodus_workflow', pg_snapshot_xmin(s)::text::int8 - 1, $6,
           now() - make_interval(secs => $8), pg_snapshot_xmax(s)::text::int8, now()
    FROM pg_current_snapshot() s
    ON CONFLICT DO NOTHING
)
SELECT id FROM added";

const EDIT: &str = "
UPDATE lavra.webhooks SET
    name = coalesce($2, name), url = coalesce($3, url), sealed = coalesce($4, sealed),
    events = coalesce($5, events), active = coalesce($6, active),
    since = CASE WHEN $6 AND NOT active THEN LEAST(now(), $7) ELSE since END
WHERE id = $1 AND workflow = 'kodus_workflow'
RETURNING id";

const NOTE: &str = "
UPDATE lavra.webhooks SET
    last_ok_at = CASE WHEN $3 THEN now() ELSE last_ok_at END,
    last_error = $4, active = active AND NOT $5
WHERE id = $1 AND sealed = $2";

fn words(events: &[Topic]) -> Vec<&'static str> {
    events.iter().copied().map(Topic::as_str).collect()
}

fn webhook(operation: &'static str, row: &Row) -> Result<Webhook> {
    let events: Vec<String> = get(operation, row, 3)?;
    Ok(Webhook {
        id: WebhookId(get(operation, row, 0)?),
        name: get(operation, row, 1)?,
        url: get(operation, row, 2)?,
        // What a newer version knows beside ours is not for us to tell.
        events: events.iter().filter_map(|word| word.parse().ok()).collect(),
        active: get(operation, row, 4)?,
        created_at: get(operation, row, 5)?,
        last_ok_at: get(operation, row, 6)?,
        last_error: get(operation, row, 7)?,
        since: get(operation, row, 8)?,
        sealed: get(operation, row, 9)?,
    })
}

impl Postgres {
    pub(super) async fn insert(&self, new: New) -> Result<Edited> {
        let (events, end) = (words(&new.events), Uuid::max());
        let (now, late) = (self.pg.clock().now(), self.late.as_secs_f64());
        let params = [
            (&new.id.0 as _, Type::UUID),
            (&new.name as _, Type::TEXT),
            (&new.url as _, Type::TEXT),
            (&events as _, Type::TEXT_ARRAY),
            (&new.sealed as _, Type::TEXT),
            (&end as _, Type::UUID),
            (&now as _, Type::TIMESTAMPTZ),
            (&late as _, Type::FLOAT8),
        ];
        let added = self.pg.query("add a webhook", ADD, &params).await?;
        Ok(if added.is_empty() { Edited::NameTaken } else { Edited::Done })
    }

    pub(super) async fn update(&self, id: WebhookId, edit: Edit) -> Result<Edited> {
        let (events, now) = (edit.events.as_deref().map(words), self.pg.clock().now());
        let params = [
            (&id.0 as _, Type::UUID),
            (&edit.name as _, Type::TEXT),
            (&edit.url as _, Type::TEXT),
            (&edit.sealed as _, Type::TEXT),
            (&events as _, Type::TEXT_ARRAY),
            (&edit.active as _, Type::BOOL),
            (&now as _, Type::TIMESTAMPTZ),
        ];
        match self.pg.query("change a webhook", EDIT, &params).await {
            Ok(changed) if changed.is_empty() => Ok(Edited::NotFound),
            Ok(_) => Ok(Edited::Done),
            Err(lavra_db::Error::Postgres { source, .. })
                if source.code() == Some(&SqlState::UNIQUE_VIOLATION) =>
            {
                Ok(Edited::NameTaken)
            }
            Err(error) => Err(Error::Database(error)),
        }
    }

    pub(super) async fn delete(&self, id: WebhookId) -> Result<Edited> {
        let sql = "DELETE FROM lavra.webhooks WHERE id = $1 AND workflow = 'kodus_workflow'
                   RETURNING id";
        let gone = self.pg.query("remove a webhook", sql, &[(&id.0 as _, Type::UUID)]).await?;
        Ok(if gone.is_empty() { Edited::NotFound } else { Edited::Done })
    }

    pub(super) async fn select_one(&self, id: WebhookId) -> Result<Option<Webhook>> {
        let operation = "read a webhook";
        let sql = format!(
            "SELECT {COLUMNS} FROM lavra.webhooks WHERE id = $1 AND workflow = 'kodus_workflow'"
        );
        let rows = self.pg.query(operation, &sql, &[(&id.0 as _, Type::UUID)]).await?;
        rows.first().map(|row| webhook(operation, row)).transpose()
    }

    pub(super) async fn select_all(&self) -> Result<Vec<Webhook>> {
        let operation = "read the webhooks";
        let sql = format!(
            "SELECT {COLUMNS} FROM lavra.webhooks WHERE workflow = 'kodus_workflow'
             ORDER BY created_at, id"
        );
        let rows = self.pg.query_prepared(operation, &sql, &[]).await?;
        rows.iter().map(|row| webhook(operation, row)).collect()
    }

    pub(super) async fn note_outcome(
        &self,
        id: WebhookId,
        sealed: &str,
        outcome: &Outcome,
    ) -> Result<()> {
        let (error, is_gone) = match outcome {
            Outcome::Taken => (None, false),
            Outcome::Failed(error) => (Some(error), false),
            Outcome::Gone(error) => (Some(error), true),
        };
        let is_taken = error.is_none();
        let params = [
            (&id.0 as _, Type::UUID),
            (&sealed as _, Type::TEXT),
            (&is_taken as _, Type::BOOL),
            (&error as _, Type::TEXT),
            (&is_gone as _, Type::BOOL),
        ];
        self.pg.query("note what came of a webhook", NOTE, &params).await?;
        Ok(())
    }
}
