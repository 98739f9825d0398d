//! The loop of one worker.

use std::time::Duration;

use lavra_tasks::model::Token;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Orchestrator, Patience, pause_after, wait};
use crate::api::{Reply, WorkerApi};
use crate::error::Result;
use crate::machine::worker::{Ask, Todo, View, after, todo, waits_for};
use crate::model::{SessionId, Waiting, WorkerId};
use crate::store::{Assigned, Opened, Opening, Thing};

/// What was asked last, and from when on it may be asked again.
#[derive(Default)]
struct Asked {
    last: Option<(Ask, Instant)>,
    pause: Option<Instant>,
}

impl Asked {
    /// When a question is due. How something stands is asked a while after it was begun; something
    /// that is to be begun, at once.
    fn due(&self, ask: Ask, every: Duration) -> Option<Instant> {
        let is_look = matches!(ask, Ask::SessionStatus | Ask::Job);
        let last = self.last.filter(|(last, _)| is_look || *last == ask);
        last.map(|(_, at)| at + every).max(self.pause)
    }
}

impl Orchestrator {
    /// Does for a worker what its rows say, until it is someone else's or it is told to end.
    pub(super) async fn work(
        &self,
        id: &WorkerId,
        token: Token,
        until: &CancellationToken,
    ) -> Result<()> {
        let mut patience = Patience::new(self);
        let mut asked = Asked::default();
        while !until.is_cancelled() {
            patience.ears.forget();
            let view = self.patiently(|| self.store.view(id, token)).await?;
            let Some(view) = view else { return Ok(()) };
            match todo(&view, &self.settings(), self.now()) {
                Todo::Leave => patience.work(until).await,
                Todo::Rest(waiting) => {
                    self.name_wait(&view, waiting).await?;
                    patience.work(until).await;
                }
                Todo::Until(time, waiting) => {
                    self.name_wait(&view, waiting).await?;
                    let due = async {
                        tokio::select! {
                            biased;
                            () = self.sleep_until(time) => {}
                            () = patience.ears.work() => {}
                        }
                    };
                    wait(until, due).await;
                }
                Todo::Write(step) => {
                    if !self.write(*step).await? {
                        self.was_refused(id).await;
                    }
                }
                Todo::Open => {
                    let opening = Opening {
                        worker: id.clone(),
                        token,
                        session: SessionId::new(self.store.clock()),
                        luck: self.luck(),
                    };
                    match self.patiently(|| self.store.open(opening.clone())).await? {
                        Opened::With(_) => {}
                        Opened::NoProxy => patience.proxies(until).await,
                        Opened::NotNeeded => {
                            self.name_wait(&view, Waiting::Mission).await?;
                            patience.work(until).await;
                        }
                        Opened::Lost => self.was_refused(id).await,
                    }
                }
                Todo::Assign => match self.patiently(|| self.store.assign(id, token)).await? {
                    Assigned::Mission(_) => {}
                    Assigned::NothingQueued => patience.work(until).await,
                    Assigned::Lost => self.was_refused(id).await,
                },
                Todo::Ask(ask, every) => {
                    if let Some(due) = asked.due(ask, every).filter(|due| *due > Instant::now()) {
                        let turn = async {
                            tokio::select! {
                                biased;
                                () = tokio::time::sleep_until(due) => {}
                                () = patience.ears.work() => {}
                            }
                        };
                        wait(until, turn).await;
                        continue;
                    }
                    asked.last = Some((ask, Instant::now()));
                    let reply = self.ask(&view, ask).await;
                    asked.pause = match &reply {
                        Reply::Trouble(trouble) => {
                            Some(Instant::now() + pause_after(trouble, &self.timing))
                        }
                        _ => None,
                    };
                    let step = after(&view, ask, &reply, &self.settings(), self.now());
                    if let Some(step) = step
                        && !self.write(step).await?
                    {
                        self.was_refused(id).await;
                    }
                }
            }
        }
        Ok(())
    }

    async fn ask(&self, view: &View, ask: Ask) -> Reply {
        let worker = &view.worker;
        let api = WorkerApi {
            transport: &*self.transport,
            worker,
            api_key: self.keys.key(&Thing::Worker(worker.id.clone())).await,
            timeout: self.timing.call,
        };
        let mission = view.mission.as_ref();
        let job = mission.and_then(|mission| mission.worker_job_id.as_deref());
        match (ask, mission, job) {
            (Ask::OpenSession, ..) => match (&worker.session_id, &view.proxy) {
                (Some(session), Some(proxy)) => {
                    let password = self.keys.key(&Thing::Proxy(proxy.id.clone())).await;
                    api.open(session, proxy, password.as_ref()).await
                }
                // The proxy is gone: as if there were no session.
                _ => Reply::Session(crate::api::SessionStatus::Terminated),
            },
            (Ask::SessionStatus, ..) => api.session().await,
            (Ask::CloseSession, ..) => api.close().await,
            (Ask::StartScrape, Some(mission), _) => api.start(mission).await,
            (Ask::Job, _, Some(job)) => api.job(job).await,
            (Ask::CancelJob, _, Some(job)) => api.cancel(job).await,
            (Ask::StartScrape | Ask::Job | Ask::CancelJob, ..) => Reply::Unknown,
        }
    }

    async fn name_wait(&self, view: &View, waiting: Waiting) -> Result<()> {
        if let Some(step) = waits_for(view, waiting, self.now()) {
            self.write(step).await?;
        }
        Ok(())
    }

    /// The rows were changed meanwhile. Looked at again they say what is to be done; a moment in
    /// between keeps a mistake from becoming a storm.
    async fn was_refused(&self, worker: &WorkerId) {
        tracing::debug!(%worker, "the rows are not as they were");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
