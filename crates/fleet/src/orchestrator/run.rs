//! A run: from the first mission of the queue to the last session that is closed.

use std::time::Duration;

use lavra_tasks::model::TaskId;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Orchestrator;
use crate::error::Result;
use crate::model::{Mode, WorkerStatus};
use crate::settings::Timing;
use crate::store::{Control, Counts};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub counts: Counts,
    /// Sessions whose end was not confirmed.
    pub unclosed: usize,
    /// Whether someone stopped it before the queue was empty.
    pub was_stopped: bool,
}

impl Orchestrator {
    /// Says that the fleet runs, and waits until nothing is queued or running, or someone
    /// drains or stops it; then until all sessions are closed. Supervising is not done here.
    pub async fn run(
        &self,
        task: Option<TaskId>,
        stop: &CancellationToken,
        tell: impl Fn(Mode, &Counts),
    ) -> Result<Ended> {
        let before = self.patiently(|| self.store.control()).await?;
        // Whoever goes on with a run that someone is stopping goes on with stopping it.
        if before.mode == Mode::Off || before.task_id != task {
            self.set_mode(Mode::Run, task, before.task_id).await?;
        }
        let mut ears = self.bell.ears();
        let was_stopped = loop {
            ears.forget();
            let Control { mode, task_id } = self.patiently(|| self.store.control()).await?;
            let counts = self.patiently(|| self.store.counts()).await?;
            if task_id != task {
                // Another run has begun: what it does, and the sessions that it opens, are its own.
                return Ok(Ended { counts, unclosed: 0, was_stopped: true });
            }
            tell(mode, &counts);
            match mode {
                Mode::Run if counts.has_work() => {}
                Mode::Drain if counts.running() > 0 => {}
                Mode::Stop if counts.extracao > 0 => {}
                Mode::Run => break false,
                Mode::Drain | Mode::Stop | Mode::Off => break true,
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep(self.timing.polling_queue) => {}
                () = ears.queue_or_work() => {}
                () = stop.cancelled(), if mode != Mode::Stop => {
                    self.set_mode(Mode::Stop, task, task).await?;
                }
            }
        };
        let is_over = self.set_mode(Mode::Off, task, task).await?;
        let unclosed = if is_over { self.until_closed().await? } else { 0 };
        let counts = self.patiently(|| self.store.counts()).await?;
        Ok(Ended { counts, unclosed, was_stopped })
    }

    /// What the orchestrators of all processes are to do from now on, unless another run than
    /// `seen` has said something since; whether it was said.
    pub async fn set_mode(
        &self,
        mode: Mode,
        task_id: Option<TaskId>,
        seen: Option<TaskId>,
    ) -> Result<bool> {
        let control = Control { mode, task_id };
        let is_said = self.patiently(|| self.store.set_control(control, seen)).await?;
        self.bell.work();
        Ok(is_said)
    }

    /// Waits until every worker is idle, as long as a session may take to be closed.
    async fn until_closed(&self) -> Result<usize> {
        let Timing { stop_patience, close_patience, stale, .. } = self.timing;
        let patience = close_patience.saturating_add(stale).saturating_mul(2);
        // As good as never where no clock goes that far.
        let until = Instant::now().checked_add(patience.saturating_add(stop_patience));
        loop {
            let workers = self.patiently(|| self.store.workers()).await?;
            let open = workers.iter().filter(|worker| worker.status != WorkerStatus::Idle).count();
            if open == 0 || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(open + workers.iter().filter(|worker| worker.unclosed).count());
            }
            let look = (self.timing.polling_session / 10).max(Duration::from_millis(20));
            tokio::time::sleep(look).await;
        }
    }
}
