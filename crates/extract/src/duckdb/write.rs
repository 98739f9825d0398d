//! What happened to tasks, with the pages that came: one transaction.
//!
//! Pages are inserted with ON CONFLICT DO NOTHING, which finds a page that is there by its key;
//! only those pages, which were fetched again, are then looked at and changed. Bodies go by the
//! Appender, and only those that are new.

use std::collections::{HashMap, HashSet};

use lavra_db::duckdb::types::{TimeUnit, Value};
use lavra_db::duckdb::{self, Connection, appender_params_from_iter};
use lavra_db::micros;
use serde_json::json;

use super::{DuckDb, all, wrong};
use crate::error::Result;
use crate::model::ExtractionId;
use crate::store::{Arrival, Change, Done, Held, Outcome, Write, Written};

const PAGE: &str = r#"'[{"task_id":"VARCHAR","page":"INTEGER","records":"INTEGER",
    "total_records":"INTEGER","total_pages":"INTEGER","generation":"INTEGER",
    "response_id":"UUID","bytes":"INTEGER","body_hash":"VARCHAR","content_hash":"VARCHAR",
    "fetched_at":"BIGINT"}]'"#;

impl DuckDb {
    pub(super) async fn apply(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        let tokens: Vec<i64> = writes.iter().map(|_| self.duck.next_sequence()).collect();
        let job = Job {
            held: self.sql(
                "SELECT task_id, token FROM psa.{source}_extraction_tasks
                 WHERE task_id IN (SELECT unnest($1::JSON::VARCHAR[]))",
            ),
            change: self.sql(
                "UPDATE psa.{source}_extraction_tasks SET
                     status = $2, attempts = $3, failing_since = make_timestamp($4),
                     next_attempt_at = make_timestamp($5), discoveries = $6, generation = $7,
                     is_final = $8, verdict = $9, last_error = $10,
                     total_pages = coalesce($11, total_pages),
                     total_records = coalesce($12, total_records),
                     missing_pages = coalesce($13, missing_pages),
                     discovered_at = coalesce(make_timestamp($14), discovered_at),
                     token = $15, process = $16, is_begun = $17, updated_at = make_timestamp($18)
                 WHERE task_id = $1",
            ),
            holder: self.sql(
                "SELECT process, is_begun FROM psa.{source}_extraction_tasks WHERE task_id = $1",
            ),
            drop_windows: self
                .sql("DELETE FROM psa.{source}_extraction_windows WHERE task_id = $1"),
            add_window: self.sql(
                "INSERT INTO psa.{source}_extraction_windows
                     (task_id, number, first_day, last_day, base, total_records, total_pages)
                 VALUES ($1, $2, $3::DATE, $4::DATE, $5, $6, $7)",
            ),
            add_pages: self.sql(&format!(
                "INSERT INTO psa.{{source}}_pages
                 SELECT * REPLACE (make_timestamp(fetched_at) AS fetched_at)
                 FROM (SELECT unnest(from_json($1, {PAGE}), recursive := true))
                 ON CONFLICT DO NOTHING RETURNING task_id, page"
            )),
            known_page: self.sql(
                "SELECT content_hash FROM psa.{source}_pages WHERE task_id = $1 AND page = $2",
            ),
            change_page: self.sql(
                "UPDATE psa.{source}_pages SET records = $3, total_records = $4,
                     total_pages = $5, generation = $6, content_hash = $7,
                     fetched_at = make_timestamp($8), bytes = coalesce($9, bytes),
                     body_hash = coalesce($10, body_hash),
                     response_id = coalesce($11, response_id)
                 WHERE task_id = $1 AND page = $2",
            ),
            bodies: format!("{}_raw_responses", self.source),
            now: self.now(),
            tokens,
            writes,
        };
        Ok(self.duck.write("store what was extracted", move |tx| job.run(tx)).await?)
    }
}

impl DuckDb {
    pub(super) async fn forget(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<()> {
        let sql = self.sql(
            "UPDATE psa.{source}_pages SET content_hash = ''
             WHERE task_id = $1 AND page IN (SELECT unnest($2::JSON::INTEGER[]))",
        );
        let (id, pages) = (id.0.clone(), super::set(&pages)?);
        let job = move |tx: &Connection| tx.execute(&sql, (&id, &pages)).map(|_| ());
        Ok(self.duck.write("distrust pages", job).await?)
    }
}

struct Job {
    held: String,
    change: String,
    holder: String,
    drop_windows: String,
    add_window: String,
    add_pages: String,
    known_page: String,
    change_page: String,
    /// The table of the responses.
    bodies: String,
    now: i64,
    /// New ones, for those who claim.
    tokens: Vec<i64>,
    writes: Vec<Write>,
}

impl Job {
    fn run(&self, tx: &Connection) -> duckdb::Result<Vec<Written>> {
        let ids: Vec<&str> = self.writes.iter().map(|write| write.task.0.as_str()).collect();
        let ids = serde_json::to_string(&ids).map_err(wrong)?;
        let held: HashMap<String, i64> =
            all(tx, &self.held, (ids,), |row| Ok((row.get(0)?, row.get(1)?)))?
                .into_iter()
                .collect();
        let mut written = Vec::with_capacity(self.writes.len());
        let mut arrivals = Vec::new();
        for (write, token) in self.writes.iter().zip(&self.tokens) {
            if held.get(&write.task.0) != Some(&write.token) {
                written.push(Written::Lost);
                continue;
            }
            let token = match &write.change {
                Some(change) => self.change(tx, write, change, *token)?,
                None => write.token,
            };
            arrivals.extend(write.arrivals.iter().map(|arrival| (write, arrival)));
            written.push(Written::Applied { token });
        }
        let kept = self.pages(tx, &arrivals)?;
        self.bodies(tx, &kept)?;
        Ok(written)
    }

    fn change(
        &self,
        tx: &Connection,
        write: &Write,
        change: &Change,
        token: i64,
    ) -> duckdb::Result<i64> {
        let (process, begun, token) = match change.held {
            Held::Claimed { by, begun } => (Some(by.0), begun, token),
            Held::Nobody => (None, false, write.token),
            Held::Same | Held::Offered => {
                let holder =
                    all(tx, &self.holder, (&write.task.0,), |row| Ok((row.get(0)?, row.get(1)?)))?;
                let (process, begun) = holder.into_iter().next().unwrap_or((None, false));
                (process, begun && change.held == Held::Same, write.token)
            }
        };
        let next = &change.next;
        let missing = change.missing.as_ref().map(|pages| json!(pages).to_string());
        let discovered = change.windows.as_ref().map(|_| self.now);
        tx.prepare_cached(&self.change)?.execute(duckdb::params![
            write.task.0,
            next.status.as_str(),
            next.attempts,
            next.failing_since.map(micros),
            next.next_attempt_at.map(micros),
            next.discoveries,
            next.generation,
            next.is_final,
            next.verdict,
            next.last_error,
            change.totals.map(|totals| totals.pages),
            change.totals.map(|totals| totals.records),
            missing,
            discovered,
            token,
            process,
            begun,
            self.now,
        ])?;
        if let Some(windows) = &change.windows {
            tx.prepare_cached(&self.drop_windows)?.execute((&write.task.0,))?;
            for window in windows {
                tx.prepare_cached(&self.add_window)?.execute(duckdb::params![
                    write.task.0,
                    window.number,
                    window.first_day.to_string(),
                    window.last_day.to_string(),
                    window.base,
                    window.totals.map(|totals| totals.records),
                    window.totals.map(|totals| totals.pages),
                ])?;
            }
        }
        Ok(token)
    }

    /// Stores which pages are done, and returns those arrivals whose bodies are to be kept.
    fn pages<'a>(
        &self,
        tx: &Connection,
        arrivals: &[(&'a Write, &'a Arrival)],
    ) -> duckdb::Result<Vec<(&'a Write, &'a Arrival)>> {
        let done = |arrival: &'a Arrival| match &arrival.outcome {
            Outcome::Done(done) => Some(done),
            Outcome::Failed { .. } => None,
        };
        let rows: Vec<serde_json::Value> = arrivals
            .iter()
            .filter_map(|(write, arrival)| Some(page(write, arrival, done(arrival)?)))
            .collect();
        if rows.is_empty() {
            return Ok(arrivals.to_vec());
        }
        let set = serde_json::to_string(&rows).map_err(wrong)?;
        let new: HashSet<(String, i64)> =
            all(tx, &self.add_pages, (set,), |row| Ok((row.get(0)?, row.get(1)?)))?
                .into_iter()
                .collect();
        let mut kept = Vec::with_capacity(arrivals.len());
        for (write, arrival) in arrivals {
            let key = (write.task.0.clone(), arrival.page);
            let is_kept = match done(arrival) {
                Some(done) if !new.contains(&key) => self.again(tx, write, arrival, done)?,
                _ => true,
            };
            if is_kept {
                kept.push((*write, *arrival));
            }
        }
        Ok(kept)
    }

    /// A page that was there already. Says whether its content has changed.
    fn again(
        &self,
        tx: &Connection,
        write: &Write,
        arrival: &Arrival,
        done: &Done,
    ) -> duckdb::Result<bool> {
        let key = (&write.task.0, arrival.page);
        let known: Vec<String> = all(tx, &self.known_page, key, |row| row.get(0))?;
        let has_changed = known.first() != Some(&done.content_hash);
        tx.prepare_cached(&self.change_page)?.execute(duckdb::params![
            write.task.0,
            arrival.page,
            done.records,
            done.total_records,
            arrival.total_pages,
            done.generation,
            done.content_hash,
            micros(arrival.at),
            has_changed.then(|| length(arrival)),
            has_changed.then_some(&done.body_hash),
            has_changed.then_some(arrival.id),
        ])?;
        Ok(has_changed)
    }

    fn bodies(&self, tx: &Connection, arrivals: &[(&Write, &Arrival)]) -> duckdb::Result<()> {
        if arrivals.is_empty() {
            return Ok(());
        }
        let mut appender = tx.appender_to_db(&self.bodies, "psa")?;
        for (write, arrival) in arrivals {
            appender.append_row(appender_params_from_iter(response(write, arrival)?))?;
        }
        appender.flush()
    }
}

fn length(arrival: &Arrival) -> i64 {
    arrival.body.as_ref().map_or(0, |body| body.len() as i64)
}

fn page(write: &Write, arrival: &Arrival, done: &Done) -> serde_json::Value {
    json!({
        "task_id": write.task.0,
        "page": arrival.page,
        "records": done.records,
        "total_records": done.total_records,
        "total_pages": arrival.total_pages,
        "generation": done.generation,
        "response_id": arrival.id,
        "bytes": length(arrival),
        "body_hash": done.body_hash,
        "content_hash": done.content_hash,
        "fetched_at": micros(arrival.at),
    })
}

/// The columns of the responses, in the order of the table.
fn response(write: &Write, arrival: &Arrival) -> duckdb::Result<Vec<Value>> {
    let whole = |value: Option<i64>| {
        value.map_or(Value::Null, |n| Value::Int(n.min(i64::from(i32::MAX)) as i32))
    };
    let body = match &arrival.body {
        Some(body) => Value::Text(std::str::from_utf8(body).map_err(wrong)?.to_owned()),
        None => Value::Null,
    };
    let (outcome, error) = match &arrival.outcome {
        Outcome::Done(done) if done.records > 0 => ("data", Value::Null),
        Outcome::Done(_) => ("empty", Value::Null),
        Outcome::Failed { error } => ("failed", Value::Text(error.clone())),
    };
    let epoch = jiff::civil::date(1970, 1, 1);
    let days = arrival.data_date.since(epoch).map(|span| span.get_days()).map_err(wrong)?;
    Ok(vec![
        Value::Text(arrival.id.to_string()),
        Value::Timestamp(TimeUnit::Microsecond, micros(arrival.at)),
        Value::Text(arrival.url.clone()),
        Value::Text(arrival.endpoint_name.clone()),
        Value::Text(arrival.parameters.clone()),
        Value::Int(i32::from(arrival.code)),
        body,
        Value::Text(arrival.headers.clone()),
        Value::Date32(days),
        Value::Text(arrival.run.clone()),
        whole(arrival.total_records),
        whole(arrival.total_pages),
        whole(Some(arrival.current_page)),
        whole(Some(arrival.page_size)),
        Value::Text(write.task.0.clone()),
        whole(Some(arrival.page)),
        Value::Text(outcome.into()),
        error,
        Value::Int(arrival.elapsed.as_millis().min(i32::MAX as u128) as i32),
    ])
}
