//! Missions as people have them: the bank, wishes, lists.

use async_trait::async_trait;
use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use lavra_db::duckdb::types::Value;
use lavra_db::duckdb::{self, Connection, Row, params_from_iter};
use lavra_db::{micros, timestamp};
use serde_json::json;

use super::condition::Conditions;
use super::{DuckDb, all, log, run, set};
use crate::error::Result;
use crate::machine::mission::Wish;
use crate::machine::{Entry, next_entry};
use crate::model::{EventKind, MissionId};
use crate::store::{Filter, NewMission, Wishes};

/// How many missions one statement takes.
const CHUNK: usize = 10_000;

/// A set of [`NewMission`].
macro_rules! new_missions {
    () => {
        r#"(SELECT unnest(from_json($1::JSON, '[{"id": "VARCHAR", "date_start": "DATE",
            "date_end": "DATE", "media_type": "VARCHAR", "languages": ["VARCHAR"]}]'),
            recursive := true)) x"#
    };
}

/// Those that are in the bank already.
const KNOWN: &str = concat!(
    "SELECT x.id FROM ",
    new_missions!(),
    " SEMI JOIN public.missions m
      ON (m.date_start = x.date_start AND m.date_end = x.date_end
          AND m.media_type = x.media_type AND m.languages = x.languages)"
);

const ADD: &str = concat!(
    "INSERT INTO public.missions
         (id, date_start, date_end, media_type, languages, status, retry_count, created_at, attempts)
     SELECT x.id, x.date_start, x.date_end, x.media_type, x.languages, 'queued', 0,
            make_timestamp($2), 0
     FROM ",
    new_missions!()
);

#[async_trait]
impl Wishes for DuckDb {
    async fn add_missions(&self, missions: Vec<NewMission>, again: bool) -> Result<Vec<MissionId>> {
        let now = micros(self.now());
        let job = move |tx: &Connection| {
            let mut known: HashSet<MissionId> = HashSet::new();
            if !again {
                for chunk in missions.chunks(CHUNK) {
                    known.extend(all(tx, KNOWN, (set(chunk)?,), |row| row.get(0).map(MissionId))?);
                }
            }
            let mut seen = HashSet::new();
            let mut added = Vec::new();
            for new in &missions {
                let key = (new.date_start, new.date_end, new.media_type, &new.languages);
                if again || (!known.contains(&new.id) && seen.insert(key)) {
                    added.push(new);
                }
            }
            for chunk in added.chunks(CHUNK) {
                run(tx, ADD, (set(chunk)?, now))?;
            }
            Ok(added.into_iter().map(|new| new.id.clone()).collect())
        };
        Ok(self.duck.write("add missions", job).await?)
    }

    async fn wish(&self, filter: &Filter, wish: Wish, by: &str) -> Result<Vec<MissionId>> {
        let mut may = Conditions::of_missions(filter)?;
        may.add_plain(allowed(wish));
        let found = format!(
            "SELECT id, checkpoint, epoch_us(logged_at) FROM public.missions WHERE {} ORDER BY id",
            may.sql()
        );
        // Each has a time of its own, so that the queue has an order.
        let condition = may.sql();
        let mut with_now = may.clone();
        let now = self.now();
        let at = with_now.param(Value::BigInt(micros(now)));
        let change = format!(
            "UPDATE public.missions t SET {},
                 logged_at = make_timestamp(greatest({at} + x.number, x.logged + 1))
             FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS number,
                          epoch_us(logged_at) AS logged
                   FROM public.missions WHERE {condition}) x
             WHERE t.id = x.id",
            granted(wish, &format!("make_timestamp({at} + x.number)"))
        );
        let (by, clock) = (by.to_owned(), self.duck.clock().clone());
        let job = move |tx: &Connection| {
            let found = all(tx, &found, params_from_iter(&may.params), Found::read)?;
            if found.is_empty() {
                return Ok(Vec::new());
            }
            run(tx, &change, params_from_iter(&with_now.params))?;
            let entries: Vec<Entry> = (0..)
                .zip(&found)
                .map(|(number, found)| found.entry(wish, &by, later(now, number)))
                .collect();
            log::append(tx, &clock, entries.iter())?;
            Ok(found.into_iter().map(|found| found.id).collect())
        };
        Ok(self.duck.write("do what was wished to missions", job).await?)
    }
}

/// The missions for which `machine::mission::refusal` has nothing to say.
fn allowed(wish: Wish) -> &'static str {
    match wish {
        Wish::Queue => "status = 'queued' AND queued_at IS NULL",
        Wish::Cancel => "status IN ('queued', 'running')",
        Wish::Retry { .. } => "status = 'failed'",
    }
}

/// What `machine::mission::granted` does to them, at the time that `at` says.
fn granted(wish: Wish, at: &str) -> String {
    match wish {
        Wish::Queue => format!("checkpoint = 'atribuido', queued_at = {at}"),
        Wish::Cancel => format!(
            "status = 'canceled', finished_at = {at}, waiting = NULL, next_attempt_at = NULL,
             token = NULL, held_by = NULL"
        ),
        Wish::Retry { from_scrape } => {
            // Who scraped it stays known where only the write is done again.
            let kept = |column: &str| {
                let known = if from_scrape { "NULL" } else { column };
                format!("{column} = CASE WHEN t.worker_data_url IS NULL THEN NULL ELSE {known} END")
            };
            let scraped =
                if from_scrape { "worker_data_url = NULL, ads_count = NULL," } else { "" };
            format!(
                "{scraped} {}, {}, {}, status = 'queued', checkpoint = 'atribuido',
                 started_at = NULL, phase_started_at = NULL, waiting = NULL, token = NULL,
                 held_by = NULL, queued_at = {at}, finished_at = NULL, error_code = NULL,
                 error_message = NULL, retry_count = 0, writer_id = NULL, writer_job_id = NULL,
                 writer_accepted_at = NULL, writer_processed = NULL, writer_moved_at = NULL,
                 told_at = NULL",
                kept("worker_id"),
                kept("worker_job_id"),
                kept("proxy_used"),
            )
        }
    }
}

fn later(now: Timestamp, number: i64) -> Timestamp {
    now.saturating_add(SignedDuration::from_micros(number)).unwrap_or(now)
}

/// A mission for which a wish may be granted.
struct Found {
    id: MissionId,
    checkpoint: Option<String>,
    logged_at: Option<i64>,
}

impl Found {
    fn read(row: &Row<'_>) -> duckdb::Result<Self> {
        Ok(Self { id: MissionId(row.get(0)?), checkpoint: row.get(1)?, logged_at: row.get(2)? })
    }

    /// What the log says, as `machine::mission::granted` has it.
    fn entry(&self, wish: Wish, by: &str, now: Timestamp) -> Entry {
        let (event, details) = match wish {
            Wish::Queue => (EventKind::MissionQueued, json!({ "queued_by": by })),
            Wish::Cancel => (
                EventKind::MissionCanceled,
                json!({ "canceled_by": by, "previous_checkpoint": self.checkpoint }),
            ),
            Wish::Retry { .. } => {
                (EventKind::MissionQueued, json!({ "queued_by": by, "retry": true }))
            }
        };
        let details = match details {
            serde_json::Value::Object(details) => details,
            _ => serde_json::Map::new(),
        };
        let at = next_entry(self.logged_at.map(timestamp), now);
        Entry { mission_id: Some(self.id.clone()), session_id: None, event, details, at }
    }
}
