//! The loop of one worker.

use std::time::Duration;

use lavra_tasks::model::Token;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Hand, Orchestrator, Patience, pause_after, wait};
use crate::api::{Reply, WorkerApi};
use crate::error::Result;
use crate::machine::Step;
use crate::machine::worker::{Ask, Todo, View, after, todo, waits_for};
use crate::model::{Checkpoint, MissionId, MissionStatus, SessionId, Waiting, WorkerId};
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

/// The mission whose data a step says is there, to be stored.
fn has_data(step: &Step) -> Option<MissionId> {
    let (_, mission) = step.mission.as_ref()?;
    let is_to_store = mission.status == MissionStatus::Running
        && mission.checkpoint == Some(Checkpoint::Armazenamento);
    is_to_store.then(|| mission.id.clone())
}

impl Orchestrator {
    /// Does for a worker what its rows say, until it is someone else's or it is told to end.
    pub(super) async fn work(
        &self,
        id: &WorkerId,
        token: Token,
        hand: &Hand,
        until: &CancellationToken,
    ) -> Result<()> {
        let mut patience = Patience::new(self);
        let mut asked = Asked::default();
        // What a step of ours has left, where the next one cannot wait for a look.
        let mut left: Option<View> = None;
        while !until.is_cancelled() {
            let is_looked_at = left.is_none();
            let view = match left.take() {
                Some(view) => view,
                None => {
                    patience.ears.forget();
                    let view = self.patiently(|| self.store.view(id, token)).await?;
                    let Some(view) = view else { return Ok(()) };
                    view
                }
            };
            match todo(&view, &self.settings(), self.now()) {
                Todo::Leave => patience.queue(until).await,
                Todo::Rest(waiting) => {
                    self.name_wait(&view, waiting).await?;
                    patience.queue(until).await;
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
                            patience.queue(until).await;
                        }
                        Opened::Lost => self.was_refused(id).await,
                    }
                }
                Todo::Assign => match self.patiently(|| self.store.assign(id, token)).await? {
                    Assigned::With(view) => left = Some(*view),
                    Assigned::NothingQueued if is_looked_at => patience.queue(until).await,
                    Assigned::NothingQueued => {}
                    Assigned::Lost => self.was_refused(id).await,
                },
                Todo::Ask(ask, every) => {
                    if let Some(due) = asked.due(ask, every).filter(|due| *due > Instant::now()) {
                        // Where nobody rings, the rows are as they were; if not, a step is refused.
                        tokio::select! {
                            biased;
                            () = tokio::time::sleep_until(due) => left = Some(view),
                            () = patience.ears.work() => {}
                            () = until.cancelled() => {}
                        }
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
                    let Some(step) = step else { continue };
                    left = Some(view.after(&step)).filter(View::is_free);
                    let scraped = has_data(&step);
                    if !self.write(step).await? {
                        left = None;
                        self.was_refused(id).await;
                    } else if let Some(mission) = scraped {
                        // Nobody takes it where all ends; a lease finds it.
                        let _all_ends = hand.send((mission, token));
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
