//! What happened to tasks, with the pages that came: one statement.
//!
//! `held` locks the rows whose token is still the writer's; everything else stands on it, so that
//! what was lost to another process leaves no trace. A page that was there already keeps its
//! response where the content is the same, and the new body is not stored.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use lavra_db::Param;
use lavra_db::tokio_postgres::types::Type;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Postgres;
use crate::error::{Error, Result};
use crate::model::ExtractionId;
use crate::store::{Arrival, Change, Held, Outcome, Planned, Write, Writes, Written};

const WRITE: &str = "
WITH input AS (
    SELECT * FROM unnest(
        $1::text[], $2::int8[], $3::bool[], $4::text[], $5::int4[], $6::timestamptz[],
        $7::timestamptz[], $8::int4[], $9::int4[], $10::bool[], $11::text[], $12::text[],
        $13::int4[], $14::int4[], $15::json[], $16::bool[], $17::text[], $18::uuid[])
    AS i(task, token, has_change, status, attempts, failing_since, next_attempt_at, discoveries,
         generation, is_final, verdict, last_error, total_pages, total_records, missing,
         is_discovered, holding, process)
), held AS MATERIALIZED (
    SELECT t.task_id FROM psa.{source}_extraction_tasks t
    JOIN input i ON i.task = t.task_id AND i.token = t.token
    ORDER BY t.task_id FOR UPDATE OF t
), changed AS (
    UPDATE psa.{source}_extraction_tasks t SET
        status = i.status, attempts = i.attempts, failing_since = i.failing_since,
        next_attempt_at = i.next_attempt_at, discoveries = i.discoveries,
        generation = i.generation, is_final = i.is_final, verdict = i.verdict,
        last_error = i.last_error,
        total_pages = coalesce(i.total_pages, t.total_pages),
        total_records = coalesce(i.total_records, t.total_records),
        missing_pages = coalesce(i.missing, t.missing_pages),
        discovered_at = CASE WHEN i.is_discovered THEN now() ELSE t.discovered_at END,
        token = CASE WHEN i.holding = 'claimed' OR i.holding = 'begun'
                     THEN nextval('kodus_workflow.task_tokens') ELSE t.token END,
        process = CASE i.holding WHEN 'same' THEN t.process WHEN 'offered' THEN t.process
                                 WHEN 'nobody' THEN NULL ELSE i.process END,
        is_begun = CASE i.holding WHEN 'same' THEN t.is_begun ELSE i.holding = 'begun' END,
        updated_at = now()
    FROM input i JOIN held ON held.task_id = i.task
    WHERE t.task_id = i.task AND i.has_change
    RETURNING t.task_id, t.token
), windows AS (
    SELECT w.* FROM unnest($19::text[], $20::int4[], $21::date[], $22::date[], $23::int4[],
                           $24::int4[], $25::int4[])
        AS w(task, number, first_day, last_day, base, total_records, total_pages)
    JOIN held ON held.task_id = w.task
), gone AS (
    DELETE FROM psa.{source}_extraction_windows o
    USING (SELECT DISTINCT task FROM windows) w
    WHERE o.task_id = w.task
      AND NOT EXISTS (SELECT 1 FROM windows n WHERE n.task = o.task_id AND n.number = o.number)
), kept AS (
    INSERT INTO psa.{source}_extraction_windows
        (task_id, number, first_day, last_day, base, total_records, total_pages)
    SELECT * FROM windows
    ON CONFLICT (task_id, number) DO UPDATE SET
        first_day = excluded.first_day, last_day = excluded.last_day, base = excluded.base,
        total_records = excluded.total_records, total_pages = excluded.total_pages
), arrival AS (
    SELECT a.* FROM unnest(
        $26::text[], $27::uuid[], $28::timestamptz[], $29::text[], $30::text[], $31::date[],
        $32::text[], $33::json[], $34::int4[], $35::json[], $36::text[], $37::int4[], $38::int4[],
        $39::int4[], $40::int4[], $41::int4[], $42::int4[], $43::text[], $44::text[], $45::int4[],
        $46::int4[], $47::int4[], $48::text[], $49::text[])
    AS a(task, id, at, url, endpoint_name, data_date, run, parameters, code, headers, body,
         current_page, page, page_size, total_records, total_pages, elapsed, outcome, error,
         bytes, records, generation, body_hash, content_hash)
    JOIN held ON held.task_id = a.task
), page AS (
    INSERT INTO psa.{source}_pages AS p
        (task_id, page, records, total_records, total_pages, generation, response_id, bytes,
         body_hash, content_hash, fetched_at)
    SELECT task, page, records, total_records, total_pages, generation, id, bytes, body_hash,
           content_hash, at
    FROM arrival WHERE outcome <> 'failed'
    ON CONFLICT (task_id, page) DO UPDATE SET
        records = excluded.records, total_records = excluded.total_records,
        total_pages = excluded.total_pages, generation = excluded.generation,
        content_hash = excluded.content_hash, fetched_at = excluded.fetched_at,
        bytes = CASE WHEN p.content_hash = excluded.content_hash
                     THEN p.bytes ELSE excluded.bytes END,
        body_hash = CASE WHEN p.content_hash = excluded.content_hash
                         THEN p.body_hash ELSE excluded.body_hash END,
        response_id = CASE WHEN p.content_hash = excluded.content_hash
                           THEN p.response_id ELSE excluded.response_id END
), body AS (
    INSERT INTO psa.{source}_raw_responses
        (id, extracted_at, endpoint_url, endpoint_name, request_parameters, response_code,
         response_content, response_headers, data_date, run_id, total_records, total_pages,
         current_page, page_size, task_id, page, outcome, error, elapsed_ms)
    SELECT id, at AT TIME ZONE 'UTC', url, endpoint_name, parameters, code, body, headers,
           data_date, run, total_records, total_pages, current_page, page_size, task, page,
           outcome, error, elapsed
    FROM arrival a
    WHERE outcome = 'failed' OR NOT EXISTS (
        SELECT 1 FROM psa.{source}_pages p
        WHERE p.task_id = a.task AND p.page = a.page AND p.content_hash = a.content_hash)
    -- It is written again where nobody heard that it was stored.
    ON CONFLICT (id) DO NOTHING
)
SELECT i.task, coalesce(changed.token, i.token)
FROM input i JOIN held ON held.task_id = i.task LEFT JOIN changed ON changed.task_id = i.task";

#[async_trait]
impl Writes for Postgres {
    async fn plan(&self, tasks: Vec<Planned>) -> Result<usize> {
        let sql = "INSERT INTO psa.{source}_extraction_tasks (task_id, endpoint_name, data_date)
                   SELECT * FROM unnest($1::text[], $2::text[], $3::date[])
                   ON CONFLICT DO NOTHING RETURNING task_id";
        let ids: Vec<&str> = tasks.iter().map(|task| task.task_id.0.as_str()).collect();
        let names: Vec<&str> = tasks.iter().map(|task| task.endpoint_name.as_str()).collect();
        let dates: Vec<Date> = tasks.iter().map(|task| task.data_date).collect();
        let params = [
            (&ids as _, Type::TEXT_ARRAY),
            (&names as _, Type::TEXT_ARRAY),
            (&dates as _, Type::DATE_ARRAY),
        ];
        Ok(self.query("plan the extraction", sql, &params, |_| Ok(())).await?.len())
    }

    async fn distrust(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<()> {
        let sql = "UPDATE psa.{source}_pages SET content_hash = ''
                   WHERE task_id = $1 AND page = ANY ($2)";
        let params = [(&id.0 as _, Type::TEXT), (&pages as _, Type::INT8_ARRAY)];
        self.query("distrust pages", sql, &params, |_| Ok(())).await?;
        Ok(())
    }

    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        let changes = Changes::of(&writes);
        let windows = Windows::of(&writes);
        let arrivals = Arrivals::of(&writes)?;
        let params: Vec<Param<'_>> =
            changes.params().into_iter().chain(windows.params()).chain(arrivals.params()).collect();
        let operation = "store what was extracted";
        let read = |row: &lavra_db::tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
        let applied: Vec<(String, i64)> = self.query(operation, WRITE, &params, read).await?;
        let applied: std::collections::HashMap<String, i64> = applied.into_iter().collect();
        let written = writes.iter().map(|write| match applied.get(&write.task.0) {
            Some(token) => Written::Applied { token: *token },
            None => Written::Lost,
        });
        Ok(written.collect())
    }
}

/// The tasks as columns.
#[derive(Default)]
struct Changes<'a> {
    tasks: Vec<&'a str>,
    tokens: Vec<i64>,
    has: Vec<bool>,
    statuses: Vec<Option<&'static str>>,
    attempts: Vec<Option<i32>>,
    failing: Vec<Option<Timestamp>>,
    next: Vec<Option<Timestamp>>,
    discoveries: Vec<Option<i32>>,
    generations: Vec<Option<i32>>,
    is_final: Vec<Option<bool>>,
    verdicts: Vec<Option<&'a str>>,
    errors: Vec<Option<&'a str>>,
    pages: Vec<Option<i32>>,
    records: Vec<Option<i32>>,
    missing: Vec<Option<Value>>,
    discovered: Vec<bool>,
    holding: Vec<&'static str>,
    processes: Vec<Option<Uuid>>,
}

impl<'a> Changes<'a> {
    fn of(writes: &'a [Write]) -> Self {
        let mut all = Self::default();
        for write in writes {
            let change = write.change.as_ref();
            let next = change.map(|change| &change.next);
            let totals = change.and_then(|change| change.totals);
            let (holding, process) = holding(change);
            all.tasks.push(&write.task.0);
            all.tokens.push(write.token);
            all.has.push(change.is_some());
            all.statuses.push(next.map(|next| next.status.as_str()));
            all.attempts.push(next.map(|next| next.attempts));
            all.failing.push(next.and_then(|next| next.failing_since));
            all.next.push(next.and_then(|next| next.next_attempt_at));
            all.discoveries.push(next.map(|next| next.discoveries));
            all.generations.push(next.map(|next| next.generation));
            all.is_final.push(next.map(|next| next.is_final));
            all.verdicts.push(next.and_then(|next| next.verdict.as_deref()));
            all.errors.push(next.and_then(|next| next.last_error.as_deref()));
            all.pages.push(totals.map(|totals| whole(totals.pages)));
            all.records.push(totals.map(|totals| whole(totals.records)));
            all.missing.push(change.and_then(|c| c.missing.as_ref()).map(|pages| json!(pages)));
            all.discovered.push(change.is_some_and(|change| change.windows.is_some()));
            all.holding.push(holding);
            all.processes.push(process);
        }
        all
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.tasks, Type::TEXT_ARRAY),
            (&self.tokens, Type::INT8_ARRAY),
            (&self.has, Type::BOOL_ARRAY),
            (&self.statuses, Type::TEXT_ARRAY),
            (&self.attempts, Type::INT4_ARRAY),
            (&self.failing, Type::TIMESTAMPTZ_ARRAY),
            (&self.next, Type::TIMESTAMPTZ_ARRAY),
            (&self.discoveries, Type::INT4_ARRAY),
            (&self.generations, Type::INT4_ARRAY),
            (&self.is_final, Type::BOOL_ARRAY),
            (&self.verdicts, Type::TEXT_ARRAY),
            (&self.errors, Type::TEXT_ARRAY),
            (&self.pages, Type::INT4_ARRAY),
            (&self.records, Type::INT4_ARRAY),
            (&self.missing, Type::JSON_ARRAY),
            (&self.discovered, Type::BOOL_ARRAY),
            (&self.holding, Type::TEXT_ARRAY),
            (&self.processes, Type::UUID_ARRAY),
        ]
    }
}

fn holding(change: Option<&Change>) -> (&'static str, Option<Uuid>) {
    match change.map(|change| change.held) {
        None | Some(Held::Same) => ("same", None),
        Some(Held::Claimed { by, begun: true }) => ("begun", Some(by.0)),
        Some(Held::Claimed { by, begun: false }) => ("claimed", Some(by.0)),
        Some(Held::Offered) => ("offered", None),
        Some(Held::Nobody) => ("nobody", None),
    }
}

/// The columns hold what the specification gave them room for.
fn whole(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[derive(Default)]
struct Windows<'a> {
    tasks: Vec<&'a str>,
    numbers: Vec<i32>,
    first: Vec<Date>,
    last: Vec<Date>,
    bases: Vec<i32>,
    records: Vec<Option<i32>>,
    pages: Vec<Option<i32>>,
}

impl<'a> Windows<'a> {
    fn of(writes: &'a [Write]) -> Self {
        let mut all = Self::default();
        let changes = writes.iter().filter_map(|write| Some((write, write.change.as_ref()?)));
        for (write, change) in changes {
            for window in change.windows.iter().flatten() {
                all.tasks.push(&write.task.0);
                all.numbers.push(window.number);
                all.first.push(window.first_day);
                all.last.push(window.last_day);
                all.bases.push(whole(window.base));
                all.records.push(window.totals.map(|totals| whole(totals.records)));
                all.pages.push(window.totals.map(|totals| whole(totals.pages)));
            }
        }
        all
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.tasks, Type::TEXT_ARRAY),
            (&self.numbers, Type::INT4_ARRAY),
            (&self.first, Type::DATE_ARRAY),
            (&self.last, Type::DATE_ARRAY),
            (&self.bases, Type::INT4_ARRAY),
            (&self.records, Type::INT4_ARRAY),
            (&self.pages, Type::INT4_ARRAY),
        ]
    }
}

#[derive(Default)]
struct Arrivals<'a> {
    tasks: Vec<&'a str>,
    ids: Vec<Uuid>,
    times: Vec<Timestamp>,
    urls: Vec<&'a str>,
    endpoints: Vec<&'a str>,
    dates: Vec<Date>,
    runs: Vec<&'a str>,
    parameters: Vec<Value>,
    codes: Vec<i32>,
    headers: Vec<Value>,
    bodies: Vec<Option<&'a str>>,
    current: Vec<i32>,
    pages: Vec<i32>,
    sizes: Vec<i32>,
    total_records: Vec<Option<i32>>,
    total_pages: Vec<Option<i32>>,
    elapsed: Vec<i32>,
    outcomes: Vec<&'static str>,
    errors: Vec<Option<&'a str>>,
    bytes: Vec<i32>,
    records: Vec<Option<i32>>,
    generations: Vec<Option<i32>>,
    body_hashes: Vec<Option<&'a str>>,
    content_hashes: Vec<Option<&'a str>>,
}

impl<'a> Arrivals<'a> {
    fn of(writes: &'a [Write]) -> Result<Self> {
        let mut all = Self::default();
        for write in writes {
            for arrival in &write.arrivals {
                all.push(write, arrival)?;
            }
        }
        Ok(all)
    }

    fn push(&mut self, write: &'a Write, arrival: &'a Arrival) -> Result<()> {
        let unreadable = |error: &dyn std::fmt::Display| Error::Unreadable(error.to_string());
        let parse = |text: &str| serde_json::from_str(text).map_err(|error| unreadable(&error));
        let body = arrival.body.as_ref().map(|body| std::str::from_utf8(body)).transpose();
        let (outcome, done, error) = match &arrival.outcome {
            Outcome::Done(done) if done.records > 0 => ("data", Some(done), None),
            Outcome::Done(done) => ("empty", Some(done), None),
            Outcome::Failed { error } => ("failed", None, Some(error.as_str())),
        };
        // A page is done under the total that counts, which is what it says itself.
        let total = done.map(|done| done.total_records).or(arrival.total_records);
        self.tasks.push(&write.task.0);
        self.ids.push(arrival.id);
        self.times.push(arrival.at);
        self.urls.push(&arrival.url);
        self.endpoints.push(&arrival.endpoint_name);
        self.dates.push(arrival.data_date);
        self.runs.push(&arrival.run);
        self.parameters.push(parse(&arrival.parameters)?);
        self.codes.push(arrival.code.into());
        self.headers.push(parse(&arrival.headers)?);
        self.bodies.push(body.map_err(|error| unreadable(&error))?);
        self.current.push(whole(arrival.current_page));
        self.pages.push(whole(arrival.page));
        self.sizes.push(whole(arrival.page_size));
        self.total_records.push(total.map(whole));
        self.total_pages.push(arrival.total_pages.map(whole));
        self.elapsed.push(whole(arrival.elapsed.as_millis() as i64));
        self.outcomes.push(outcome);
        self.errors.push(error);
        self.bytes.push(whole(arrival.body.as_ref().map_or(0, |body| body.len() as i64)));
        self.records.push(done.map(|done| whole(done.records)));
        self.generations.push(done.map(|done| done.generation));
        self.body_hashes.push(done.map(|done| done.body_hash.as_str()));
        self.content_hashes.push(done.map(|done| done.content_hash.as_str()));
        Ok(())
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.tasks, Type::TEXT_ARRAY),
            (&self.ids, Type::UUID_ARRAY),
            (&self.times, Type::TIMESTAMPTZ_ARRAY),
            (&self.urls, Type::TEXT_ARRAY),
            (&self.endpoints, Type::TEXT_ARRAY),
            (&self.dates, Type::DATE_ARRAY),
            (&self.runs, Type::TEXT_ARRAY),
            (&self.parameters, Type::JSON_ARRAY),
            (&self.codes, Type::INT4_ARRAY),
            (&self.headers, Type::JSON_ARRAY),
            (&self.bodies, Type::TEXT_ARRAY),
            (&self.current, Type::INT4_ARRAY),
            (&self.pages, Type::INT4_ARRAY),
            (&self.sizes, Type::INT4_ARRAY),
            (&self.total_records, Type::INT4_ARRAY),
            (&self.total_pages, Type::INT4_ARRAY),
            (&self.elapsed, Type::INT4_ARRAY),
            (&self.outcomes, Type::TEXT_ARRAY),
            (&self.errors, Type::TEXT_ARRAY),
            (&self.bytes, Type::INT4_ARRAY),
            (&self.records, Type::INT4_ARRAY),
            (&self.generations, Type::INT4_ARRAY),
            (&self.body_hashes, Type::TEXT_ARRAY),
            (&self.content_hashes, Type::TEXT_ARRAY),
        ]
    }
}
