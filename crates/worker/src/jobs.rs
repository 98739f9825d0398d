//! Jobs: begun once, gone on with after a restart, and ended once.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::ask::{Trouble, Way};
use crate::disk::put_json;
use crate::machine::Event;
use crate::model::{Blame, Code, Failure, Job, JobId, JobStatus, Order, SessionId, SessionStatus};
use crate::plan::Plan;
use crate::refusal::Refusal;
use crate::results;
use crate::scrape::{Progress, Scrape};
use crate::state::Entry;
use crate::worker::Worker;

/// How a job ends.
#[derive(Debug)]
pub(crate) enum End {
    Found(u64),
    /// With what it means for the session, if anything.
    Failed(Failure, Option<Event>),
    Cancelled(String),
}

impl Worker {
    /// `POST /scrape`. The same key is one job.
    pub(crate) async fn start(&self, order: Order, key: Option<String>) -> Result<JobId, Refusal> {
        let inner = &self.inner;
        Plan::new(&inner.source, &inner.endpoint, &order).map_err(Refusal::Invalid)?;
        let _turn = inner.changes.lock().await;
        let (session, way, session_end) = {
            let mut state = inner.state.lock();
            let before = key.as_ref().and_then(|key| state.by_key.get(key));
            if let Some(entry) = before.and_then(|id| state.jobs.get(id)) {
                let same = entry.job.order == order;
                return if same { Ok(entry.job.id.clone()) } else { Err(Refusal::KeyReused) };
            }
            if inner.stop.is_cancelled() {
                return Err(Refusal::Stopping);
            }
            let session = state.session.as_mut().ok_or(Refusal::Unready("not there"))?;
            session.used = Instant::now();
            let unready = Refusal::Unready(word(session.status));
            if session.status != SessionStatus::Ready {
                return Err(unready);
            }
            (session.id, session.way.clone().ok_or(unready)?, session.end.clone())
        };
        let id = JobId::new();
        let job = Job {
            id: id.clone(),
            idempotency_key: key,
            session,
            order,
            status: JobStatus::Pending,
            ads_count: 0,
            pages: (0, 0),
            failure: None,
            created_at: Timestamp::now(),
            started_at: None,
            finished_at: None,
            attempts: 0,
        };
        self.write_job(&job).await.map_err(|error| {
            Refusal::Internal(format!("the job cannot be stored, and was not begun: {error}"))
        })?;
        {
            let mut state = inner.state.lock();
            state.insert(Entry::new(job, CancellationToken::new()));
            state.happens(session, Event::JobBegan, None);
            if let Some(standing) = state.session.as_mut() {
                standing.job = Some(id.clone());
            }
        }
        tracing::info!(job = %id, "a scrape begins");
        self.spawn_job(&id, session, way, &session_end);
        Ok(id)
    }

    /// `GET /scrape/{id}`.
    pub(crate) fn job(&self, id: &str) -> Result<(Job, Arc<Progress>), Refusal> {
        let mut state = self.inner.state.lock();
        if let Some(session) = state.session.as_mut() {
            session.used = Instant::now();
        }
        let entry = state.jobs.get(&JobId::of(id)).ok_or_else(|| Refusal::NoJob(id.to_owned()))?;
        Ok((entry.job.clone(), Arc::clone(&entry.progress)))
    }

    /// `POST /scrape/{id}/cancel`. What is over stays as it is.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), Refusal> {
        let (job, _) = self.job(id)?;
        self.finish(&job.id, End::Cancelled("it was cancelled".into())).await;
        Ok(())
    }

    /// Runs a job that stands in the state, until it ends or something ends it.
    pub(crate) fn spawn_job(
        &self,
        id: &JobId,
        session: SessionId,
        way: Way,
        session_end: &CancellationToken,
    ) {
        let (worker, id, end) = (self.clone(), id.clone(), session_end.child_token());
        if let Some(entry) = self.inner.state.lock().jobs.get_mut(&id) {
            entry.end = end.clone();
        }
        self.inner.tasks.spawn(async move {
            let ended = tokio::select! {
                // Whoever stopped it has said why; a shutdown leaves it for the next process.
                () = end.cancelled() => return,
                ended = worker.run(&id, way) => ended,
            };
            let ended = match ended {
                Ok(ads) => End::Found(ads),
                Err(Trouble { failure, event }) => End::Failed(failure, event),
            };
            tracing::info!(job = %id, %session, ?ended, "a scrape ended");
            worker.finish(&id, ended).await;
        });
    }

    async fn run(&self, id: &JobId, way: Way) -> Result<u64, Trouble> {
        let inner = &self.inner;
        // To its end, even if the job is stopped meanwhile: the file must not be written by two.
        let (worker, own) = (self.clone(), id.clone());
        let begun = inner.tasks.spawn(async move { worker.begin(&own).await }).await;
        let gone = || Trouble::new(Code::Error200, Blame::Worker, "the job is not known any more");
        let begun = begun.unwrap_or_else(|error| Err(error.into()));
        let begun = begun.map_err(|error| crate::scrape::disk(&error))?;
        let Entry { job, progress, .. } = begun.ok_or_else(gone)?;
        let plan = Plan::new(&inner.source, &inner.endpoint, &job.order)
            .map_err(|text| Trouble::new(Code::Error500, Blame::Mission, text))?;
        let scrape =
            Scrape { way, plan, max_ads: job.order.max_ads, pages: inner.disk.pages(id), progress };
        let harvest = scrape.run().await?;
        let (disk, bucket) = (inner.disk.clone(), inner.bucket.clone());
        results::store(disk, bucket, id.clone(), scrape.plan, harvest).await
    }

    /// A job that runs from now on, unless something has ended it: what is over stays as it is.
    async fn begin(&self, id: &JobId) -> std::io::Result<Option<Entry>> {
        let _turn = self.inner.changes.lock().await;
        let entry = {
            let mut state = self.inner.state.lock();
            let entry = state.jobs.get_mut(id).filter(|entry| !entry.job.status.is_over());
            entry.map(|entry| {
                entry.job.status = JobStatus::Running;
                entry.job.started_at.get_or_insert_with(Timestamp::now);
                entry.job.attempts += 1;
                entry.clone()
            })
        };
        if let Some(entry) = &entry {
            self.write_job(&entry.job).await?;
        }
        Ok(entry)
    }

    pub(crate) async fn finish(&self, id: &JobId, end: End) {
        let _turn = self.inner.changes.lock().await;
        self.finish_within(id, end).await;
    }

    /// The end of a job, once: in its file, in the state, then for its session. Only within a change.
    pub(crate) async fn finish_within(&self, id: &JobId, end: End) {
        let entry = self.inner.state.lock().jobs.get(id).cloned();
        let Some(Entry { mut job, end: token, progress }) =
            entry.filter(|entry| !entry.job.status.is_over())
        else {
            return;
        };
        job.finished_at = Some(Timestamp::now());
        job.pages = progress.pages();
        // What it had found by then, however it ends.
        job.ads_count = progress.ads();
        let mut event = Event::JobEnded;
        match end {
            End::Found(0) => (job.status, job.ads_count) = (JobStatus::Empty, 0),
            End::Found(ads) => (job.status, job.ads_count) = (JobStatus::Completed, ads),
            End::Failed(failure, broken) => {
                job.status = JobStatus::Failed;
                job.failure = Some(failure);
                event = broken.unwrap_or(Event::JobEnded);
            }
            End::Cancelled(why) => {
                tracing::info!(job = %id, why, "a scrape is cancelled");
                job.status = JobStatus::Cancelled;
            }
        }
        if let Err(error) = self.write_job(&job).await {
            // A restart would run it again, under the same id: it is said, and not hidden.
            tracing::error!(job = %id, %error, "the end of a job cannot be stored");
        }
        let failure = job.failure.clone();
        {
            let mut state = self.inner.state.lock();
            let session = job.session;
            if let Some(entry) = state.jobs.get_mut(id) {
                entry.job = job;
            }
            let is_ours = state.session.as_ref().is_some_and(|it| it.job.as_ref() == Some(id));
            if is_ours {
                if let Some(standing) = state.session.as_mut() {
                    standing.job = None;
                }
                state.happens(session, event, failure.as_ref());
            }
        }
        token.cancel();
        let pages = self.inner.disk.pages(id);
        let _only_space = tokio::fs::remove_dir_all(pages).await;
    }

    async fn write_job(&self, job: &Job) -> std::io::Result<()> {
        let (path, job) = (self.inner.disk.job_file(&job.id), job.clone());
        tokio::task::spawn_blocking(move || put_json(&path, &job)).await?
    }
}

pub(crate) fn word(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Initializing => "initializing",
        SessionStatus::Connecting => "connecting",
        SessionStatus::Authenticating => "authenticating",
        SessionStatus::WarmingUp => "warming_up",
        SessionStatus::Ready => "ready",
        SessionStatus::Scraping => "scraping",
        SessionStatus::Stuck => "stuck",
        SessionStatus::Disconnected => "disconnected",
        SessionStatus::Terminated => "terminated",
    }
}
