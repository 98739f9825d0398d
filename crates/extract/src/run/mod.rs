//! A run: plan, discover, fetch, reconcile, until nothing is left that can be done now.
//!
//! All discovery comes first, so that the bars have true totals. What a process does it has claimed
//! in the table, with a token that every later write carries; so several runs share a plan, and a
//! process that was taken for dead and wakes up can write nothing. A run ends when every task is
//! complete, has failed, or could not be finished; what others hold it waits for, because they may
//! die.

mod ask;
mod discover;
mod fetch;
mod held;
mod probe;
mod tally;
mod under_way;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use lavra_tasks::Pulse;
use lavra_tasks::model::{ProcessId, Token};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::breaker;
use crate::client::Fetch;
use crate::error::Result;
use crate::event::{Event, Summary};
use crate::host::Host;
use crate::machine::{Happening, next};
use crate::model::{Extraction, ExtractionId, Status};
use crate::plan::{Plan, Wanted, plan, today};
use crate::sink::{Sink, persist};
use crate::source::{Endpoint, Period, Source};
use crate::store::{Held, Scope, Store, Want};
use held::{change, write};
use tally::Tally;
use under_way::UnderWay;

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A process that has not renewed its row for this long is dead.
    pub stale: Duration,
    /// How often a page is asked for before it is left for another run.
    pub attempts: u32,
    /// The first wait after a failure; it doubles.
    pub backoff: Duration,
    pub longest_backoff: Duration,
    /// Tasks that are worked on at once.
    pub tasks: usize,
    /// How long an endpoint may be away before the run goes on without it.
    pub outage: Duration,
    pub breaker: breaker::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stale: Duration::from_secs(10),
            attempts: 12,
            backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(60),
            tasks: 4,
            outage: Duration::from_secs(6 * 3600),
            breaker: breaker::Settings::default(),
        }
    }
}

/// Discoveries under way at once; the host's limit decides how many requests are.
const DISCOVERIES_AT_ONCE: usize = 16;
/// How long something is asked that answers, and never as such a source would.
const SENSELESS: Duration = Duration::from_secs(300);
/// How often is looked whether others have finished, or died.
const LOOK: Duration = Duration::from_secs(1);

/// What a run needs.
#[derive(Debug)]
pub struct Extractor {
    pub store: Arc<dyn Store>,
    pub source: Arc<Source>,
    pub client: Arc<dyn Fetch>,
    pub process: ProcessId,
    /// What it held before a long silence it asks nothing more of, until it has claimed it again.
    pub pulse: Pulse,
    /// What the responses of this run are marked with.
    pub run: String,
    /// When the run was asked for: what was discovered since is fresh, whoever began with it.
    pub asked_at: Timestamp,
    pub settings: Settings,
    pub events: mpsc::UnboundedSender<Event>,
    /// Nothing new is begun after it; what is under way is finished and stored.
    pub stop: CancellationToken,
    pub host: Arc<Host>,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Extract,
    Resume,
    Refresh,
    Retry,
    Assist,
}

/// What the parts of a run share.
struct Run {
    extractor: Extractor,
    scope: Scope,
    sink: Sink,
    tally: Tally,
    /// Tasks that this run leaves as they are.
    left: Mutex<HashSet<ExtractionId>>,
    /// When this run claimed what it holds, by the token.
    claimed: Mutex<HashMap<Token, Instant>>,
    /// What waits are spread by: the process's own, so that a simulation can be repeated.
    luck: Mutex<StdRng>,
    begun: Timestamp,
    /// The tasks that were asked for; the scope may hold others between them.
    planned: HashSet<ExtractionId>,
    /// How many pages were missing of tasks whose totals this run has found out.
    missing: Mutex<HashMap<ExtractionId, i64>>,
    /// Until when the host wants to be left alone, as far as it was told.
    alone_until: Mutex<Option<Timestamp>>,
}

impl Extractor {
    /// Runs until nothing is left that can be done now. `refresh` fetches also what is complete.
    pub async fn run(self, wanted: &Wanted, refresh: bool) -> Result<Summary> {
        let purpose = if refresh { Purpose::Refresh } else { Purpose::Extract };
        self.planned(wanted, purpose).await
    }

    /// The same again, because a person says so: what has failed does not wait for a day.
    pub async fn resume(self, wanted: &Wanted) -> Result<Summary> {
        self.planned(wanted, Purpose::Resume).await
    }

    async fn planned(self, wanted: &Wanted, purpose: Purpose) -> Result<Summary> {
        let now = self.store.clock().now();
        let Plan { tasks, scope } = plan(&self.source, wanted, now)?;
        let planned: HashSet<_> = tasks.iter().map(|task| task.task_id.clone()).collect();
        let new = self.store.plan(tasks).await?;
        let told = Event::Planned { tasks: planned.len(), new };
        self.go(scope, purpose, planned, told).await
    }

    /// Takes up what is in the table and not complete, also what has failed; plans nothing.
    pub async fn retry(self, scope: Scope) -> Result<Summary> {
        let tasks = self.store.tasks(&scope).await?;
        let open = tasks.iter().filter(|task| task.status != Status::Complete).count();
        let told = Event::Planned { tasks: open, new: 0 };
        self.go(scope, Purpose::Retry, HashSet::new(), told).await
    }

    /// Helps with a run that another process has begun, until nothing of it is left.
    pub async fn assist(self, scope: Scope) -> Result<Summary> {
        let tasks = self.store.tasks(&scope).await?.len();
        let told = Event::Planned { tasks, new: 0 };
        self.go(scope, Purpose::Assist, HashSet::new(), told).await
    }

    async fn go(
        mut self,
        scope: Scope,
        purpose: Purpose,
        planned: HashSet<ExtractionId>,
        told: Event,
    ) -> Result<Summary> {
        // A run that cannot store stops by itself, and nobody else with it.
        self.stop = self.stop.child_token();
        let begun = self.store.clock().now();
        let luck = StdRng::seed_from_u64(self.process.0.as_u128() as u64);
        let (sink, writer) = Sink::start(Arc::clone(&self.store));
        let run = Arc::new(Run {
            extractor: self,
            scope,
            sink,
            tally: Tally::default(),
            left: Mutex::default(),
            claimed: Mutex::default(),
            luck: Mutex::new(luck),
            begun,
            planned,
            missing: Mutex::default(),
            alone_until: Mutex::default(),
        });
        run.tell(told);
        run.reopen(purpose).await?;
        let worked = run.work().await;
        run.give_back().await?;
        let mut summary = run.tally.summary();
        let (store, scope) = (Arc::clone(&run.extractor.store), run.scope.clone());
        let events = run.extractor.events.clone();
        summary.is_interrupted = run.is_stopping();
        // The writer ends when nobody has its sink any more.
        drop(run);
        match writer.await {
            Ok(stored) => stored?,
            Err(error) => tracing::error!(%error, "the writer of pages ended"),
        }
        worked?;
        for task in store.tasks(&scope).await? {
            match task.status {
                Status::Complete => summary.complete += 1,
                Status::Failed => summary.failed += 1,
                Status::Partial | Status::Fetching => summary.partial += 1,
                Status::Pending | Status::Discovering => summary.pending += 1,
            }
        }
        let _nobody_listens = events.send(Event::Ended { summary: summary.clone() });
        Ok(summary)
    }
}

impl Run {
    fn store(&self) -> &dyn Store {
        &*self.extractor.store
    }

    fn source(&self) -> &Source {
        &self.extractor.source
    }

    fn now(&self) -> Timestamp {
        self.store().clock().now()
    }

    fn is_stopping(&self) -> bool {
        self.extractor.stop.is_cancelled()
    }

    fn tell(&self, event: Event) {
        self.tally.count(&event);
        if let Event::Discovered { task, missing, .. } = &event {
            let mut all = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(task.clone(), *missing);
        }
        let _nobody_listens = self.extractor.events.send(event);
    }

    /// Months that were not over when they were fetched are fetched again, and what failed long
    /// enough ago is taken up; or all that failed or waits, where that is the purpose.
    async fn reopen(&self, purpose: Purpose) -> Result<()> {
        if purpose == Purpose::Assist {
            return Ok(());
        }
        let mut writes = Vec::new();
        for task in self.store().tasks(&self.scope).await? {
            let is_told = matches!(purpose, Purpose::Resume | Purpose::Retry);
            let is_due = is_told || task.next_attempt_at.is_none_or(|at| at <= self.begun);
            let happening = match task.status {
                _ if self.is_history(&task) => continue,
                Status::Complete if self.is_fresh(&task) => continue,
                Status::Complete => match purpose {
                    Purpose::Refresh if self.planned.contains(&task.task_id) => {
                        Happening::Refreshed
                    }
                    Purpose::Extract | Purpose::Resume | Purpose::Refresh if !task.is_final => {
                        Happening::Refreshed
                    }
                    Purpose::Extract
                    | Purpose::Resume
                    | Purpose::Refresh
                    | Purpose::Retry
                    | Purpose::Assist => continue,
                },
                Status::Failed if is_due => Happening::TakenUp,
                Status::Pending | Status::Partial if is_told => Happening::TakenUp,
                Status::Pending
                | Status::Discovering
                | Status::Fetching
                | Status::Partial
                | Status::Failed => continue,
            };
            let next = next(&task, happening, self.now())?;
            writes.push(write(&task, change(next, Held::Nobody)));
        }
        if !writes.is_empty() {
            persist(self.store(), writes).await?;
        }
        Ok(())
    }

    /// Whether this run has it already, perhaps in a process that was killed.
    fn is_fresh(&self, task: &Extraction) -> bool {
        task.discovered_at.is_some_and(|at| at >= self.extractor.asked_at)
    }

    /// Whether it is what there was in a month that is over, of which only today can be asked for: what is
    /// not there will never be.
    fn is_history(&self, task: &Extraction) -> bool {
        let this_month = today(self.source(), self.now()).first_of_month();
        self.source().series(&task.endpoint_name).is_some_and(|series| {
            matches!(series.endpoint.period, Period::Snapshot { .. }) && task.data_date < this_month
        })
    }

    async fn work(self: &Arc<Self>) -> Result<()> {
        let (mut discoveries, mut fetches) = (UnderWay::default(), UnderWay::default());
        loop {
            self.discover_all(&mut discoveries).await?;
            self.fetch_all(&mut fetches).await?;
            if self.is_stopping() || !self.is_anything_left().await? {
                // After a stop: what is under way is finished.
                discoveries.drain().await?;
                return fetches.drain().await;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.extractor.stop.cancelled() => {}
            }
        }
    }

    /// Whether tasks remain that this run, or another one that is at work, may still finish.
    async fn is_anything_left(&self) -> Result<bool> {
        let tasks = self.store().tasks(&self.scope).await?;
        let open = tasks.iter().filter(|task| match task.status {
            Status::Complete | Status::Failed => false,
            Status::Pending | Status::Partial => !self.has_left(&task.task_id),
            Status::Discovering | Status::Fetching => true,
        });
        let waiting = open.count();
        if waiting > 0 {
            self.tell(Event::Waiting { tasks: waiting, why: "a retry, or another process" });
        }
        Ok(waiting > 0)
    }

    fn has_left(&self, task: &ExtractionId) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).contains(task)
    }

    fn leave(&self, task: &ExtractionId) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).insert(task.clone());
    }

    /// Whether an endpoint is away, and still waited for.
    fn is_away(&self, endpoint: &str) -> bool {
        let away = self.extractor.host.away_for(endpoint);
        away.is_some_and(|away| away <= self.patience(endpoint))
    }

    /// How long an endpoint that is away is waited for: not long where all that ever came of it was
    /// something else, such as the page of another server.
    fn patience(&self, endpoint: &str) -> Duration {
        let outage = self.extractor.settings.outage;
        if self.extractor.host.is_senseless(endpoint) { outage.min(SENSELESS) } else { outage }
    }

    /// What may be taken, of endpoints other than those that are away.
    async fn candidates(
        &self,
        want: Want,
        limit: usize,
        away: &BTreeSet<String>,
    ) -> Result<Vec<Extraction>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut scope = self.scope.clone();
        if !away.is_empty() {
            if scope.endpoints.is_empty() {
                let all = self.source().endpoints.iter().flat_map(Endpoint::all_series);
                scope.endpoints = all.map(|series| series.name()).collect();
            }
            let is_away = |name: &str| self.endpoint_of(name).is_some_and(|e| away.contains(e));
            scope.endpoints.retain(|name| !is_away(name));
            if scope.endpoints.is_empty() {
                return Ok(Vec::new());
            }
        }
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).len();
        let stale = self.extractor.settings.stale;
        let found = self.store().candidates(&scope, want, stale, limit + left).await?;
        Ok(found.into_iter().filter(|task| !self.has_left(&task.task_id)).take(limit).collect())
    }

    fn endpoint_of(&self, series: &str) -> Option<&str> {
        self.source().series(series).map(|series| series.endpoint.name.as_str())
    }

    async fn discover_all(self: &Arc<Self>, under_way: &mut UnderWay) -> Result<()> {
        let mut told = false;
        while !self.is_stopping() {
            let away = under_way.away(|endpoint| self.is_away(endpoint));
            let room = DISCOVERIES_AT_ONCE.saturating_sub(under_way.at_work(&away));
            for task in self.candidates(Want::Discovery, room, &away).await? {
                if let Some(claimed) = self.claim(task, Happening::ClaimedToDiscover, false).await?
                {
                    if !std::mem::replace(&mut told, true) {
                        let waiting = self.waiting_for_discovery().await?;
                        self.tell(Event::Discovering { waiting });
                    }
                    let endpoint = self.endpoint_of(&claimed.endpoint_name).unwrap_or_default();
                    under_way.spawn(endpoint.to_owned(), Arc::clone(self).discover(claimed));
                }
            }
            if under_way.at_work(&away) == 0 {
                return Ok(());
            }
            under_way.change(&away, |endpoint| self.is_away(endpoint)).await?;
        }
        Ok(())
    }

    async fn waiting_for_discovery(&self) -> Result<usize> {
        let tasks = self.store().tasks(&self.scope).await?;
        let waits = |status| matches!(status, Status::Pending | Status::Discovering);
        Ok(tasks.iter().filter(|task| waits(task.status)).count())
    }

    async fn fetch_all(self: &Arc<Self>, under_way: &mut UnderWay) -> Result<()> {
        let mut told = false;
        while !self.is_stopping() {
            let away = under_way.away(|endpoint| self.is_away(endpoint));
            let room = self.extractor.settings.tasks.saturating_sub(under_way.at_work(&away));
            for task in self.candidates(Want::Pages, room, &away).await? {
                if !std::mem::replace(&mut told, true) {
                    self.tell_what_is_missing().await?;
                }
                if let Some(claimed) = self.claim(task, Happening::ClaimedToFetch, true).await? {
                    let endpoint = self.endpoint_of(&claimed.endpoint_name).unwrap_or_default();
                    under_way.spawn(endpoint.to_owned(), Arc::clone(self).fetch(claimed));
                }
            }
            if under_way.at_work(&away) == 0 {
                return Ok(());
            }
            under_way.change(&away, |endpoint| self.is_away(endpoint)).await?;
        }
        Ok(())
    }

    async fn tell_what_is_missing(&self) -> Result<()> {
        let all = self.store().progress(&self.scope).await?;
        let open: Vec<_> = all
            .iter()
            .filter(|p| matches!(p.task.status, Status::Fetching | Status::Partial))
            .collect();
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = open.iter().map(|p| {
            // Of a task that is fetched anew all pages are there, and all of them are missing.
            let found = missing.get(&p.task.task_id).copied();
            found.unwrap_or_else(|| (p.task.total_pages.unwrap_or(0) - p.pages).max(0))
        });
        let pages = pages.sum();
        drop(missing);
        self.tell(Event::Fetching { tasks: open.len(), pages });
        Ok(())
    }

    /// Tells of a task that has come to rest.
    fn tell_end(&self, task: &Extraction) {
        if matches!(task.status, Status::Partial | Status::Pending) {
            self.leave(&task.task_id);
        }
        self.tell(Event::TaskEnded {
            task: task.task_id.clone(),
            status: task.status,
            verdict: task.verdict.clone(),
            error: task.last_error.clone(),
        });
    }
}
