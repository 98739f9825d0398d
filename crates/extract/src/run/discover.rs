//! Phase 2: the totals of a task, from page 1 of each of its windows.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;

use super::Run;
use super::ask::Asked;
use super::held::{after, write};
use crate::client::LARGE;
use crate::error::Result;
use crate::event::Event;
use crate::machine::{Fetched, Happening, next};
use crate::missing::Missing;
use crate::model::{Extraction, Stored, Totals, Window};
use crate::plan::is_over;
use crate::reading::{Failure, Kind};
use crate::sink::Broken;
use crate::source::Endpoint;
use crate::store::{Arrival, Change, Held, Outcome, Written};

/// So often does page 1 fail before its window is halved, and one that was halved before.
const HALVED_AFTER: i32 = 4;
const HALVED_AGAIN_AFTER: i32 = 2;

/// Why what is missing of a snapshot of another month is not asked for.
pub(super) const HISTORY: &str =
    "the source tells only what there is today, and the month that this was to be of is over";

/// What came of asking for totals.
enum Found {
    Totals {
        windows: Vec<Window>,
        arrivals: Vec<Arrival>,
    },
    Failed {
        failure: Failure,
        window: usize,
        windows: Vec<Window>,
    },
    Refused(String),
    /// Told to stop, or not known to hold the task any more.
    Stopped,
}

impl Run {
    /// Finds the totals of a task that was claimed for it, and offers it to whoever fetches.
    pub(super) async fn discover(self: Arc<Self>, task: Extraction) -> Result<()> {
        let found = if self.is_history(&task) {
            Found::Refused(HISTORY.to_owned())
        } else {
            let windows = self.windows(&task).await?;
            self.totals(&task, windows, 1).await?
        };
        self.settle(task, found, Held::Offered).await?;
        Ok(())
    }

    /// Finds the totals of a task again, because they have moved. `None` when the task is not at
    /// work any more.
    pub(super) async fn discover_again(&self, task: Extraction) -> Result<Option<Extraction>> {
        let mut windows = self.windows(&task).await?;
        for window in &mut windows {
            window.totals = None;
        }
        let found = self.totals(&task, windows, self.extractor.settings.attempts).await?;
        self.settle(task, found, Held::Same).await
    }

    /// Finds the totals that a task still lacks, of windows that were halved or have moved. `None`
    /// when the task is not at work any more.
    pub(super) async fn discover_rest(
        &self,
        task: Extraction,
        windows: Vec<Window>,
    ) -> Result<Option<Extraction>> {
        let discovering = self.change(task, Happening::ClaimedToDiscover, |_| {}).await?;
        let Some(task) = discovering else { return Ok(None) };
        let found = self.totals(&task, windows, 1).await?;
        self.settle(task, found, Held::Same).await
    }

    /// The windows of a task: one for all of its days, unless it was halved. Pages that were counted by
    /// another size than they have now are not known.
    pub(super) async fn windows(&self, task: &Extraction) -> Result<Vec<Window>> {
        let mut windows = self.store().windows(&task.task_id).await?;
        let series = self.source().series(&task.endpoint_name);
        let size = series.as_ref().map(|series| series.endpoint.page_size);
        let is_known = |totals: &Totals| {
            task.discoveries > 0
                && size.is_none_or(|size| *totals == Totals::of(totals.records, size))
        };
        for window in &mut windows {
            window.totals = window.totals.filter(is_known);
        }
        if windows.is_empty()
            && let Some(series) = series
        {
            let first_day = task.data_date;
            let last_day = series.endpoint.last_day(first_day);
            windows.push(Window { number: 1, first_day, last_day, base: 0, totals: None });
        }
        Ok(windows)
    }

    async fn totals(
        &self,
        task: &Extraction,
        mut windows: Vec<Window>,
        attempts: u32,
    ) -> Result<Found> {
        let Some(series) = self.source().series(&task.endpoint_name) else {
            return Ok(Found::Refused(format!("there is no endpoint {}", task.endpoint_name)));
        };
        let page_size = series.endpoint.page_size;
        let mut arrivals = Vec::new();
        let (mut place, mut doubted) = (0, false);
        while place < windows.len() {
            if windows[place].totals.is_some() {
                place += 1;
                continue;
            }
            match self.ask(task, &windows[place], 1, attempts).await? {
                Asked::Page { arrival, total } => {
                    let totals = Totals::of(total, page_size);
                    // A wild total is asked for once more before it is believed.
                    if self.is_wild(totals) && !std::mem::replace(&mut doubted, true) {
                        continue;
                    }
                    let announced = arrival.total_pages.filter(|pages| *pages != totals.pages);
                    if let Some(announced) = announced {
                        let (task, counted) = (task.task_id.clone(), totals.pages);
                        self.tell(Event::PagesDiffer { task, announced, counted });
                    }
                    windows[place].totals = Some(totals);
                    // A large body keeps others from coming until it is stored, those of the next windows too.
                    let is_large = arrival.body.as_ref().is_some_and(|body| body.len() > LARGE);
                    if !is_large || place + 1 == windows.len() {
                        arrivals.push(*arrival);
                    } else if !self.keep(task, *arrival).await {
                        return Ok(Found::Stopped);
                    }
                }
                Asked::GaveUp(failure) => {
                    return Ok(Found::Failed { failure, window: place, windows });
                }
                Asked::Refused(failure) => return Ok(Found::Refused(failure.error)),
                Asked::PastEnd => return Ok(Found::Refused("page 1 is past the end".into())),
                Asked::Lost | Asked::Stopped => return Ok(Found::Stopped),
            }
        }
        let max_pages = self.source().limits.max_pages;
        let wild = windows.iter().filter_map(|w| w.totals).find(|totals| self.is_wild(*totals));
        Ok(match wild {
            Some(totals) => Found::Refused(format!(
                "it announces {} records in {} pages, more than the {max_pages} pages of max_pages",
                totals.records, totals.pages
            )),
            None => Found::Totals { windows, arrivals },
        })
    }

    /// Stores page 1 of a window before all totals are known. `false` where that cannot be done any more.
    async fn keep(&self, task: &Extraction, arrival: Arrival) -> bool {
        let (records, bytes) = sizes(&arrival);
        match self.sink.put(&task.task_id, task.token, arrival).await {
            Ok(Written::Applied { .. }) => {
                let (id, again) = (task.task_id.clone(), is_again(task));
                self.tell(Event::PageStored { task: id, records, bytes, again });
                true
            }
            Ok(Written::Lost) => {
                self.lose(task.token);
                false
            }
            Err(Broken) => {
                self.extractor.stop.cancel();
                false
            }
        }
    }

    /// More than anyone would fetch, or than the table has room for.
    fn is_wild(&self, totals: Totals) -> bool {
        totals.pages > self.source().limits.max_pages || totals.records > i64::from(i32::MAX)
    }

    async fn settle(
        &self,
        task: Extraction,
        found: Found,
        held: Held,
    ) -> Result<Option<Extraction>> {
        match found {
            Found::Totals { windows, arrivals } => {
                self.discovered(task, windows, arrivals, held).await
            }
            Found::Refused(error) => {
                let failed = self.change(task, Happening::Refused { error }, |_| {}).await?;
                if let Some(task) = failed {
                    self.tell_end(&task);
                }
                Ok(None)
            }
            Found::Failed { failure, window, windows } => {
                self.discovery_failed(task, failure, window, windows).await?;
                Ok(None)
            }
            Found::Stopped => {
                self.change(task, Happening::GivenBack { reason: None }, |_| {}).await?;
                Ok(None)
            }
        }
    }

    async fn discovery_failed(
        &self,
        task: Extraction,
        failure: Failure,
        place: usize,
        windows: Vec<Window>,
    ) -> Result<()> {
        let (id, error) = (task.task_id.clone(), failure.error.clone());
        let halved = self.halved(&task, &failure, &windows, place).await?;
        let is_gone = self.source().series(&task.endpoint_name).is_some_and(|series| {
            let name = &series.endpoint.name;
            let away = self.extractor.host.away_for(name);
            away.is_some_and(|away| away > self.patience(name))
        });
        let happening = if halved.is_some() {
            Happening::Halved { error: error.clone() }
        } else if is_gone {
            self.leave(&id);
            Happening::GivenBack { reason: Some(error.clone()) }
        } else {
            let wait = self.backoff(task.attempts as u32 + 1);
            let wait = SignedDuration::try_from(wait).unwrap_or_default();
            Happening::DiscoveryFailed { error: error.clone(), wait }
        };
        // Totals that have moved are not kept: whoever takes the task finds out the new ones first.
        let has_moved = task.discoveries > 0;
        self.change(task, happening, |write| {
            if let Some(change) = &mut write.change {
                change.windows = halved.or(has_moved.then_some(windows));
            }
        })
        .await?;
        self.tell(Event::DiscoveryFailed { task: id, error });
        Ok(())
    }

    /// The windows with the one halved that has failed, if it fails because it is too much: again
    /// and again, while the endpoint answers to less.
    async fn halved(
        &self,
        task: &Extraction,
        failure: &Failure,
        windows: &[Window],
        place: usize,
    ) -> Result<Option<Vec<Window>>> {
        let patience = if windows.len() > 1 { HALVED_AGAIN_AFTER } else { HALVED_AFTER };
        if !is_too_much(failure.kind) || task.attempts + 1 < patience {
            return Ok(None);
        }
        let Some(series) = self.source().series(&task.endpoint_name) else { return Ok(None) };
        let Some(halved) = self.halve(series.endpoint, windows, place) else { return Ok(None) };
        let is_there = self.is_there(&series, &windows[place]).await?;
        Ok(is_there.then_some(halved))
    }

    /// Two windows in the place of one that is too much for the server.
    fn halve(&self, endpoint: &Endpoint, windows: &[Window], place: usize) -> Option<Vec<Window>> {
        let whole = windows.get(place)?;
        let days = whole.first_day.until(whole.last_day).ok()?.get_days();
        if days < 1 || !matches!(endpoint.period, crate::source::Period::Month { .. }) {
            return None;
        }
        let middle = whole.first_day.checked_add(jiff::Span::new().days(days / 2)).ok()?;
        let highest = windows.iter().map(|window| window.number).max().unwrap_or(0);
        let step = self.source().limits.max_pages;
        let part = |number: i32, first_day, last_day| Window {
            number,
            first_day,
            last_day,
            base: i64::from(number - 1) * step,
            totals: None,
        };
        let mut halved = windows.to_vec();
        halved.splice(
            place..=place,
            [
                part(highest + 1, whole.first_day, middle),
                part(highest + 2, middle.tomorrow().ok()?, whole.last_day),
            ],
        );
        Some(halved)
    }

    /// Stores the totals with page 1 of each window; a task of one page is complete by it.
    async fn discovered(
        &self,
        task: Extraction,
        windows: Vec<Window>,
        arrivals: Vec<Arrival>,
        held: Held,
    ) -> Result<Option<Extraction>> {
        let Some(series) = self.source().series(&task.endpoint_name) else { return Ok(None) };
        let endpoint = series.endpoint;
        let (source, now) = (self.source(), self.now());
        let last = endpoint.last_day(task.data_date);
        let is_snapshot = matches!(endpoint.period, crate::source::Period::Snapshot { .. });
        let is_over = !is_snapshot && is_over(last, source.grace_days, &source.time_zone, now);
        let totals = windows.iter().filter_map(|window| window.totals).fold(
            Totals { records: 0, pages: 0 },
            |sum, totals| Totals {
                records: sum.records + totals.records,
                pages: sum.pages + totals.pages,
            },
        );
        let mut stored = self.stored(&task).await?;
        for arrival in &arrivals {
            if let Outcome::Done(done) = &arrival.outcome {
                let (records, total_records) = (done.records, done.total_records);
                let generation = done.generation;
                let page = Stored { page: arrival.page, records, total_records, generation };
                stored.insert(arrival.page, page);
            }
        }
        let missing = missing_pages(&windows, endpoint.page_size, task.generation, &stored);
        let found = next(&task, Happening::Discovered { is_over }, now)?;
        let discovered = after(task.clone(), &found);
        let ended = missing.is_empty() && records_of(&windows, &stored) == totals.records;
        let next =
            if ended { next(&discovered, Happening::Fetched(Fetched::All), now)? } else { found };
        let change = Change {
            next: next.clone(),
            held: if ended { Held::Nobody } else { held },
            totals: Some(totals),
            windows: Some(windows),
            missing: Some(missing.clone()),
        };
        let pages: Vec<(i64, i64)> = arrivals.iter().map(sizes).collect();
        let mut write = write(&task, change);
        write.arrivals = arrivals;
        let written = crate::sink::persist(self.store(), vec![write]).await?;
        if written.first() == Some(&Written::Lost) {
            self.tell(Event::TaskLost { task: task.task_id });
            return Ok(None);
        }
        let again = is_again(&task);
        for (records, bytes) in pages {
            self.tell(Event::PageStored { task: task.task_id.clone(), records, bytes, again });
        }
        let id = task.task_id.clone();
        self.tell(Event::Discovered { task: id, totals, missing: missing.len() as i64 });
        let task = after(task, &next);
        if ended {
            self.tell_end(&task);
            return Ok(None);
        }
        Ok(Some(task))
    }

    pub(super) async fn stored(&self, task: &Extraction) -> Result<BTreeMap<i64, Stored>> {
        let stored = self.store().stored(&task.task_id).await?;
        Ok(stored.into_iter().map(|page| (page.page, page)).collect())
    }
}

/// Whether its totals were known before.
fn is_again(task: &Extraction) -> bool {
    task.discoveries > 0 || task.generation > 1
}

/// Records and bytes of what came.
pub(super) fn sizes(arrival: &Arrival) -> (i64, i64) {
    let records = match &arrival.outcome {
        Outcome::Done(done) => done.records,
        Outcome::Failed { .. } => 0,
    };
    (records, arrival.body.as_ref().map_or(0, |body| body.len() as i64))
}

/// The records in the pages of the windows.
pub(super) fn records_of(windows: &[Window], stored: &BTreeMap<i64, Stored>) -> i64 {
    let of_window = |window: &Window| {
        let pages = window.base + 1..window.base + 1 + window.totals?.pages;
        Some(stored.range(pages).map(|(_, page)| page.records).sum::<i64>())
    };
    windows.iter().filter_map(of_window).sum()
}

/// What is missing of a window, by its own page numbers.
pub(super) fn missing_of(
    window: &Window,
    page_size: i64,
    generation: i32,
    stored: &BTreeMap<i64, Stored>,
) -> Missing {
    let Some(totals) = window.totals else { return Missing::default() };
    let own: BTreeMap<i64, Stored> = stored
        .range(window.base + 1..window.base + 1 + totals.pages)
        .map(|(page, stored)| (page - window.base, *stored))
        .collect();
    Missing::of(totals, page_size, generation, &own)
}

/// What is missing of all windows, by the task's page numbers.
pub(super) fn missing_pages(
    windows: &[Window],
    page_size: i64,
    generation: i32,
    stored: &BTreeMap<i64, Stored>,
) -> Vec<i64> {
    let all = windows.iter().flat_map(|window| {
        let missing = missing_of(window, page_size, generation, stored);
        missing.pages().map(|page| page + window.base).collect::<Vec<_>>()
    });
    all.collect()
}

/// Whether less at once may help.
fn is_too_much(kind: Kind) -> bool {
    match kind {
        Kind::Server | Kind::Timeout => true,
        Kind::Throttled | Kind::Connection | Kind::Garbled | Kind::Refused | Kind::TooLarge => {
            false
        }
    }
}
