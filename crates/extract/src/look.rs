//! A task as people look at it: its pages in their order, those that are missing among them.
//!
//! A task may have 100,000 pages. They come a part at a time, by their numbers, from two questions
//! that the store answers in parts as well: which are stored, and which are missing.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::error::Result;
use crate::model::{Extraction, ExtractionId, Page, PageFailure, Window};
use crate::store::Store;

/// Runs of missing pages that a task is shown with; all of them are counted.
const RUNS: usize = 100;

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Data,
    /// It is there, without a record.
    Empty,
    /// It was asked for, and no answer was a page.
    Failed,
    /// It was not asked for yet.
    Missing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLine {
    /// Within the task: the window's base included.
    pub page: i64,
    pub outcome: Outcome,
    /// Whether it is as the source announces it now; what does not count is fetched again.
    pub counts: bool,
    pub stored: Option<Page>,
    /// The last failure of a page that does not count.
    pub failure: Option<PageFailure>,
}

/// The pages of a task above some page, and whether there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    pub lines: Vec<PageLine>,
    pub has_more: bool,
}

/// Which pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that are promised, and those that are stored though nobody promises them any more.
    All,
    /// Those that are promised and not stored as promised.
    Missing,
}

/// The first `limit` pages above `after`.
pub async fn pages(
    store: &dyn Store,
    id: &ExtractionId,
    which: Which,
    after: i64,
    limit: usize,
) -> Result<Pages> {
    let after = after.clamp(0, i32::MAX.into());
    let runs = store.missing_after(id, after, limit + 1).await?;
    let missing: Vec<i64> = runs.into_iter().flatten().take(limit + 1).collect();
    let mut numbers = missing.clone();
    let stored = match which {
        Which::All => store.pages_after(id, after, limit + 1).await?,
        Which::Missing => store.pages_named(id, missing.clone()).await?,
    };
    let mut stored: BTreeMap<i64, Page> =
        stored.into_iter().map(|page| (page.stored.page, page)).collect();
    if which == Which::All {
        numbers.extend(stored.keys());
        numbers.sort_unstable();
        numbers.dedup();
    }
    let has_more = numbers.len() > limit;
    numbers.truncate(limit);
    let is_missing = |page: i64| missing.binary_search(&page).is_ok();
    let open: Vec<i64> = numbers.iter().copied().filter(|page| is_missing(*page)).collect();
    let failures = match open.as_slice() {
        [] => Vec::new(),
        _ => store.page_failures(id, open).await?,
    };
    let mut failures: BTreeMap<i64, PageFailure> =
        failures.into_iter().map(|failure| (failure.page, failure)).collect();
    let windows = store.windows(id).await?;
    let lines = numbers.into_iter().map(|page| {
        let (stored, failure) = (stored.remove(&page), failures.remove(&page));
        let outcome = match (&stored, &failure) {
            (Some(page), _) if page.stored.records > 0 => Outcome::Data,
            (Some(_), _) => Outcome::Empty,
            (None, Some(_)) => Outcome::Failed,
            (None, None) => Outcome::Missing,
        };
        let counts = !is_missing(page) && is_promised(&windows, page);
        PageLine { page, outcome, counts, stored, failure }
    });
    Ok(Pages { lines: lines.collect(), has_more })
}

fn is_promised(windows: &[Window], page: i64) -> bool {
    let has = |window: &Window| {
        let pages = window.totals.map_or(0, |totals| totals.pages);
        (window.base + 1..=window.base + pages).contains(&page)
    };
    windows.iter().any(has)
}

/// A task with what is missing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub task: Extraction,
    pub windows: Vec<Window>,
    /// How many pages are missing, as far as the totals are known.
    pub missing: i64,
    /// The first hundred runs of them.
    pub missing_runs: Vec<RangeInclusive<i64>>,
}

pub async fn task(store: &dyn Store, id: &ExtractionId) -> Result<Option<Shown>> {
    let Some(task) = store.task(id).await? else { return Ok(None) };
    Ok(Some(Shown {
        windows: store.windows(id).await?,
        missing: store.missing_count(id).await?,
        missing_runs: store.missing_after(id, 0, RUNS).await?,
        task,
    }))
}
