//! The writer as a whole: orders come in, jobs are taken and run, a few at a time, until it is told to
//! end; whatever it had then is taken up by the next one.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lavra_db::{Database, Secrets};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::config::Config;
use crate::duckdb::DuckDb;
use crate::failure::{Code, Failure};
use crate::model::{FailedItem, Job, JobId, Outcome};
use crate::order::{Order, Refused};
use crate::postgres::Postgres;
use crate::run::{Ran, Run, longer};
use crate::secret::Vault;
use crate::source::{Names, Sources, SystemNames};
use crate::store::{Added, Claim, Stopped, Store};

/// Between removals of old jobs.
const TIDY: Duration = Duration::from_secs(3600);
/// Jobs that are removed at once, each with its failed items: nobody waits for long behind them.
const FORGOTTEN: usize = 100;
/// Between two tries to tell a database that is away what became of a job.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    sources: Sources,
    config: Arc<Config>,
    vault: Vault,
    process: Uuid,
    /// The jobs that are under way here.
    in_hand: Mutex<HashSet<String>>,
    bell: Notify,
}

/// Why an order was not taken.
#[derive(Debug)]
pub(crate) enum NotTaken {
    Refused(Refused),
    Busy,
    Failed(Failure),
}

impl From<Failure> for NotTaken {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Service {
    /// On a database that has [`crate::MIGRATIONS`].
    pub fn new(
        database: &Database,
        config: Config,
        secrets: Option<Secrets>,
    ) -> Result<Self, Failure> {
        Self::with_names(database, config, secrets, Arc::new(SystemNames))
    }

    /// The same with other names than those of this machine.
    pub fn with_names(
        database: &Database,
        config: Config,
        secrets: Option<Secrets>,
        names: Arc<dyn Names>,
    ) -> Result<Self, Failure> {
        let config = Arc::new(config);
        let store: Arc<dyn Store> = match database {
            Database::Postgres(pg) => Arc::new(Postgres::new(pg.clone(), &config)),
            Database::Duck(duck) => Arc::new(DuckDb::new(duck.clone(), &config)),
        };
        let sources = Sources::new(Arc::clone(&config), names)?;
        let (process, bell) = (Uuid::now_v7(), Notify::new());
        let (vault, in_hand) = (Vault::new(secrets), Mutex::default());
        Ok(Self(Arc::new(Inner { store, sources, config, vault, process, in_hand, bell })))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    /// Takes an order. The same one twice is one job.
    pub(crate) async fn take(&self, order: Order) -> Result<Job, NotTaken> {
        let inner = &self.0;
        if let Some((field, why)) = inner.sources.refusal(&order) {
            return Err(NotTaken::Refused(Refused::Invalid { field, why }));
        }
        let id = order.job_id.clone().unwrap_or_else(JobId::new);
        let (request, secret) = (order.to_text(), order.secret());
        drop(order);
        let has_secret = !secret.is_empty();
        let mut holder = None;
        if has_secret {
            inner.vault.put(&id, &request, secret).await?;
            // Nobody else could run it; and who lives says so before it holds something.
            if !inner.vault.is_sealed() {
                inner.store.beat(inner.process, inner.config.timing.stale).await?;
                holder = Some(inner.process);
            }
        }
        let waiting = inner.config.limits.waiting;
        match inner.store.add(&id, &request, has_secret, holder, waiting).await? {
            Added::New(job) => {
                inner.bell.notify_one();
                Ok(job)
            }
            Added::Known(job) => {
                if job.completed_at.is_some() {
                    inner.vault.remove(&id, &request).await;
                }
                Ok(job)
            }
            Added::Differs => {
                inner.vault.remove(&id, &request).await;
                let why = "belongs to another order: use another id for another one".into();
                Err(NotTaken::Refused(Refused::Invalid { field: "job_id", why }))
            }
            Added::Full => {
                inner.vault.remove(&id, &request).await;
                Err(NotTaken::Busy)
            }
        }
    }

    pub(crate) async fn job(&self, id: &JobId) -> Result<Option<Job>, Failure> {
        self.0.store.job(id).await
    }

    /// Failed items with an index above `after`, as many as fit, and how many more of them are kept.
    pub(crate) async fn failed_items(
        &self,
        id: &JobId,
        after: Option<u64>,
        room: usize,
    ) -> Result<(Vec<FailedItem>, usize), Failure> {
        let sizes = self.0.store.failed_sizes(id, after).await?;
        let mut bytes = 0;
        let fitting = sizes.iter().take_while(|(_, size)| {
            bytes += size;
            bytes <= room
        });
        let Some((last, _)) = fitting.last() else { return Ok((Vec::new(), sizes.len())) };
        let items = self.0.store.failed_items(id, after, *last).await?;
        let more = sizes.len().saturating_sub(items.len());
        Ok((items, more))
    }

    pub(crate) async fn probe(&self) -> Result<(), Failure> {
        self.0.store.probe().await
    }

    /// Runs jobs until `stop`; then those under way end after their batch and are given back.
    pub async fn run(&self, stop: CancellationToken) {
        let inner = &self.0;
        let stale = inner.config.timing.stale;
        // Before anything is claimed, so that nobody takes it from one who seems dead.
        if let Err(failure) = inner.store.beat(inner.process, stale).await {
            tracing::warn!(error = %failure, "the writer's row cannot be written");
        }
        let alive = CancellationToken::new();
        let beats = tokio::spawn({
            let (inner, alive) = (Arc::clone(inner), alive.clone());
            async move { inner.beat(&alive).await }
        });
        let tidying = tokio::spawn({
            let (inner, alive) = (Arc::clone(inner), alive.clone());
            async move { inner.keep_tidy(&alive).await }
        });
        let running = Arc::new(Semaphore::new(inner.config.limits.running.max(1)));
        let jobs = TaskTracker::new();
        let mut wait = inner.config.timing.poll;
        while !stop.is_cancelled() {
            let permit = tokio::select! {
                () = stop.cancelled() => break,
                permit = Arc::clone(&running).acquire_owned() => permit,
            };
            let Ok(permit) = permit else { break };
            let in_hand: Vec<String> = inner.in_hand().iter().cloned().collect();
            match inner.store.claim(inner.process, stale, &in_hand).await {
                Ok(Some(claim)) => {
                    wait = inner.config.timing.poll;
                    let (inner, stop) = (Arc::clone(inner), stop.clone());
                    let id = claim.id.as_str().to_owned();
                    inner.in_hand().insert(id.clone());
                    jobs.spawn(async move {
                        Arc::clone(&inner).work(claim, stop).await;
                        inner.in_hand().remove(&id);
                        drop(permit);
                    });
                    continue;
                }
                Ok(None) => wait = inner.config.timing.poll,
                Err(failure) => {
                    tracing::warn!(error = %failure, "jobs cannot be looked for");
                    wait = longer(wait);
                }
            }
            drop(permit);
            tokio::select! {
                () = stop.cancelled() => {}
                () = inner.bell.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        jobs.close();
        if tokio::time::timeout(inner.config.timing.grace, jobs.wait()).await.is_err() {
            tracing::warn!("jobs that were still in a batch are left to the next writer");
        }
        alive.cancel();
        let _ended = tokio::join!(beats, tidying);
        let _best_effort = inner.store.leave(inner.process).await;
    }
}

impl Inner {
    fn in_hand(&self) -> MutexGuard<'_, HashSet<String>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn beat(&self, alive: &CancellationToken) {
        loop {
            if let Err(failure) = self.store.beat(self.process, self.config.timing.stale).await {
                tracing::warn!(error = %failure, "the writer's row cannot be renewed");
            }
            tokio::select! {
                () = alive.cancelled() => return,
                () = tokio::time::sleep(self.config.timing.heartbeat) => {}
            }
        }
    }

    /// Apart from the heartbeat: it may take longer than a process may be silent.
    async fn keep_tidy(&self, alive: &CancellationToken) {
        while !alive.is_cancelled() {
            if let Err(failure) = self.tidy(alive).await {
                tracing::warn!(error = %failure, "old jobs cannot be removed");
            }
            tokio::select! {
                () = alive.cancelled() => return,
                () = tokio::time::sleep(TIDY) => {}
            }
        }
    }

    async fn tidy(&self, alive: &CancellationToken) -> Result<(), Failure> {
        let kept = self.config.timing.kept;
        while self.store.forget(kept, FORGOTTEN).await? == FORGOTTEN {
            if alive.is_cancelled() {
                return Ok(());
            }
        }
        self.vault.sweep(&*self.store).await
    }

    /// A job to its end, or back to everybody. Nobody else takes what a living process has: so it is not
    /// let go of before the database knows what became of it, also where its work panics.
    async fn work(self: Arc<Self>, claim: Claim, stop: CancellationToken) {
        let begun = Instant::now();
        let (inner, before) = (Arc::clone(&self), claim.clone());
        let ran = tokio::spawn(async move {
            let mut claim = claim;
            let Inner { store, sources, config, vault, .. } = &*inner;
            let ran = Run { store, sources, config, vault, stop: &stop }.job(&mut claim).await;
            (claim, ran)
        });
        let (claim, ran) = ran.await.unwrap_or_else(|error| {
            tracing::error!(job = %before.id, %error, "the work on a job broke off");
            let failure = Failure::new(Code::Internal, "something is wrong in the writer");
            let failure = failure.after(before.progress.processed);
            (before, Ran::Ended(Outcome::Failed(failure)))
        });
        match ran {
            Ran::Ended(outcome) => self.end(&claim, &outcome, begun.elapsed()).await,
            Ran::Interrupted => {
                tracing::info!(job = %claim.id, processed = claim.progress.processed, "a job is given back");
                self.tell(&claim, None).await;
            }
            Ran::Replaced => {
                tracing::warn!(job = %claim.id, "a job is someone else's now");
            }
        }
    }

    async fn end(&self, claim: &Claim, outcome: &Outcome, took: Duration) {
        let progress = &claim.progress;
        match outcome {
            Outcome::Done(status) => tracing::info!(
                job = %claim.id, status = status.as_str(), stored = progress.success_count,
                failed = progress.failed_count, duplicates = progress.duplicate_count, ?took,
                "a job has ended"
            ),
            Outcome::Failed(failure) => {
                tracing::warn!(job = %claim.id, error = %failure, ?took, "a job has failed");
            }
        }
        let is_stored = self.tell(claim, Some(outcome)).await;
        if is_stored && claim.has_secret {
            self.vault.remove(&claim.id, &claim.request).await;
        }
    }

    /// Tells the database how a job ended, or that it is given back, until it knows; `false` where that is
    /// not ours to say any more.
    async fn tell(&self, claim: &Claim, outcome: Option<&Outcome>) -> bool {
        let mut wait = Duration::from_millis(100);
        loop {
            let told = match outcome {
                Some(outcome) => self.store.end(claim, &claim.progress, outcome).await,
                None => self.store.release(claim).await.map_err(Stopped::Failed),
            };
            match told {
                Ok(()) => return true,
                Err(Stopped::Replaced) => return false,
                Err(Stopped::Failed(failure)) => {
                    tracing::warn!(job = %claim.id, error = %failure, retry_in = ?wait, "what became of a job cannot be stored");
                    tokio::time::sleep(wait).await;
                }
            }
            wait = (wait * 2).min(LONGEST);
        }
    }
}
