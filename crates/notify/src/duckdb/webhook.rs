//! Webhooks, as people add, change and remove them.

use lavra_db::duckdb::{self, Connection, Row};
use lavra_db::timestamp;
use uuid::Uuid;

use super::{DuckDb, all, change, exists, run, set, wrong};
use crate::error::Result;
use crate::model::{Topic, Webhook, WebhookId};
use crate::store::{Edit, Edited, New, Outcome};

const COLUMNS: &str = "id, name, url, to_json(events)::VARCHAR, active, epoch_us(created_at), \
    epoch_us(last_ok_at), last_error, epoch_us(since), sealed";

const NAMED: &str = "
SELECT 1 FROM lavra.webhooks WHERE workflow = 'kodus_workflow' AND name = $1 AND id <> $2";

const ADD: &str = "
INSERT INTO lavra.webhooks (id, workflow, name, url, events, sealed, created_at, since)
VALUES ($1, 'kodus_workflow', $2, $3, $4::JSON::VARCHAR[], $5, make_timestamp($6),
        make_timestamp($6))";

/// The first one ever begins the reading.
const BEGIN: &str = "
INSERT INTO lavra.webhook_position (workflow, transaction, event, floor, mark, marked_at)
SELECT 'kodus_workflow', coalesce(max(transaction), 0), $1, make_timestamp($2), 0,
       make_timestamp($2)
FROM kodus_workflow.task_events
ON CONFLICT DO NOTHING";

const EDIT: &str = "
UPDATE lavra.webhooks SET
    name = coalesce($2, name), url = coalesce($3, url), sealed = coalesce($4, sealed),
    events = coalesce($5::JSON::VARCHAR[], events), active = coalesce($6, active),
    since = CASE WHEN $6 AND NOT active THEN make_timestamp($7) ELSE since END
WHERE id = $1";

const NOTE: &str = "
UPDATE lavra.webhooks SET
    last_ok_at = CASE WHEN $3 THEN make_timestamp($6) ELSE last_ok_at END,
    last_error = $4, active = active AND NOT $5
WHERE id = $1 AND sealed = $2";

fn words(events: &[Topic]) -> duckdb::Result<String> {
    set(&events.iter().copied().map(Topic::as_str).collect::<Vec<_>>())
}

fn webhook(row: &Row<'_>) -> duckdb::Result<Webhook> {
    let events: String = row.get(3)?;
    let events: Vec<String> = serde_json::from_str(&events).map_err(wrong)?;
    let last_ok_at: Option<i64> = row.get(6)?;
    Ok(Webhook {
        id: WebhookId(row.get(0)?),
        name: row.get(1)?,
        url: row.get(2)?,
        // What a newer version knows beside ours is not for us to tell.
        events: events.iter().filter_map(|word| word.parse().ok()).collect(),
        active: row.get(4)?,
        created_at: timestamp(row.get(5)?),
        last_ok_at: last_ok_at.map(timestamp),
        last_error: row.get(7)?,
        since: timestamp(row.get(8)?),
        sealed: row.get(9)?,
    })
}

impl DuckDb {
    pub(super) async fn insert(&self, new: New) -> Result<Edited> {
        let (named, add, begin) = (self.sql(NAMED), self.sql(ADD), self.sql(BEGIN));
        let now = self.now();
        let job = move |tx: &Connection| {
            let New { id, name, url, events, sealed } = &new;
            if exists(tx, &named, (name, id.0))? {
                return Ok(Edited::NameTaken);
            }
            run(tx, &add, duckdb::params![id.0, name, url, words(events)?, sealed, now])?;
            run(tx, &begin, (Uuid::max(), now))?;
            Ok(Edited::Done)
        };
        Ok(self.duck.write("add a webhook", job).await?)
    }

    pub(super) async fn update(&self, id: WebhookId, edit: Edit) -> Result<Edited> {
        let (named, now) = (self.sql(NAMED), self.now());
        let job = move |tx: &Connection| {
            let Edit { name, url, sealed, events, active } = &edit;
            if let Some(name) = name
                && exists(tx, &named, (name, id.0))?
            {
                return Ok(Edited::NameTaken);
            }
            let events = events.as_deref().map(words).transpose()?;
            let params = duckdb::params![id.0, name, url, sealed, events, active, now];
            Ok(if change(tx, EDIT, params)? > 0 { Edited::Done } else { Edited::NotFound })
        };
        Ok(self.duck.write("change a webhook", job).await?)
    }

    pub(super) async fn delete(&self, id: WebhookId) -> Result<Edited> {
        let job = move |tx: &Connection| {
            let gone = change(tx, "DELETE FROM lavra.webhooks WHERE id = $1", (id.0,))?;
            Ok(if gone > 0 { Edited::Done } else { Edited::NotFound })
        };
        Ok(self.duck.write("remove a webhook", job).await?)
    }

    pub(super) async fn select_one(&self, id: WebhookId) -> Result<Option<Webhook>> {
        let sql = format!("SELECT {COLUMNS} FROM lavra.webhooks WHERE id = $1");
        let job = move |connection: &Connection| all(connection, &sql, (id.0,), webhook);
        Ok(self.duck.read("read a webhook", job).await?.pop())
    }

    pub(super) async fn select_all(&self) -> Result<Vec<Webhook>> {
        let sql = self.sql(&format!(
            "SELECT {COLUMNS} FROM lavra.webhooks WHERE workflow = 'kodus_workflow'
             ORDER BY created_at, id"
        ));
        let job = move |connection: &Connection| all(connection, &sql, (), webhook);
        Ok(self.duck.read("read the webhooks", job).await?)
    }

    pub(super) async fn note_outcome(
        &self,
        id: WebhookId,
        sealed: &str,
        outcome: &Outcome,
    ) -> Result<()> {
        let (error, is_gone) = match outcome {
            Outcome::Taken => (None, false),
            Outcome::Failed(error) => (Some(error.clone()), false),
            Outcome::Gone(error) => (Some(error.clone()), true),
        };
        let (sealed, now) = (sealed.to_owned(), self.now());
        let job = move |tx: &Connection| {
            let params = duckdb::params![id.0, sealed, error.is_none(), error, is_gone, now];
            run(tx, NOTE, params)
        };
        self.duck.write("note what came of a webhook", job).await?;
        Ok(())
    }
}
