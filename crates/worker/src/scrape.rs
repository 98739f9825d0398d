//! A scrape: all pages of what was ordered, reconciled with the totals that the source announces.
//!
//! Pages are files until the job is over, so that a restart asks only for those that are missing. A page
//! counts if it announces the total of page 1 and has as many records as that total gives it; where that
//! fails, or a record comes twice, the list has moved under us and is read anew, a few times.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use lavra_extract::digest::digest;
use lavra_extract::records::keys;
use lavra_extract::source::{Endpoint, Source};

use crate::ask::{Asked, Trouble, Way};
use crate::model::{Blame, Code};
use crate::plan::Plan;

/// So often a list is read before it is given up.
const ROUNDS: u32 = 3;

/// How far a scrape is, for whoever asks.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) ads: AtomicU64,
    pub(crate) total: AtomicU64,
    pub(crate) pages_done: AtomicU64,
    pub(crate) pages: AtomicU64,
}

impl Progress {
    /// Those that came, of how many.
    pub(crate) fn pages(&self) -> (u64, u64) {
        (self.pages_done.load(Ordering::Relaxed), self.pages.load(Ordering::Relaxed))
    }

    pub(crate) fn ads(&self) -> u64 {
        self.ads.load(Ordering::Relaxed)
    }

    pub(crate) fn percent(&self) -> u64 {
        let (done, all) = self.pages();
        (100 * done).checked_div(all).unwrap_or(0).min(99)
    }
}

#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) way: Way,
    pub(crate) plan: Plan,
    pub(crate) max_ads: Option<u64>,
    /// Where its pages are kept.
    pub(crate) pages: PathBuf,
    pub(crate) progress: Arc<Progress>,
}

/// What was read: the files of the pages in their order, and how many of their records count.
#[derive(Debug)]
pub(crate) struct Harvest {
    pub(crate) pages: Vec<PathBuf>,
    pub(crate) ads: u64,
}

struct Page {
    number: i64,
    total: i64,
    records: i64,
    keys: Vec<u128>,
}

/// The list is not what it was when page 1 was read.
struct Moved(String);

enum Stop {
    Moved(Moved),
    Trouble(Trouble),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl Scrape {
    pub(crate) async fn run(&self) -> Result<Harvest, Trouble> {
        tokio::fs::create_dir_all(&self.pages).await.map_err(|error| disk(&error))?;
        let mut harvest = Harvest { pages: Vec::new(), ads: 0 };
        for list in 0..self.plan.lists() {
            let left = self.max_ads.map(|most| most - harvest.ads.min(most));
            if left == Some(0) {
                break;
            }
            let (numbers, ads) = self.list(list, left).await?;
            harvest.pages.extend(numbers.into_iter().map(|number| self.file(list, number)));
            harvest.ads += ads;
        }
        Ok(harvest)
    }

    /// The pages of a list, and how many of their records count.
    async fn list(&self, list: usize, most: Option<u64>) -> Result<(Vec<i64>, u64), Trouble> {
        let mut moved = String::new();
        for _ in 0..ROUNDS {
            match self.round(list, most).await {
                Ok(read) => return Ok(read),
                Err(Stop::Trouble(trouble)) => return Err(trouble),
                Err(Stop::Moved(Moved(how))) => {
                    tracing::info!(list, how, "the list moved while it was read: once more");
                    self.forget(list).await?;
                    moved = how;
                }
            }
        }
        let text = format!("the list moved each of the {ROUNDS} times it was read: {moved}");
        Err(Trouble::new(Code::Error200, Blame::Nobody, text))
    }

    async fn round(&self, list: usize, most: Option<u64>) -> Result<(Vec<i64>, u64), Stop> {
        let Some(first) = self.page(list, 1).await? else { return Ok((Vec::new(), 0)) };
        let size = self.plan.endpoint.page_size.max(1);
        let total = first.total;
        let wanted = most.map_or(total, |most| total.min(i64::try_from(most).unwrap_or(i64::MAX)));
        let pages = (wanted.max(0) as u64).div_ceil(size as u64) as i64;
        let limit = self.plan.source.limits.max_pages;
        if pages > limit {
            let text = format!("{pages} pages are more than max_pages of the source, {limit}");
            return Err(Trouble::new(Code::Error500, Blame::Mission, text).into());
        }
        self.progress.total.fetch_add(wanted as u64, Ordering::Relaxed);
        self.progress.pages.fetch_add(pages as u64, Ordering::Relaxed);
        self.check(&first, total, size)?;
        let at_once = self.plan.source.limits.in_flight.max(1);
        let rest: Vec<Page> = stream::iter(2..=pages)
            .map(|number| async move {
                let gone = || Stop::Moved(Moved(format!("page {number} is not there any more")));
                let page = self.page(list, number).await?.ok_or_else(gone)?;
                self.check(&page, total, size)?;
                Ok::<_, Stop>(page)
            })
            .buffer_unordered(at_once)
            .try_collect()
            .await?;
        let mut seen = HashSet::new();
        let all_keys = first.keys.iter().chain(rest.iter().flat_map(|page| &page.keys));
        let twice = all_keys.filter(|key| !seen.insert(**key)).count();
        if twice > 0 {
            return Err(Stop::Moved(Moved(format!("{twice} records came twice"))));
        }
        let records: i64 = first.records + rest.iter().map(|page| page.records).sum::<i64>();
        let numbers = (1..=pages.max(i64::from(first.records > 0))).collect();
        Ok((numbers, records.min(wanted).max(0) as u64))
    }

    /// Whether a page is of the list that page 1 announced.
    fn check(&self, page: &Page, total: i64, size: i64) -> Result<(), Stop> {
        let Page { number, total: told, records, .. } = page;
        if *told != total {
            let text = format!("the total was {total} on page 1 and {told} on page {number}");
            return Err(Stop::Moved(Moved(text)));
        }
        // Where lists within the records count, pages are not all of one size.
        let expected = (total - (number - 1) * size).clamp(0, size);
        if self.plan.endpoint.count.is_none() && *records != expected {
            let text = format!("page {number} has {records} records instead of {expected}");
            return Err(Stop::Moved(Moved(text)));
        }
        self.progress.pages_done.fetch_add(1, Ordering::Relaxed);
        self.progress.ads.fetch_add(*records as u64, Ordering::Relaxed);
        Ok(())
    }

    /// A page, from its file where it is there; `None` where the list has none such.
    async fn page(&self, list: usize, number: i64) -> Result<Option<Page>, Trouble> {
        let file = self.file(list, number);
        if let Ok(body) = tokio::fs::read(&file).await
            && let Some(page) = self.look(number, &body)
        {
            return Ok(Some(page));
        }
        let body = match self.way.ask(&self.plan, list, number).await? {
            Asked::Page(body) => body,
            Asked::Empty | Asked::PastEnd => return Ok(None),
        };
        keep(&file, &body).await.map_err(|error| disk(&error))?;
        let unread = || Trouble::new(Code::Error200, Blame::Nobody, "a page cannot be read");
        self.look(number, &body).map(Some).ok_or_else(unread)
    }

    fn look(&self, number: i64, body: &[u8]) -> Option<Page> {
        let (source, endpoint) = (&self.plan.source, &self.plan.endpoint);
        let found = digest(body, source, endpoint).ok()?;
        let text = std::str::from_utf8(body).ok()?;
        let keys = keys(text, source, endpoint);
        Some(Page { number, total: found.total?, records: found.records?, keys })
    }

    async fn forget(&self, list: usize) -> Result<(), Trouble> {
        let Progress { ads, total, pages_done, pages } = &*self.progress;
        for number in [ads, total, pages_done, pages] {
            number.store(0, Ordering::Relaxed);
        }
        let mut files = tokio::fs::read_dir(&self.pages).await.map_err(|error| disk(&error))?;
        let own = format!("{list}-");
        while let Ok(Some(file)) = files.next_entry().await {
            if file.file_name().to_string_lossy().starts_with(&own) {
                let _overwritten_otherwise = tokio::fs::remove_file(file.path()).await;
            }
        }
        Ok(())
    }

    fn file(&self, list: usize, number: i64) -> PathBuf {
        self.pages.join(format!("{list}-{number}"))
    }
}

/// How many records the pages of a job have that another process left here.
pub(crate) fn left(source: &Source, endpoint: &Endpoint, pages: &Path) -> u64 {
    let files = std::fs::read_dir(pages).into_iter().flatten().flatten();
    let bodies = files.filter_map(|file| std::fs::read(file.path()).ok());
    let records = bodies.filter_map(|body| digest(&body, source, endpoint).ok()?.records);
    records.map(|count| count.max(0) as u64).sum()
}

/// Not flushed to the disk: what a crash of the machine leaves is looked at before it is believed.
async fn keep(file: &Path, body: &Bytes) -> std::io::Result<()> {
    let unfinished = crate::disk::unfinished(file);
    tokio::fs::write(&unfinished, body).await?;
    tokio::fs::rename(&unfinished, file).await
}

pub(crate) fn disk(error: &std::io::Error) -> Trouble {
    Trouble::new(Code::Error400, Blame::Storage, format!("the worker's disk: {error}"))
}
