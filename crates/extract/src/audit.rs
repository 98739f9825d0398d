//! Whether a store keeps its own promises: every page that should be there is, once, with the body
//! that came, the records that were counted and the sum that was announced. And, where it is asked
//! for, whether the source still announces the same.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use lavra_db::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::client::Fetch;
use crate::digest::digest;
use crate::error::Result;
use crate::host::{Ended, Host};
use crate::machine::{Happening, next};
use crate::missing::Missing;
use crate::model::{Extraction, ExtractionId, Page, Status, Stored, Totals, Window};
use crate::plan::today;
use crate::reading::{Reading, read};
use crate::records::keys;
use crate::request::request;
use crate::source::{Series, Source};
use crate::store::{Change, Held, Scope, Store, Write, Written};

/// Bodies that are read at once, in bytes.
const ROOM: i64 = 32 << 20;
/// How often a total is asked for before it is left.
const ATTEMPTS: u32 = 5;
/// Findings that a report names; all of them are counted.
const NAMED: usize = 1000;
/// How often a task is looked at that moves meanwhile.
const LOOKS: usize = 4;

/// What may be wrong with a page or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// It has not come to its end yet.
    NotComplete,
    /// It is said to be complete and is not.
    PageMissing,
    /// It is there more than once.
    PageTwice,
    BodyMissing,
    BodyTwice,
    /// It is not what came.
    BodyChanged,
    /// It does not have as many records as were counted when it came.
    RecordsDiffer,
    /// The source announces another total now.
    Moved,
    /// The source could not be asked.
    NotAsked,
}

impl Problem {
    /// Whether something that was stored is not there as it was stored.
    pub fn is_damage(self) -> bool {
        match self {
            Self::PageMissing
            | Self::PageTwice
            | Self::BodyMissing
            | Self::BodyTwice
            | Self::BodyChanged
            | Self::RecordsDiffer => true,
            Self::NotComplete | Self::Moved | Self::NotAsked => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub task: ExtractionId,
    pub page: Option<i64>,
    pub problem: Problem,
    pub detail: String,
}

/// What was looked at and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub tasks: usize,
    pub complete: usize,
    pub pages: u64,
    pub records: u64,
    pub bytes: u64,
    /// Records that have the key of another one of the same task: the source gave them twice.
    pub repeated: u64,
    /// Totals that were asked for anew.
    pub asked: u64,
    pub problems: BTreeMap<Problem, u64>,
    /// At most a thousand.
    pub findings: Vec<Finding>,
    /// Tasks that the next run fetches again.
    pub repaired: u64,
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    pub fn is_damaged(&self) -> bool {
        self.problems.keys().any(|problem| problem.is_damage())
    }

    fn add(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.complete += other.complete;
        self.pages += other.pages;
        self.records += other.records;
        self.bytes += other.bytes;
        self.repeated += other.repeated;
        self.asked += other.asked;
        for (problem, count) in other.problems {
            *self.problems.entry(problem).or_default() += count;
        }
        let room = NAMED.saturating_sub(self.findings.len());
        self.findings.extend(other.findings.into_iter().take(room));
        self.repaired += other.repaired;
    }

    fn find(
        &mut self,
        task: &ExtractionId,
        page: Option<i64>,
        problem: Problem,
        detail: impl Into<String>,
    ) {
        *self.problems.entry(problem).or_default() += 1;
        if self.findings.len() < NAMED {
            let detail = detail.into();
            self.findings.push(Finding { task: task.clone(), page, problem, detail });
        }
    }
}

/// What an audit needs.
#[derive(Debug)]
pub struct Audit {
    pub store: Arc<dyn Store>,
    pub source: Arc<Source>,
    pub stop: CancellationToken,
    /// Asks for the totals anew.
    pub against: Option<Against>,
    /// Marks what is damaged, so that the next run fetches it again.
    pub repair: bool,
}

#[derive(Debug)]
pub struct Against {
    pub client: Arc<dyn Fetch>,
    pub host: Arc<Host>,
}

impl Audit {
    /// Looks at all of `scope`; `tell` hears how many tasks of how many are done.
    pub async fn run(&self, scope: &Scope, tell: impl Fn(usize, usize)) -> Result<Report> {
        let tasks = self.store.tasks(scope).await?;
        let (mut report, all) = (Report::default(), tasks.len());
        for (done, task) in tasks.iter().enumerate() {
            if self.stop.is_cancelled() {
                break;
            }
            tell(done, all);
            let (task, found, damaged) = self.at_rest(task.clone()).await?;
            report.add(found);
            if self.repair && !damaged.is_empty() && task.status == Status::Complete {
                report.repaired += u64::from(self.repair(&task, damaged).await?);
            }
        }
        Ok(report)
    }

    /// Looks at one task, and once more if it was fetched anew while it was looked at.
    async fn at_rest(&self, task: Extraction) -> Result<(Extraction, Report, Vec<i64>)> {
        let mut task = task;
        for _ in 1..LOOKS {
            let mut found = Report { tasks: 1, ..Report::default() };
            let damaged = self.task(&task, &mut found).await?;
            let now = self.store.task(&task.task_id).await?;
            let has_moved =
                |now: &Extraction| (now.generation, now.token) != (task.generation, task.token);
            match now.filter(has_moved) {
                Some(now) => task = now,
                None => return Ok((task, found, damaged)),
            }
        }
        let mut found = Report { tasks: 1, ..Report::default() };
        found.find(&task.task_id, None, Problem::NotComplete, "it is being fetched anew");
        Ok((task, found, Vec::new()))
    }

    /// Looks at one task; the damaged pages are returned.
    async fn task(&self, task: &Extraction, report: &mut Report) -> Result<Vec<i64>> {
        let id = &task.task_id;
        let Some(series) = self.source.series(&task.endpoint_name) else {
            report.find(id, None, Problem::NotAsked, "the source has no such endpoint any more");
            return Ok(Vec::new());
        };
        let windows = self.store.windows(id).await?;
        let pages = self.store.pages(id).await?;
        let mut damaged = Vec::new();
        if task.status == Status::Complete {
            report.complete += 1;
            for page in absent(&windows, &pages, series.endpoint.page_size, task.generation) {
                let text = "promised, and not stored as promised";
                report.find(id, Some(page), Problem::PageMissing, text);
                damaged.push(page);
            }
        } else {
            let text = match &task.last_error {
                Some(error) => format!("{}: {error}", task.status),
                None => task.status.to_string(),
            };
            report.find(id, None, Problem::NotComplete, text);
        }
        let pages: Vec<Page> = pages.into_iter().filter(|page| is_within(&windows, page)).collect();
        for twice in pages.windows(2).filter(|two| two[0].stored.page == two[1].stored.page) {
            let page = twice[0].stored.page;
            report.find(id, Some(page), Problem::PageTwice, "stored more than once");
            damaged.push(page);
        }
        let mut seen = HashSet::new();
        for batch in batches(&pages) {
            let ids = batch.iter().map(|page| page.response).collect();
            let mut bodies: HashMap<Uuid, Vec<Option<String>>> = HashMap::new();
            for (id, body) in self.store.bodies(id, ids).await? {
                bodies.entry(id).or_default().push(body);
            }
            for page in batch {
                report.pages += 1;
                report.records += page.stored.records as u64;
                report.bytes += page.bytes as u64;
                let found = bodies.remove(&page.response).unwrap_or_default();
                if let Err((problem, detail)) =
                    self.page(page, &found, &series, &mut seen, &mut report.repeated)
                {
                    report.find(id, Some(page.stored.page), problem, detail);
                    damaged.push(page.stored.page);
                }
            }
        }
        if task.status == Status::Complete
            && let Some(against) = &self.against
        {
            self.against(against, task, &series, &windows, report).await?;
        }
        Ok(damaged)
    }

    fn page(
        &self,
        page: &Page,
        found: &[Option<String>],
        series: &Series<'_>,
        seen: &mut HashSet<u128>,
        repeated: &mut u64,
    ) -> Result<(), (Problem, String)> {
        let body = match found {
            [] => {
                return Err((Problem::BodyMissing, format!("no response {}", page.response)));
            }
            [body] => body.as_deref().unwrap_or(""),
            [..] => {
                let text = format!("response {} is there {} times", page.response, found.len());
                return Err((Problem::BodyTwice, text));
            }
        };
        let hash = hex(&Sha256::digest(body.as_bytes()));
        if hash != page.body_hash {
            let text = format!("its SHA-256 is {hash}, and was {}", page.body_hash);
            return Err((Problem::BodyChanged, text));
        }
        // Nothing, and a few words, are how sources say that there is nothing.
        if page.stored.records == 0 {
            return Ok(());
        }
        let read = digest(body.as_bytes(), &self.source, series.endpoint);
        let records = read.ok().and_then(|digest| digest.records);
        if records != Some(page.stored.records) {
            let text = match records {
                Some(records) => {
                    format!("has {records} records, and {} counted", page.stored.records)
                }
                None => "is no JSON with records".into(),
            };
            return Err((Problem::RecordsDiffer, text));
        }
        for key in keys(body, &self.source, series.endpoint) {
            if !seen.insert(key) {
                *repeated += 1;
            }
        }
        Ok(())
    }

    /// Asks the source for the total of each window anew.
    async fn against(
        &self,
        against: &Against,
        task: &Extraction,
        series: &Series<'_>,
        windows: &[Window],
        report: &mut Report,
    ) -> Result<()> {
        for window in windows {
            let Some(totals) = window.totals else { continue };
            report.asked += 1;
            let days = format!("{} to {}", window.first_day, window.last_day);
            match self.total(against, series, window).await? {
                Ok(now) if now == totals.records => {}
                Ok(now) => {
                    let text = format!("{days}: {} were announced, {now} now", totals.records);
                    report.find(&task.task_id, None, Problem::Moved, text);
                }
                Err(error) => {
                    let text = format!("{days}: {error}");
                    report.find(&task.task_id, None, Problem::NotAsked, text);
                }
            }
        }
        Ok(())
    }

    async fn total(
        &self,
        against: &Against,
        series: &Series<'_>,
        window: &Window,
    ) -> Result<Result<i64, String>> {
        let now = || self.store.clock().now();
        let endpoint = series.endpoint;
        let request = request(&self.source, series, window, 1, today(&self.source, now()))?;
        let mut error = String::from("stopped");
        for asked in 0..ATTEMPTS {
            // Whoever asks for thousands of totals does not wait for each.
            if against.host.away_for(&endpoint.name).is_some() {
                return Ok(Err(format!("{} is away", endpoint.name)));
            }
            let permit = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Ok(Err(error)),
                permit = against.host.permit(&endpoint.name, endpoint.in_flight) => permit,
            };
            let answer = against.client.fetch(&request.url).await;
            let reading = read(&answer, &self.source, endpoint, 1, asked, now());
            permit.end(Ended::of(&reading));
            match reading {
                Reading::Data(digest) => return Ok(Ok(digest.total.unwrap_or(0))),
                Reading::Empty | Reading::PastEnd => return Ok(Ok(0)),
                Reading::Refused(failure) => return Ok(Err(failure.error)),
                Reading::Retry(failure) => error = failure.error,
            }
            tokio::select! {
                () = tokio::time::sleep(std::time::Duration::from_secs(1 << asked)) => {}
                () = self.stop.cancelled() => return Ok(Err(error)),
            }
        }
        Ok(Err(error))
    }

    /// The next run fetches all of the task again, and stores what comes for the damaged pages. `false` when
    /// somebody else has taken the task meanwhile.
    async fn repair(&self, task: &Extraction, damaged: Vec<i64>) -> Result<bool> {
        self.store.distrust(&task.task_id, damaged).await?;
        let at: Timestamp = self.store.clock().now();
        let next = next(task, Happening::Refreshed, at)?;
        let change =
            Change { next, held: Held::Nobody, totals: None, windows: None, missing: None };
        let write = Write {
            task: task.task_id.clone(),
            token: task.token,
            change: Some(change),
            arrivals: Vec::new(),
        };
        let written = self.store.write(vec![write]).await?;
        Ok(matches!(written.first(), Some(Written::Applied { .. })))
    }
}

/// Whether a page is one of those that the windows have now.
pub(crate) fn is_within(windows: &[Window], page: &Page) -> bool {
    windows.iter().any(|window| {
        let pages = window.totals.map_or(0, |totals| totals.pages);
        page.stored.page > window.base && page.stored.page <= window.base + pages
    })
}

/// As many pages as there is room for at once.
pub(crate) fn batches(pages: &[Page]) -> impl Iterator<Item = &[Page]> {
    let mut rest = pages;
    std::iter::from_fn(move || {
        let mut room = ROOM;
        let fits = rest.iter().take_while(|page| {
            let had = room;
            room -= page.bytes;
            had > 0
        });
        let (batch, left) = rest.split_at(fits.count());
        rest = left;
        (!batch.is_empty()).then_some(batch)
    })
}

/// The promised pages that are not stored as promised, by their number within the task.
fn absent(windows: &[Window], pages: &[Page], page_size: i64, generation: i32) -> Vec<i64> {
    let mut absent = Vec::new();
    for window in windows {
        let Some(totals) = window.totals else { continue };
        let stored: BTreeMap<i64, Stored> = pages
            .iter()
            .filter(|page| page.stored.page > window.base)
            .map(|page| (page.stored.page - window.base, page.stored))
            .collect();
        // It may have been fetched in pages of another size: the first one is a full one then.
        let was = stored.get(&1).map(|first| first.records).filter(|size| *size > 0);
        let was = was.filter(|size| Totals::of(totals.records, *size) == totals);
        let missing = Missing::of(totals, was.unwrap_or(page_size), generation, &stored);
        absent.extend(missing.pages().map(|page| window.base + page));
    }
    absent
}
