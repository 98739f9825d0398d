//! The store in memory, for simulations: the answers of the databases without one, under a clock
//! that can be stopped. It is held to the same contract.

mod look;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use lavra_db::Clock;
use lavra_tasks::model::{ProcessId, Token};
use uuid::Uuid;

use crate::error::Result;
use crate::model::{Cell, Extraction, ExtractionId, Page, PageFailure, Status, Stored, Window};
use crate::store::{
    Arrival, Change, Held, Looks, Outcome, Planned, Progress, Reads, Scope, Slice, Store, Volume,
    Want, Write, Writes, Written,
};

/// A source's tables, in memory. Clones are the same tables.
#[derive(Clone, Debug)]
pub struct Memory {
    tables: Arc<Mutex<Tables>>,
    clock: Clock,
    /// How long a write takes to arrive, and its answer to come back.
    distance: Duration,
    /// The answer to each so manieth write does not come back.
    loses: Option<u64>,
}

#[derive(Debug, Default)]
struct Tables {
    tasks: BTreeMap<ExtractionId, Row>,
    /// All that were kept, by their ids, which are in the order of time.
    responses: BTreeMap<Uuid, Arrival>,
    /// When each process last said that it lives.
    processes: BTreeMap<ProcessId, Timestamp>,
    last_token: Token,
    writes: u64,
}

#[derive(Debug)]
struct Row {
    task: Extraction,
    is_begun: bool,
    windows: Vec<Window>,
    missing: Vec<i64>,
    pages: BTreeMap<i64, Page>,
}

impl Memory {
    /// Empty tables at `now`; time goes on as tokio's does.
    pub fn new(now: Timestamp) -> Self {
        let clock = Clock::simulated(now);
        Self { tables: Arc::default(), clock, distance: Duration::ZERO, loses: None }
    }

    /// The same tables, further away: whoever dies while they are written to may have been heard,
    /// or not.
    #[must_use]
    pub fn at_distance(self, distance: Duration) -> Self {
        Self { distance, ..self }
    }

    /// The same tables over a bad line: what is written arrives, and each `nth` time the writer does
    /// not hear of it.
    #[must_use]
    pub fn losing_each(self, nth: u64) -> Self {
        Self { loses: Some(nth), ..self }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn travel(&self) {
        if !self.distance.is_zero() {
            tokio::time::sleep(self.distance).await;
        }
    }

    /// A process says that it lives.
    pub fn beat(&self, process: ProcessId) {
        self.tables().processes.insert(process, self.clock.now());
    }

    /// A process says that it will not come back.
    pub fn retire(&self, process: ProcessId) {
        self.tables().processes.remove(&process);
    }

    /// All that was kept, failures included, in the order of time.
    pub fn responses(&self) -> Vec<Arrival> {
        self.tables().responses.values().cloned().collect()
    }

    /// The response that a page stands on.
    pub fn response_of(&self, task: &ExtractionId, page: i64) -> Option<Arrival> {
        let tables = self.tables();
        let page = tables.tasks.get(task)?.pages.get(&page)?;
        tables.responses.get(&page.response).cloned()
    }

    /// The bodies of a task's pages, as far as its windows promise them.
    pub fn promised(&self, task: &ExtractionId) -> Vec<Bytes> {
        let tables = self.tables();
        let Some(row) = tables.tasks.get(task) else { return Vec::new() };
        let promised = row.windows.iter().filter_map(|window| {
            let first = window.base + 1;
            Some(row.pages.range(first..first + window.totals?.pages))
        });
        let responses = promised.flatten().filter_map(|(_, page)| {
            let response = tables.responses.get(&page.response)?;
            response.body.clone()
        });
        responses.collect()
    }

    /// The pages of a task that people see as missing.
    pub fn missing(&self, task: &ExtractionId) -> Vec<i64> {
        self.tables().tasks.get(task).map(|row| row.missing.clone()).unwrap_or_default()
    }
}

impl Scope {
    fn has(&self, task: &Extraction) -> bool {
        (self.endpoints.is_empty() || self.endpoints.contains(&task.endpoint_name))
            && (self.from..=self.to).contains(&task.data_date)
    }
}

impl Tables {
    /// By date and name.
    fn of(&self, scope: &Scope) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.tasks.values().filter(|row| scope.has(&row.task)).collect();
        rows.sort_by(|a, b| order(&a.task).cmp(&order(&b.task)));
        rows
    }

    fn is_dead(&self, process: ProcessId, before: Timestamp) -> bool {
        self.processes.get(&process).is_none_or(|beat| *beat < before)
    }

    fn write(&mut self, write: Write, now: Timestamp) -> Written {
        let next_token = self.last_token + 1;
        let Some(row) = self.tasks.get_mut(&write.task).filter(|r| r.task.token == write.token)
        else {
            return Written::Lost;
        };
        if let Some(change) = write.change {
            row.change(change, next_token, now);
            self.last_token = next_token;
        }
        for arrival in write.arrivals {
            if row.take(&arrival) {
                self.responses.insert(arrival.id, arrival);
            }
        }
        Written::Applied { token: row.task.token }
    }
}

fn order(task: &Extraction) -> (jiff::civil::Date, &str) {
    (task.data_date, &task.endpoint_name)
}

impl Row {
    fn new(planned: Planned, now: Timestamp) -> Self {
        let Planned { task_id, endpoint_name, data_date } = planned;
        let task = Extraction {
            task_id,
            endpoint_name,
            data_date,
            status: Status::Pending,
            total_pages: None,
            total_records: None,
            last_error: None,
            updated_at: now,
            token: 0,
            process: None,
            attempts: 0,
            failing_since: None,
            next_attempt_at: None,
            discoveries: 0,
            generation: 1,
            discovered_at: None,
            is_final: false,
            verdict: None,
        };
        let (windows, missing) = (Vec::new(), Vec::new());
        Self { task, is_begun: false, windows, missing, pages: BTreeMap::new() }
    }

    fn change(&mut self, change: Change, next_token: Token, now: Timestamp) {
        let Change { next, held, totals, windows, missing } = change;
        let task = &mut self.task;
        task.status = next.status;
        task.attempts = next.attempts;
        task.failing_since = next.failing_since;
        task.next_attempt_at = next.next_attempt_at;
        task.discoveries = next.discoveries;
        task.generation = next.generation;
        task.is_final = next.is_final;
        task.verdict = next.verdict;
        task.last_error = next.last_error;
        task.updated_at = now;
        if let Some(totals) = totals {
            (task.total_pages, task.total_records) = (Some(totals.pages), Some(totals.records));
        }
        match held {
            Held::Same => {}
            Held::Claimed { by, begun } => {
                (task.process, task.token, self.is_begun) = (Some(by), next_token, begun);
            }
            Held::Offered => self.is_begun = false,
            Held::Nobody => (task.process, self.is_begun) = (None, false),
        }
        if let Some(windows) = windows {
            task.discovered_at = Some(now);
            self.windows = windows;
            self.windows.sort_by_key(|window| window.number);
        }
        if let Some(missing) = missing {
            self.missing = missing;
        }
    }

    /// Takes note of an arrival, and says whether it is to be kept: the same content is not twice.
    fn take(&mut self, arrival: &Arrival) -> bool {
        let Outcome::Done(done) = &arrival.outcome else { return true };
        let (page, records, total_records) = (arrival.page, done.records, done.total_records);
        let stored = Stored { page, records, total_records, generation: done.generation };
        let known = self.pages.get_mut(&page).filter(|k| k.content_hash == done.content_hash);
        if let Some(known) = known {
            (known.stored, known.fetched_at) = (stored, arrival.at);
            return false;
        }
        let bytes = arrival.body.as_ref().map_or(0, |body| body.len() as i64);
        let (body_hash, content_hash) = (done.body_hash.clone(), done.content_hash.clone());
        let (response, fetched_at) = (arrival.id, arrival.at);
        let page_row = Page { stored, bytes, response, body_hash, content_hash, fetched_at };
        self.pages.insert(page, page_row);
        true
    }
}

impl Store for Memory {
    fn clock(&self) -> &Clock {
        &self.clock
    }
}

#[async_trait]
impl Writes for Memory {
    async fn plan(&self, tasks: Vec<Planned>) -> Result<usize> {
        let (mut tables, now) = (self.tables(), self.clock.now());
        let before = tables.tasks.len();
        for planned in tasks {
            tables.tasks.entry(planned.task_id.clone()).or_insert_with(|| Row::new(planned, now));
        }
        Ok(tables.tasks.len() - before)
    }

    async fn write(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        self.travel().await;
        let (written, count) = {
            let (mut tables, now) = (self.tables(), self.clock.now());
            tables.writes += 1;
            let written = writes.into_iter().map(|write| tables.write(write, now)).collect();
            (written, tables.writes)
        };
        self.travel().await;
        if self.loses.is_some_and(|nth| count.is_multiple_of(nth)) {
            let (operation, host) = ("store what was extracted", "memory".to_owned());
            return Err(lavra_db::Error::Timeout { operation, host, limit: self.distance }.into());
        }
        Ok(written)
    }

    async fn distrust(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<()> {
        let mut tables = self.tables();
        if let Some(row) = tables.tasks.get_mut(id) {
            let distrusted = row.pages.iter_mut().filter(|(page, _)| pages.contains(page));
            distrusted.for_each(|(_, page)| page.content_hash.clear());
        }
        Ok(())
    }
}

#[async_trait]
impl Reads for Memory {
    async fn candidates(
        &self,
        scope: &Scope,
        want: Want,
        stale: Duration,
        limit: usize,
    ) -> Result<Vec<Extraction>> {
        let (tables, now) = (self.tables(), self.clock.now());
        let alive_since = now - SignedDuration::try_from(stale).unwrap_or(SignedDuration::MAX);
        let is_wanted = |status: Status| match want {
            Want::Discovery => matches!(status, Status::Pending | Status::Discovering),
            Want::Pages => matches!(status, Status::Partial | Status::Fetching),
        };
        let is_free = |row: &&Row| {
            let task = &row.task;
            is_wanted(task.status)
                && task.next_attempt_at.is_none_or(|at| at <= now)
                && (task.process.is_none_or(|process| tables.is_dead(process, alive_since))
                    || (task.status == Status::Fetching && !row.is_begun))
        };
        let mut free: Vec<&Row> = tables.of(scope).into_iter().filter(is_free).collect();
        // A stable sort: within each, by date and name still.
        free.sort_by_key(|row| want == Want::Pages && row.task.status != Status::Partial);
        Ok(free.into_iter().take(limit).map(|row| row.task.clone()).collect())
    }

    async fn task(&self, id: &ExtractionId) -> Result<Option<Extraction>> {
        Ok(self.tables().tasks.get(id).map(|row| row.task.clone()))
    }

    async fn tasks(&self, scope: &Scope) -> Result<Vec<Extraction>> {
        Ok(self.tables().of(scope).into_iter().map(|row| row.task.clone()).collect())
    }

    async fn progress(&self, scope: &Scope) -> Result<Vec<Progress>> {
        let tables = self.tables();
        Ok(tables.of(scope).into_iter().map(Row::progress).collect())
    }

    async fn windows(&self, id: &ExtractionId) -> Result<Vec<Window>> {
        Ok(self.tables().tasks.get(id).map(|row| row.windows.clone()).unwrap_or_default())
    }

    async fn stored(&self, id: &ExtractionId) -> Result<Vec<Stored>> {
        let tables = self.tables();
        let row = tables.tasks.get(id);
        Ok(row.map(|row| row.pages.values().map(|page| page.stored).collect()).unwrap_or_default())
    }

    async fn pages(&self, id: &ExtractionId) -> Result<Vec<Page>> {
        let tables = self.tables();
        let row = tables.tasks.get(id);
        Ok(row.map(|row| row.pages.values().cloned().collect()).unwrap_or_default())
    }

    async fn bodies(
        &self,
        id: &ExtractionId,
        responses: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, Option<String>)>> {
        let tables = self.tables();
        let is_of = |response: &&Arrival| {
            ExtractionId::new(&response.endpoint_name, response.data_date) == *id
        };
        let text = |body: &Bytes| String::from_utf8_lossy(body).into_owned();
        let found = responses.into_iter().filter_map(|response| {
            let kept = tables.responses.get(&response).filter(is_of)?;
            Some((response, kept.body.as_ref().map(text)))
        });
        Ok(found.collect())
    }
}

#[async_trait]
impl Looks for Memory {
    async fn volume(&self) -> Result<Volume> {
        Ok(self.tables().volume())
    }

    async fn statuses(&self) -> Result<BTreeMap<Status, i64>> {
        Ok(self.tables().statuses())
    }

    async fn progress_slice(&self, scope: &Scope, slice: &Slice) -> Result<Vec<Progress>> {
        Ok(self.tables().slice(scope, slice))
    }

    async fn grid(&self, scope: &Scope) -> Result<Vec<Cell>> {
        Ok(self.tables().grid(scope))
    }

    async fn pages_after(&self, id: &ExtractionId, after: i64, limit: usize) -> Result<Vec<Page>> {
        let tables = self.tables();
        let pages = tables.tasks.get(id).into_iter().flat_map(|row| row.pages.range(after + 1..));
        Ok(pages.take(limit).map(|(_, page)| page.clone()).collect())
    }

    async fn pages_named(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<Page>> {
        let tables = self.tables();
        let stored = tables.tasks.get(id).into_iter().flat_map(|row| &row.pages);
        Ok(stored.filter(|(page, _)| pages.contains(page)).map(|(_, page)| page.clone()).collect())
    }

    async fn missing_after(
        &self,
        id: &ExtractionId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RangeInclusive<i64>>> {
        let gaps = self.tables().gaps(id);
        let above = gaps.into_iter().filter(|run| *run.end() > after);
        Ok(above.map(|run| *run.start().max(&(after + 1))..=*run.end()).take(limit).collect())
    }

    async fn missing_count(&self, id: &ExtractionId) -> Result<i64> {
        let gaps = self.tables().gaps(id);
        Ok(gaps.iter().map(|run| run.end() - run.start() + 1).sum())
    }

    async fn page_failures(&self, id: &ExtractionId, pages: Vec<i64>) -> Result<Vec<PageFailure>> {
        Ok(self.tables().failures(id, &pages))
    }

    async fn opening(
        &self,
        id: &ExtractionId,
        response: Uuid,
        most: usize,
    ) -> Result<Option<String>> {
        let body = self.bodies(id, vec![response]).await?.pop().and_then(|(_, body)| body);
        Ok(body.map(|body| body.chars().take(most).collect()))
    }
}
