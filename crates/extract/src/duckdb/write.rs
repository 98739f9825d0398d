//! What happened to tasks, with the pages that came: one transaction.
//!
//! The pages that are there are looked up first; nothing comes in between, so the others are new and
//! go by the Appender, as their bodies do. Nothing is planned per page.

use std::collections::HashMap;

use async_trait::async_trait;
use lavra_db::duckdb::types::{TimeUnit, ToSqlOutput, Value, ValueRef};
use lavra_db::duckdb::{self, Connection, appender_params_from_iter};
use lavra_db::micros;
use serde_json::json;

use super::{DuckDb, all, set, wrong};
use crate::error::Result;
use crate::model::ExtractionId;
use crate::store::{Arrival, Change, Done, Held, Outcome, Planned, Write, Writes, Written};

/// A body above this needs more memory than DuckDB is given.
const LARGE: usize = 8 << 20;

#[async_trait]
impl Writes for DuckDb {
    async fn plan(&self, tasks: Vec<Planned>) -> Result<usize> {
        let sql = self.sql(
            "INSERT INTO psa.{source}_extraction_tasks
                 (task_id, endpoint_name, data_date, created_at, updated_at)
             SELECT p.task_id, p.endpoint_name, p.data_date::DATE, make_timestamp($2), make_timestamp($2)
             FROM (SELECT unnest(from_json($1,
                 '[{\"task_id\":\"VARCHAR\",\"endpoint_name\":\"VARCHAR\",\"data_date\":\"VARCHAR\"}]'),
                 recursive := true)) p
             ON CONFLICT DO NOTHING RETURNING task_id",
        );
        let (set, now) = (set(&tasks)?, self.now());
        let job = move |tx: &Connection| all(tx, &sql, (&set, now), |_| Ok(()));
        Ok(self.duck.write("plan the extraction", job).await?.len())
    }

    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        let tokens: Vec<i64> = writes.iter().map(|_| self.duck.next_sequence()).collect();
        let job = Job {
            held: self.sql("SELECT token FROM psa.{source}_extraction_tasks WHERE task_id = $1"),
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
            known_pages: self.sql(
                "SELECT page, content_hash FROM psa.{source}_pages
                 WHERE task_id = $1 AND page >= $2 AND page <= $3",
            ),
            change_page: self.sql(
                "UPDATE psa.{source}_pages SET records = $3, total_records = $4,
                     total_pages = $5, generation = $6, content_hash = $7,
                     fetched_at = make_timestamp($8), bytes = coalesce($9, bytes),
                     body_hash = coalesce($10, body_hash),
                     response_id = coalesce($11, response_id)
                 WHERE task_id = $1 AND page = $2",
            ),
            pages: format!("{}_pages", self.source),
            bodies: format!("{}_raw_responses", self.source),
            now: self.now(),
            tokens,
            writes,
        };
        let sizes = job.writes.iter().flat_map(|write| &write.arrivals);
        let largest =
            sizes.filter_map(|arrival| arrival.body.as_ref()).map(bytes::Bytes::len).max();
        if let Some(bytes) = largest.filter(|bytes| *bytes > LARGE) {
            self.duck.make_room(bytes).await?;
        }
        Ok(self.duck.write("store what was extracted", move |tx| job.run(tx)).await?)
    }

    async fn distrust(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<()> {
        let sql = self.sql(
            "UPDATE psa.{source}_pages SET content_hash = ''
             WHERE task_id = $1 AND page IN (SELECT unnest($2::JSON::INTEGER[]))",
        );
        let (id, pages) = (id.0.clone(), set(&pages)?);
        let job = move |tx: &Connection| tx.execute(&sql, (&id, &pages)).map(|_| ());
        Ok(self.duck.write("distrust pages", job).await?)
    }
}

/// What is to be stored of an answer: its body, and its page where that is new.
struct Kept<'a> {
    write: &'a Write,
    arrival: &'a Arrival,
    new_page: Option<&'a Done>,
}

struct Job {
    held: String,
    change: String,
    holder: String,
    drop_windows: String,
    add_window: String,
    known_pages: String,
    change_page: String,
    /// The tables of the pages and of the responses.
    pages: String,
    bodies: String,
    now: i64,
    /// New ones, for those who claim.
    tokens: Vec<i64>,
    writes: Vec<Write>,
}

impl Job {
    fn run(&self, tx: &Connection) -> duckdb::Result<Vec<Written>> {
        let mut written = Vec::with_capacity(self.writes.len());
        let mut kept = Vec::new();
        for (write, token) in self.writes.iter().zip(&self.tokens) {
            let held: Vec<i64> = all(tx, &self.held, (&write.task.0,), |row| row.get(0))?;
            if held.first() != Some(&write.token) {
                written.push(Written::Lost);
                continue;
            }
            let token = match &write.change {
                Some(change) => self.change(tx, write, change, *token)?,
                None => write.token,
            };
            self.arrive(tx, write, &mut kept)?;
            written.push(Written::Applied { token });
        }
        self.pages(tx, &kept)?;
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

    /// Changes the pages that are there already, and adds to `kept` what is to be stored.
    fn arrive<'a>(
        &self,
        tx: &Connection,
        write: &'a Write,
        kept: &mut Vec<Kept<'a>>,
    ) -> duckdb::Result<()> {
        let mut known = self.known(tx, write)?;
        for arrival in &write.arrivals {
            let Outcome::Done(done) = &arrival.outcome else {
                kept.push(Kept { write, arrival, new_page: None });
                continue;
            };
            // The same page may come twice in one batch.
            match known.insert(arrival.page, done.content_hash.clone()) {
                None => kept.push(Kept { write, arrival, new_page: Some(done) }),
                Some(before) => {
                    let has_changed = before != done.content_hash;
                    self.again(tx, write, arrival, done, has_changed)?;
                    if has_changed {
                        kept.push(Kept { write, arrival, new_page: None });
                    }
                }
            }
        }
        Ok(())
    }

    /// The pages that are there, around those that come, with what they contain.
    fn known(&self, tx: &Connection, write: &Write) -> duckdb::Result<HashMap<i64, String>> {
        let pages = || {
            let done = |arrival: &&Arrival| matches!(arrival.outcome, Outcome::Done(_));
            write.arrivals.iter().filter(done).map(|arrival| arrival.page)
        };
        let (Some(first), Some(last)) = (pages().min(), pages().max()) else {
            return Ok(HashMap::new());
        };
        let key = (&write.task.0, first, last);
        let known = all(tx, &self.known_pages, key, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(known.into_iter().collect())
    }

    /// A page that was there already keeps its body where the content is the same.
    fn again(
        &self,
        tx: &Connection,
        write: &Write,
        arrival: &Arrival,
        done: &Done,
        has_changed: bool,
    ) -> duckdb::Result<()> {
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
        Ok(())
    }

    fn pages(&self, tx: &Connection, kept: &[Kept<'_>]) -> duckdb::Result<()> {
        if kept.iter().all(|kept| kept.new_page.is_none()) {
            return Ok(());
        }
        let mut appender = tx.appender_to_db(&self.pages, "psa")?;
        for Kept { write, arrival, new_page } in kept {
            if let Some(done) = new_page {
                appender.append_row(appender_params_from_iter(page(write, arrival, done)))?;
            }
        }
        appender.flush()
    }

    fn bodies(&self, tx: &Connection, kept: &[Kept<'_>]) -> duckdb::Result<()> {
        if kept.is_empty() {
            return Ok(());
        }
        let mut appender = tx.appender_to_db(&self.bodies, "psa")?;
        for Kept { write, arrival, .. } in kept {
            appender.append_row(appender_params_from_iter(response(write, arrival)?))?;
        }
        appender.flush()
    }
}

fn length(arrival: &Arrival) -> i64 {
    arrival.body.as_ref().map_or(0, |body| body.len() as i64)
}

/// The columns of the pages, in the order of the table.
fn page(write: &Write, arrival: &Arrival, done: &Done) -> [Value; 11] {
    [
        Value::Text(write.task.0.clone()),
        whole(Some(arrival.page)),
        whole(Some(done.records)),
        whole(Some(done.total_records)),
        whole(arrival.total_pages),
        Value::Int(done.generation),
        Value::Text(arrival.id.to_string()),
        whole(Some(length(arrival))),
        Value::Text(done.body_hash.clone()),
        Value::Text(done.content_hash.clone()),
        Value::Timestamp(TimeUnit::Microsecond, micros(arrival.at)),
    ]
}

fn whole(value: Option<i64>) -> Value {
    value.map_or(Value::Null, |n| Value::Int(n.min(i64::from(i32::MAX)) as i32))
}

/// The columns of the responses, in the order of the table.
fn response<'a>(write: &Write, arrival: &'a Arrival) -> duckdb::Result<[ToSqlOutput<'a>; 19]> {
    let (outcome, error) = match &arrival.outcome {
        Outcome::Done(done) if done.records > 0 => ("data", ToSqlOutput::Owned(Value::Null)),
        Outcome::Done(_) => ("empty", ToSqlOutput::Owned(Value::Null)),
        Outcome::Failed { error } => ("failed", text(error)),
    };
    let body = match &arrival.body {
        Some(body) => {
            // What was read as JSON is text.
            if outcome != "data" {
                std::str::from_utf8(body).map_err(wrong)?;
            }
            ToSqlOutput::Borrowed(ValueRef::Text(body))
        }
        None => ToSqlOutput::Owned(Value::Null),
    };
    let epoch = jiff::civil::date(1970, 1, 1);
    let days = arrival.data_date.since(epoch).map(|span| span.get_days()).map_err(wrong)?;
    let own = ToSqlOutput::Owned;
    Ok([
        own(Value::Text(arrival.id.to_string())),
        own(Value::Timestamp(TimeUnit::Microsecond, micros(arrival.at))),
        text(&arrival.url),
        text(&arrival.endpoint_name),
        text(&arrival.parameters),
        own(Value::Int(i32::from(arrival.code))),
        body,
        text(&arrival.headers),
        own(Value::Date32(days)),
        text(&arrival.run),
        own(whole(arrival.total_records)),
        own(whole(arrival.total_pages)),
        own(whole(Some(arrival.current_page))),
        own(whole(Some(arrival.page_size))),
        own(Value::Text(write.task.0.clone())),
        own(whole(Some(arrival.page))),
        text(outcome),
        error,
        own(Value::Int(arrival.elapsed.as_millis().min(i32::MAX as u128) as i32)),
    ])
}

fn text(text: &str) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
}
