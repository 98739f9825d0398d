//! The orchestrator: it leases workers and missions, and does for each what the machines say.
//!
//! Every process that orchestrates runs one; on one PostgreSQL they share what there is. Each
//! worker and each mission that is being stored has a loop of its own: look at the rows, ask
//! outside, write one step, look again. A loop that is dropped at any point has lost nothing.

// Branches of `select!` stand in the order in which they count, and maps are ordered: a simulation
// must go the same way twice.

mod run;
mod storing;
mod working;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lavra_tasks::model::{ProcessId, Token};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::run::Ended;
use crate::api::{Transport, Trouble};
use crate::bell::{Bell, Ears};
use crate::error::Result;
use crate::keys::Keys;
use crate::machine::Step;
use crate::model::{MissionId, MissionStatus};
use crate::settings::{Settings, Timing};
use crate::store::{Leased, Store};

/// Everything that an orchestrator needs from outside.
#[derive(Clone, Debug)]
pub struct Orchestrator {
    pub store: Arc<dyn Store>,
    pub transport: Arc<dyn Transport>,
    pub keys: Arc<dyn Keys>,
    pub bell: Bell,
    pub timing: Timing,
    pub process: ProcessId,
    luck: Arc<Mutex<SmallRng>>,
    settings: watch::Sender<Settings>,
}

/// How often is leased at most, however much rings.
const AT_MOST_EVERY: Duration = Duration::from_millis(50);
/// How long loops have to end when the process does.
const GRACE: Duration = Duration::from_secs(5);
/// How long a store that has trouble is left alone.
const PAUSE: Duration = Duration::from_millis(500);

impl Orchestrator {
    /// `seed` decides which of the free proxies is taken.
    pub fn new(
        store: Arc<dyn Store>,
        transport: Arc<dyn Transport>,
        keys: Arc<dyn Keys>,
        bell: Bell,
        timing: Timing,
        process: ProcessId,
        seed: u64,
    ) -> Self {
        let settings = Settings { timing, ..Settings::default() };
        Self {
            store,
            transport,
            keys,
            bell,
            timing,
            process,
            luck: Arc::new(Mutex::new(SmallRng::seed_from_u64(seed))),
            settings: watch::channel(settings).0,
        }
    }

    fn settings(&self) -> Settings {
        *self.settings.borrow()
    }

    /// As the tables keep it: whole microseconds.
    fn now(&self) -> Timestamp {
        let now = self.store.clock().now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    fn luck(&self) -> u64 {
        self.luck.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// Looks after its share of workers and missions until `stop`, and then leaves them to others
    /// as they are: sessions stand, jobs run.
    pub async fn supervise(&self, stop: &CancellationToken) -> Result<()> {
        let (hand, mut handed) = mpsc::unbounded_channel();
        let mut loops = Loops::new(hand);
        let mut ears = self.bell.ears();
        while !stop.is_cancelled() {
            ears.forget();
            match self.lease().await {
                Ok(leased) => self.look_after(leased, &mut loops).await?,
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "the fleet's tables cannot be reached; trying again");
                }
                Err(error) => return Err(error),
            }
            let earliest = Instant::now() + AT_MOST_EVERY;
            let turn = tokio::time::sleep(self.timing.heartbeat);
            tokio::pin!(turn);
            loop {
                let rung = async {
                    tokio::time::sleep_until(earliest).await;
                    ears.work().await;
                };
                tokio::select! {
                    biased;
                    () = &mut turn => break,
                    () = rung => break,
                    Some((mission, token)) = handed.recv() => {
                        loops.start(Held::Mission(mission), token, self);
                    }
                    Some(ended) = loops.running.join_next_with_id() => {
                        if loops.ended(ended) {
                            break;
                        }
                    }
                    () = stop.cancelled() => break,
                }
            }
        }
        loops.stop().await;
        self.store.leave(self.process).await
    }

    async fn lease(&self) -> Result<Leased> {
        let adjustable = self.store.settings().await?;
        self.settings.send_if_modified(|settings| {
            let is_new = settings.adjustable != adjustable;
            settings.adjustable = adjustable;
            is_new
        });
        self.store.lease(self.process, self.timing.stale).await
    }

    /// Starts a loop for all that is new here, and gives back what is more than a share.
    async fn look_after(&self, leased: Leased, loops: &mut Loops) -> Result<()> {
        let workers = leased.workers.iter().map(|(id, token)| (Held::Worker(id.clone()), *token));
        let missions =
            leased.missions.iter().map(|(id, token)| (Held::Mission(id.clone()), *token));
        let mut held: BTreeMap<Held, Token> = workers.chain(missions).collect();
        loops.keep(&held);
        let mut surplus = Vec::new();
        for (id, _) in leased.workers.iter().rev().take(leased.surplus) {
            let what = Held::Worker(id.clone());
            // One that runs ends between two steps, and is given back then.
            if loops.give_back(&what) {
                surplus.push(id.clone());
            }
            held.remove(&what);
        }
        if !surplus.is_empty() {
            self.store.release(self.process, surplus).await?;
        }
        for (what, token) in held {
            loops.start(what, token, self);
        }
        Ok(())
    }

    /// Writes a step, and rings for those whom it concerns. False if the rows are someone else's,
    /// or not as they were.
    async fn write(&self, step: Step) -> Result<bool> {
        let frees_proxy = step.releases_proxy;
        let is_queued =
            step.mission.as_ref().is_some_and(|(_, m)| m.status == MissionStatus::Queued);
        let written = self.patiently(|| self.store.apply(vec![step.clone()])).await?;
        let is_written = written.first() == Some(&true);
        if is_written {
            if frees_proxy {
                self.bell.proxies();
            }
            if is_queued {
                self.bell.queue();
            }
        }
        Ok(is_written)
    }

    /// Asks the store, again and again while it has trouble that passes. What was written although
    /// its answer was lost is found when the rows are looked at next: a step is guarded.
    async fn patiently<T, F>(&self, ask: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        loop {
            match ask().await {
                Err(error) if error.is_transient() => {
                    tracing::debug!(%error, "trying again");
                    tokio::time::sleep(PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    /// Until that time by the store's clock.
    async fn sleep_until(&self, time: Timestamp) {
        let wait = time.duration_since(self.now()).max(SignedDuration::ZERO);
        let wait = Duration::try_from(wait).unwrap_or_default();
        // A clock that was set meanwhile is looked at again.
        tokio::time::sleep(wait.min(Duration::from_secs(60)).max(Duration::from_millis(1))).await;
    }
}

/// How long after trouble the same is not asked again.
fn pause_after(trouble: &Trouble, timing: &Timing) -> Duration {
    match trouble {
        Trouble::Busy { after } => after.unwrap_or(timing.backoff.0).min(timing.backoff.1),
        Trouble::Away { .. } | Trouble::Refused { .. } => timing.polling_queue,
    }
}

/// What has a loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Held {
    Worker(crate::model::WorkerId),
    Mission(MissionId),
}

type Hand = mpsc::UnboundedSender<(MissionId, Token)>;

struct Loops {
    /// For what one loop leaves to the next: missions whose data is there.
    hand: Hand,
    running: JoinSet<()>,
    /// What each that runs is for.
    started: HashMap<Id, (Held, Token)>,
    /// With which token each runs, and how it is told to stop.
    known: BTreeMap<Held, (Token, CancellationToken)>,
}

impl Loops {
    fn new(hand: Hand) -> Self {
        Self { hand, running: JoinSet::new(), started: HashMap::new(), known: BTreeMap::new() }
    }

    /// Drops the loops of what is no longer held, or held under another token.
    fn keep(&mut self, held: &BTreeMap<Held, Token>) {
        self.known.retain(|what, (token, stop)| {
            let is_held = held.get(what) == Some(token);
            if !is_held {
                stop.cancel();
            }
            is_held
        });
    }

    /// Asks a loop to end; true if there is none.
    fn give_back(&mut self, what: &Held) -> bool {
        match self.known.get(what) {
            Some((_, stop)) => {
                stop.cancel();
                false
            }
            None => true,
        }
    }

    fn start(&mut self, what: Held, token: Token, orchestrator: &Orchestrator) {
        if self.known.contains_key(&what) {
            return;
        }
        let stop = CancellationToken::new();
        self.known.insert(what.clone(), (token, stop.clone()));
        let (orchestrator, hand) = (orchestrator.clone(), self.hand.clone());
        let held = (what.clone(), token);
        let running = self.running.spawn(async move {
            let ended = match &what {
                Held::Worker(id) => orchestrator.work(id, token, &hand, &stop).await,
                Held::Mission(id) => orchestrator.store_mission(id, token, &stop).await,
            };
            if let Err(error) = ended {
                tracing::error!(%error, ?what, "it is left alone for a moment");
                tokio::time::sleep(PAUSE).await;
            }
        });
        self.started.insert(running.id(), held);
    }

    /// Whether it was a worker's: those end only when they are to be leased anew. One that panicked
    /// is left until the next turn.
    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) -> bool {
        let (id, panicked) = match ended {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(error)),
        };
        let Some((what, token)) = self.started.remove(&id) else { return false };
        if self.known.get(&what).is_some_and(|(known, _)| *known == token) {
            self.known.remove(&what);
        }
        if let Some(error) = panicked {
            tracing::error!(%error, ?what, "its loop panicked; another one is started");
            return false;
        }
        matches!(what, Held::Worker(_))
    }

    /// All end between two steps; one that cannot, because its question is not answered or the store
    /// is away, is dropped, which loses nothing.
    async fn stop(mut self) {
        for (_, stop) in self.known.values() {
            stop.cancel();
        }
        let all = async { while self.running.join_next().await.is_some() {} };
        drop(tokio::time::timeout(GRACE, all).await);
    }
}

/// Waits for a bell, for a time, or to be told to stop.
async fn wait(stop: &CancellationToken, until: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = until => {}
        () = stop.cancelled() => {}
    }
}

/// The ears of a loop, and how long it waits at most.
struct Patience {
    ears: Ears,
    at_most: Duration,
}

impl Patience {
    fn new(orchestrator: &Orchestrator) -> Self {
        Self { ears: orchestrator.bell.ears(), at_most: orchestrator.timing.polling_queue }
    }

    async fn queue(&mut self, stop: &CancellationToken) {
        let rung = tokio::time::timeout(self.at_most, self.ears.queue_or_work());
        wait(stop, async { drop(rung.await) }).await;
    }

    async fn proxies(&mut self, stop: &CancellationToken) {
        let rung = tokio::time::timeout(self.at_most, self.ears.proxies_or_work());
        wait(stop, async { drop(rung.await) }).await;
    }
}
