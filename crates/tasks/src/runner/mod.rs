//! The runner: claims what waits, runs it, and reports.
//!
//! ```text
//! wake-ups ─► claim loop ─► attempts (as many at once as `concurrency`) ─► reporter ─► store
//!                 ▲                     │ told to stop
//!                 └── heartbeat ────────┘ (cancelled, lost, shutdown)
//! ```
//!
//! The claim in the database is the delivery. An in-process bell, a PostgreSQL notification and
//! a RabbitMQ message only say that something waits; polling is the truth. A runner that is fast
//! claims a little ahead, as much as it finished in the last moments, so that batches grow with
//! the load and a slow task never sits behind another in one process while others are idle.

mod attempt;
mod beat;
mod held;
mod pace;
mod pulse;
mod report;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handler::{Failure, Outcome, Registered, Registry};
use crate::machine::Happening;
use crate::model::{Claimed, ProcessId, Status, TaskId};
use crate::service::Tasks;
use crate::store::{Claim, Process};
use held::Held;
use pace::Pace;
use report::{Ended, Reporter};

pub(crate) use attempt::Attempt;
pub use attempt::{Context, Stop};
pub use pulse::Pulse;

/// How a runner behaves. The defaults are the documented ones.
#[derive(Clone, Debug)]
pub struct Config {
    /// What this process is called in the table of processes.
    pub name: String,
    /// Attempts that run at once.
    pub concurrency: usize,
    pub heartbeat: Duration,
    /// After how long a silence others take this process for dead.
    pub stale: Duration,
    /// Between looks at the database when nothing rings.
    pub poll: Duration,
    /// The same where no notification is known to arrive.
    pub poll_blind: Duration,
    /// How long running attempts have after a shutdown was asked for.
    pub grace: Duration,
    /// The most that one claim takes.
    pub batch: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "lavra".into(),
            concurrency: 32,
            heartbeat: Duration::from_secs(3),
            stale: Duration::from_secs(10),
            poll: Duration::from_secs(1),
            poll_blind: Duration::from_millis(40),
            grace: Duration::from_secs(10),
            batch: 1024,
        }
    }
}

/// How long a task may wait in this process for its turn before it is given back.
const LONGEST_LOCAL_WAIT: Duration = Duration::from_secs(1);

/// How long to leave the database alone after a claim failed, twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Runner {
    process: ProcessId,
    tasks: Tasks,
    registry: Registry,
    config: Config,
    pulse: Pulse,
    only: Option<TaskId>,
}

/// What the parts of a running runner share.
struct Shared {
    tasks: Tasks,
    registry: Registry,
    config: Config,
    process: Process,
    pulse: Pulse,
    held: Arc<Held>,
    pace: Pace,
    turns: Arc<Semaphore>,
    /// How long attempts take, by type.
    seconds: HashMap<String, metrics::Histogram>,
    stop: CancellationToken,
}

impl Runner {
    pub fn new(tasks: Tasks, registry: Registry, config: Config) -> Self {
        let process = ProcessId(tasks.store().clock().new_id());
        let pulse = Pulse::new(config.stale);
        Self { process, tasks, registry, config, pulse, only: None }
    }

    /// Takes this task and no other, the first time though its time may not have come.
    #[must_use]
    pub fn only(mut self, task: Option<TaskId>) -> Self {
        self.only = task;
        self
    }

    /// By what its claims are known.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Whether it says in time that it lives.
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Runs until `stop`; then claims nothing more, gives running attempts their grace, writes
    /// what they ended with, and leaves.
    pub async fn run(self, stop: CancellationToken) {
        let process = Process {
            id: self.process,
            name: self.config.name.clone(),
            kinds: self.registry.kinds(),
        };
        let seconds = process.kinds.iter().map(|kind| {
            let labels = [("type", kind.clone())];
            (kind.clone(), metrics::histogram!("lavra_task_seconds", &labels))
        });
        let seconds = seconds.collect();
        let held = Arc::new(Held::default());
        let (reporter, writers) = Reporter::start(&self.tasks, &held);
        let shared = Arc::new(Shared {
            turns: Arc::new(Semaphore::new(self.config.concurrency)),
            pace: Pace::new(self.config.concurrency, self.config.batch),
            tasks: self.tasks,
            registry: self.registry,
            config: self.config,
            process,
            pulse: self.pulse,
            held,
            seconds,
            stop,
        });
        // Nothing may be claimed before the row that says we live.
        beat::until_known(&shared).await;
        let beating = tokio::spawn(beat::keep(Arc::clone(&shared)));
        let attempts = TaskTracker::new();
        match self.only {
            Some(id) => claim_only(id, &shared, &reporter, &attempts).await,
            None => claim_until_stopped(&shared, &reporter, &attempts).await,
        }

        tracing::info!(running = attempts.len(), "stopping: nothing more is claimed");
        shared.held.stop_all();
        attempts.close();
        if tokio::time::timeout(shared.config.grace, attempts.wait()).await.is_err() {
            tracing::warn!(
                left = attempts.len(),
                "attempts did not stop in time; they are left to be taken over"
            );
        }
        drop(reporter);
        for writer in writers {
            let _aborted = tokio::time::timeout(shared.config.grace, writer).await;
        }
        beating.abort();
        if let Err(error) = shared.tasks.store().retire(shared.process.id).await {
            // Nothing is lost: without heartbeats the row grows stale and is cleared away.
            tracing::warn!(%error, "this process could not sign off");
        }
    }
}

async fn claim_until_stopped(shared: &Arc<Shared>, reporter: &Reporter, attempts: &TaskTracker) {
    let mut waker = shared.tasks.waker(&shared.process.kinds);
    let mut pause = FIRST_PAUSE;
    loop {
        let limit = tokio::select! {
            limit = shared.pace.room() => limit,
            () = shared.stop.cancelled() => return,
        };
        waker.about_to_claim();
        let claim =
            Claim { process: shared.process.id, kinds: shared.process.kinds.clone(), limit };
        let claimed = match shared.tasks.store().claim(claim).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, retry_in = ?pause, "cannot claim");
                tokio::select! {
                    () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                    () = shared.stop.cancelled() => return,
                }
                // Nothing was claimed, so no message is answered yet.
                continue;
            }
        };
        pause = FIRST_PAUSE;
        let count = claimed.len();
        waker.claimed(count, count < limit).await;
        start(claimed, shared, reporter, attempts);
        if count < limit {
            let poll = waker.poll_interval(shared.config.poll, shared.config.poll_blind);
            tokio::select! {
                () = waker.rung() => {}
                () = tokio::time::sleep(poll) => {}
                () = shared.stop.cancelled() => return,
            }
        }
    }
}

/// Takes the one task that this runner was given, and again whenever it waits and its time has come.
async fn claim_only(id: TaskId, shared: &Arc<Shared>, reporter: &Reporter, attempts: &TaskTracker) {
    let mut is_first = true;
    while !shared.stop.is_cancelled() {
        let claimed = if is_first || waits(id, shared).await {
            shared.tasks.store().claim_this(id, shared.process.id).await
        } else {
            Ok(None)
        };
        match claimed {
            Ok(task) => {
                is_first = false;
                start(task.into_iter().collect(), shared, reporter, attempts);
            }
            Err(error) => tracing::warn!(%error, "cannot claim"),
        }
        tokio::select! {
            () = tokio::time::sleep(shared.config.poll) => {}
            () = shared.stop.cancelled() => {}
        }
    }
}

/// Whether a task waits to be claimed now.
async fn waits(id: TaskId, shared: &Shared) -> bool {
    let task = shared.tasks.task(id).await;
    task.is_ok_and(|task| {
        let now = shared.tasks.store().clock().now();
        task.status == Status::Pending && task.run_at.is_none_or(|at| at <= now)
    })
}

fn start(claimed: Vec<Claimed>, shared: &Arc<Shared>, reporter: &Reporter, attempts: &TaskTracker) {
    let started: Vec<_> = claimed
        .into_iter()
        .map(|task| Arc::new(Attempt::new(task, shared.process.id, shared.pulse.clone())))
        .collect();
    shared.held.add(&started);
    shared.pace.started(started.len());
    for attempt in started {
        attempts.spawn(live(Arc::clone(shared), reporter.clone(), attempt));
    }
}

/// The life of one attempt: wait for a turn, run, report.
async fn live(shared: Arc<Shared>, reporter: Reporter, attempt: Arc<Attempt>) {
    let context = Context::new(Arc::clone(&attempt), reporter.clone());
    let turn = tokio::select! {
        biased;
        turn = Arc::clone(&shared.turns).acquire_owned() => turn.ok(),
        _ = context.stopped() => None,
        () = tokio::time::sleep(LONGEST_LOCAL_WAIT) => None,
    };
    let (outcome, timed) = match (&turn, shared.registry.get(&attempt.task.kind)) {
        (None, _) => (Err(Failure::Stopped), None),
        (Some(_), None) => (Err(Failure::permanent("no handler for this type")), None),
        (Some(_), Some(registered)) => {
            let begun = std::time::Instant::now();
            let outcome = match run(registered, &attempt.task, context).await {
                // Given back as an interruption it would run again and again.
                Err(Failure::Stopped) if attempt.stopped_for().is_none() => {
                    Err(Failure::retry("the handler stopped without having been told to"))
                }
                outcome => outcome,
            };
            (outcome, Some(begun.elapsed()))
        }
    };
    drop(turn);
    if let (Some(elapsed), Some(seconds)) = (timed, shared.seconds.get(&attempt.task.kind)) {
        seconds.record(elapsed.as_secs_f64());
    }
    let (happening, result) = conclude(&shared, &attempt, outcome);
    reporter.ended(Ended { attempt, happening, result }).await;
    shared.pace.finished();
}

/// Runs the handler so that a panic or an overrun ends only the attempt.
async fn run(registered: &Registered, task: &Claimed, context: Context) -> Outcome {
    let handler = AssertUnwindSafe(registered.start(task.payload.clone(), context)).catch_unwind();
    let outcome = match registered.policy.timeout {
        None => handler.await,
        Some(limit) => match tokio::time::timeout(limit, handler).await {
            Ok(outcome) => outcome,
            Err(_) => {
                return Err(Failure::retry(format!("ran longer than {} s", limit.as_secs())));
            }
        },
    };
    outcome.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without a message".into());
        Err(Failure::retry(format!("the handler panicked: {text}")))
    })
}

fn conclude(
    shared: &Shared,
    attempt: &Attempt,
    outcome: Outcome,
) -> (Happening, Option<serde_json::Value>) {
    match outcome {
        Ok(result) => (Happening::Complete, result),
        Err(Failure::Stopped) => (Happening::Interrupt, None),
        Err(Failure::Retry { error, after }) => {
            let backoff = shared.tasks.backoff().wait(attempt.task.retry_count + 1);
            let wait = after.map_or(backoff, |after| after.max(backoff));
            (Happening::Fail { error, retry_in: Some(wait) }, None)
        }
        Err(Failure::Permanent(error)) => (Happening::Fail { error, retry_in: None }, None),
    }
}
