//! The task type `fleet`: the task is the run.
//!
//! It says that the fleet runs, waits until nothing is queued or running, and then until all
//! sessions are closed. Every process that orchestrates, this one or another, supervises meanwhile.

use std::time::Duration;

use lavra_tasks::model::{Status, TaskId};
use lavra_tasks::store::ListFilter;
use lavra_tasks::{Context, Failure, Handler, NewTask, Outcome, Tasks};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::model::{Mode, WorkerStatus};
use crate::orchestrator::Orchestrator;
use crate::service::Fleet;
use crate::store::{Control, Counts};

/// How often a process that has no run looks whether there is one.
const LOOK_FOR_WORK: Duration = Duration::from_secs(2);
/// The lease of whoever starts a run.
const START: &str = "fleet-start";
const START_LENGTH: Duration = Duration::from_secs(10);

/// A run has nothing to be told: the queue is in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOrder {}

#[derive(Clone, Debug)]
pub struct FleetRun(Orchestrator);

impl FleetRun {
    pub fn new(orchestrator: Orchestrator) -> Self {
        Self(orchestrator)
    }
}

impl Handler for FleetRun {
    type Input = RunOrder;

    const KIND: &'static str = "fleet";

    async fn run(&self, _: RunOrder, context: Context) -> Outcome {
        let stop = CancellationToken::new();
        let tell = |mode: Mode, counts: &Counts| {
            let ended = counts.completed + counts.failed + counts.canceled;
            let all = (ended + counts.queued + counts.running()).max(1);
            let word = match mode {
                Mode::Run | Mode::Off => "",
                Mode::Drain => "Draining: ",
                Mode::Stop => "Stopping: ",
            };
            let state = format!(
                "{word}{} queued, {} scraping, {} storing",
                counts.queued, counts.extracao, counts.armazenamento
            );
            context.progress((ended * 99 / all).clamp(0, 99) as i16, state);
        };
        let running = self.0.run(Some(context.id()), &stop, tell);
        tokio::pin!(running);
        let ended = tokio::select! {
            biased;
            ended = &mut running => ended,
            _ = context.stopped() => {
                if !context.is_cancelled() {
                    // This process ends; another one goes on with the run.
                    return Err(Failure::Stopped);
                }
                stop.cancel();
                running.await
            }
        };
        match ended {
            Ok(_) if context.is_cancelled() => Err(Failure::Stopped),
            Ok(ended) => Ok(Some(json!(ended))),
            Err(error) if error.is_transient() => Err(Failure::retry(error.to_string())),
            Err(error) => Err(Failure::permanent(error.to_string())),
        }
    }
}

impl Orchestrator {
    /// Supervises whenever there is a run, until `stop`.
    pub async fn attend(self, tasks: Tasks, stop: CancellationToken) {
        let mut ears = self.bell.ears();
        while !stop.is_cancelled() {
            ears.forget();
            match self.is_needed(&tasks).await {
                Ok(true) => {
                    if let Err(error) = self.supervise_run(&tasks, &stop).await {
                        tracing::error!(%error, "the fleet is not looked after; trying again");
                    }
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "whether the fleet runs is not known"),
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep(LOOK_FOR_WORK) => {}
                () = ears.work() => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Supervises until the run is over and all is closed, or until `stop`.
    async fn supervise_run(&self, tasks: &Tasks, stop: &CancellationToken) -> Result<()> {
        let enough = stop.child_token();
        let watch = async {
            loop {
                tokio::time::sleep(LOOK_FOR_WORK).await;
                if let Ok(false) = self.is_needed(tasks).await {
                    enough.cancel();
                    return;
                }
            }
        };
        let (supervised, ()) = tokio::join!(self.supervise(&enough), async {
            tokio::select! {
                biased;
                () = watch => {}
                () = enough.cancelled() => {}
            }
        });
        supervised
    }

    /// Whether there is a run, or something that a run left behind in the making of its end.
    async fn is_needed(&self, tasks: &Tasks) -> Result<bool> {
        let control = self.store.control().await?;
        let workers = self.store.workers().await?;
        let is_open = workers.iter().any(|worker| worker.status != WorkerStatus::Idle);
        if control.mode == Mode::Off {
            return Ok(is_open);
        }
        // A task that ended without its run, because it was cancelled and its process is gone.
        if let Some(id) = control.task_id
            && has_ended(tasks, id).await?
        {
            match control.mode {
                Mode::Run | Mode::Drain => self.set_mode(Mode::Stop, Some(id), Some(id)).await?,
                Mode::Stop if !is_open => self.set_mode(Mode::Off, None, Some(id)).await?,
                Mode::Stop | Mode::Off => false,
            };
        }
        Ok(true)
    }
}

async fn has_ended(tasks: &Tasks, id: TaskId) -> Result<bool> {
    match tasks.task(id).await {
        Ok(task) => {
            Ok(matches!(task.status, Status::Completed | Status::Failed | Status::Cancelled))
        }
        Err(lavra_tasks::Error::NoSuchTask(_)) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

impl Fleet {
    /// The run that waits or is in progress, if there is one.
    pub async fn running(&self, tasks: &Tasks) -> Result<Option<TaskId>> {
        for status in [Status::InProgress, Status::Pending] {
            let filter = ListFilter {
                kind: Some(FleetRun::KIND.into()),
                status: Some(status),
                limit: 1,
                ..ListFilter::default()
            };
            if let Some(task) = tasks.store().list(filter).await?.first() {
                return Ok(Some(task.id));
            }
        }
        Ok(None)
    }

    /// Starts a run, unless there is one: its task, and whether that is new. Of several who start
    /// one at once, one does.
    pub async fn start(&self, tasks: &Tasks) -> Result<(TaskId, bool)> {
        let me = self.store.clock().new_id();
        let lease = loop {
            match self.leases.acquire(START, me, START_LENGTH).await? {
                Some(lease) => break lease,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let started = self.start_unless_running(tasks).await;
        let _expires_anyway = self.leases.release(&lease).await;
        started
    }

    async fn start_unless_running(&self, tasks: &Tasks) -> Result<(TaskId, bool)> {
        if let Some(id) = self.running(tasks).await? {
            return Ok((id, false));
        }
        let order =
            NewTask { kind: FleetRun::KIND.into(), payload: json!({}), ..NewTask::default() };
        Ok((tasks.create(order).await?.id, true))
    }

    /// Tells the run to drain or to stop.
    pub async fn steer(&self, mode: Mode) -> Result<Control> {
        loop {
            let seen = self.store.control().await?;
            if seen.mode == Mode::Off {
                return Err(Error::Conflict("the fleet does not run".into()));
            }
            let control = Control { mode, ..seen };
            if self.store.set_control(control, seen.task_id).await? {
                self.bell.work();
                return Ok(control);
            }
        }
    }
}
