//! Missions of the bank and the queue, any number at once.
//!
//! [`crate::machine::mission::granted`] says what a wish makes of one mission; the statements here
//! say the same of many, and the contract compares the two.

use async_trait::async_trait;
use std::collections::HashSet;

use lavra_db::tokio_postgres::types::Type;
use serde_json::Value;

use super::condition::Conditions;
use super::{Lock, Postgres, TAKE_LOCK, get, refused};
use crate::error::{Error, Result};
use crate::machine::mission::Wish;
use crate::model::MissionId;
use crate::store::{Filter, NewMission, Wishes};

/// Each has a time of its own, in the order of the ids, so that the queue has an order.
const GRANT: &str = "
WITH chosen AS MATERIALIZED (
    SELECT m.id, m.checkpoint, m.logged_at FROM public.missions m
    WHERE {which} AND {may}
    ORDER BY m.id FOR NO KEY UPDATE
), timed AS MATERIALIZED (
    SELECT id, checkpoint, at,
           CASE WHEN logged_at >= at THEN logged_at + interval '1 microsecond' ELSE at END AS said_at
    FROM (
        SELECT *, statement_timestamp()
            + (row_number() OVER (ORDER BY id) - 1) * interval '1 microsecond' AS at
        FROM chosen
    ) AS numbered
), changed AS (
    UPDATE public.missions m SET {set}, logged_at = t.said_at
    FROM timed t WHERE m.id = t.id
), said AS (
    INSERT INTO public.mission_logs (mission_id, event, details, timestamp)
    SELECT t.id, '{event}', {details}, t.said_at FROM timed t ORDER BY t.id
)
SELECT id FROM timed ORDER BY id";

/// What a wish needs, sets and says; `t` has the time, and the checkpoint from before.
struct Terms {
    may: &'static str,
    set: String,
    event: &'static str,
    details: &'static str,
}

fn terms(wish: Wish) -> Terms {
    match wish {
        Wish::Queue => Terms {
            may: "m.status = 'queued' AND m.queued_at IS NULL",
            set: "checkpoint = 'atribuido', queued_at = t.at".into(),
            event: "mission_queued",
            details: "jsonb_build_object('queued_by', {by}::text)",
        },
        Wish::Cancel => Terms {
            may: "m.status IN ('queued', 'running')",
            set: "status = 'canceled', finished_at = t.at, waiting = NULL, next_attempt_at = NULL,
                  token = NULL, held_by = NULL"
                .into(),
            event: "mission_canceled",
            details: "jsonb_build_object('canceled_by', {by}::text,
                                         'previous_checkpoint', t.checkpoint)",
        },
        Wish::Retry { from_scrape } => Terms {
            may: "m.status = 'failed'",
            set: format!(
                "status = 'queued', checkpoint = 'atribuido', queued_at = t.at, started_at = NULL,
                 finished_at = NULL, phase_started_at = NULL, waiting = NULL, token = NULL,
                 held_by = NULL, error_code = NULL, error_message = NULL, retry_count = 0,
                 writer_id = NULL, writer_job_id = NULL, writer_accepted_at = NULL,
                 writer_processed = NULL, writer_moved_at = NULL, told_at = NULL, {}",
                if from_scrape { AGAIN } else { KEPT }
            ),
            event: "mission_queued",
            details: "jsonb_build_object('queued_by', {by}::text, 'retry', true)",
        },
    }
}

const AGAIN: &str = "worker_id = NULL, worker_job_id = NULL, proxy_used = NULL,
    worker_data_url = NULL, ads_count = NULL";

/// Who scraped it stays known, where only the write is done again.
const KEPT: &str = "
    worker_id = CASE WHEN m.worker_data_url IS NOT NULL THEN m.worker_id END,
    worker_job_id = CASE WHEN m.worker_data_url IS NOT NULL THEN m.worker_job_id END,
    proxy_used = CASE WHEN m.worker_data_url IS NOT NULL THEN m.proxy_used END";

/// The first of those that are the same, unless it is there already.
const ADD: &str = "
WITH input AS (
    SELECT *, row_number() OVER (
        PARTITION BY date_start, date_end, media_type, languages ORDER BY place) AS copy
    FROM jsonb_to_recordset($1) AS r(
        place INTEGER, id TEXT, date_start DATE, date_end DATE, media_type TEXT, languages TEXT[])
)
INSERT INTO public.missions (id, date_start, date_end, media_type, languages)
SELECT id, date_start, date_end, media_type, languages FROM input i
WHERE $2 OR i.copy = 1 AND NOT EXISTS (
    SELECT 1 FROM public.missions m
    WHERE m.date_start = i.date_start AND m.date_end = i.date_end
      AND m.media_type = i.media_type AND m.languages = i.languages)
ORDER BY place
ON CONFLICT (id) DO NOTHING
RETURNING id";

#[async_trait]
impl Wishes for Postgres {
    async fn add_missions(&self, missions: Vec<NewMission>, again: bool) -> Result<Vec<MissionId>> {
        let operation = "add missions";
        let unreadable = |error: serde_json::Error| Error::Invalid(error.to_string());
        let mut rows = serde_json::to_value(&missions).map_err(unreadable)?;
        for (place, row) in rows.as_array_mut().into_iter().flatten().enumerate() {
            if let Value::Object(columns) = row {
                columns.insert("place".into(), place.into());
            }
        }
        let mut transaction = self.patient.transaction(operation).await?;
        let lock = Lock::Missions.number();
        transaction.query(TAKE_LOCK, &[(&lock as _, Type::INT8)]).await?;
        let params = [(&rows as _, Type::JSONB), (&again as _, Type::BOOL)];
        let added = transaction.finish(ADD, &params).await.map_err(refused)?;
        let read = |row| get(operation, row, 0);
        let added: HashSet<String> = added.iter().map(read).collect::<Result<_>>()?;
        let ids = missions.into_iter().map(|mission| mission.id);
        Ok(ids.filter(|id| added.contains(&id.0)).collect())
    }

    async fn wish(&self, filter: &Filter, wish: Wish, by: &str) -> Result<Vec<MissionId>> {
        let operation = "do what was wished to missions";
        let Terms { may, set, event, details } = terms(wish);
        let mut conditions = Conditions::of_missions(filter);
        let which = conditions.sql();
        let by = conditions.bind(by.to_owned(), Type::TEXT);
        let sql = GRANT
            .replace("{which}", &which)
            .replace("{may}", may)
            .replace("{set}", &set)
            .replace("{event}", event)
            .replace("{details}", &details.replace("{by}", &by));
        let rows = self.patient.query(operation, &sql, &conditions.params()).await;
        let read = |row| Ok(MissionId(get(operation, row, 0)?));
        rows.map_err(refused)?.iter().map(read).collect()
    }
}
