//! What attempts tell, written in batches.
//!
//! All writes of a task go through the same of a few writers, so they keep their order; each
//! writer takes what has come while it was busy and stores it in one statement. Ends are written
//! at once, progress at most twice a second. A write is tried again until the store has
//! acknowledged or refused it: a refusal means that the task was cancelled or is another's.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::attempt::Attempt;
use super::held::Held;
use crate::error::{Error, Result};
use crate::machine::{Happening, Snapshot, next};
use crate::model::{Status, TaskId};
use crate::service::Tasks;
use crate::store::{Guard, Write, Written};

const WRITERS: usize = 2;
const BATCH: usize = 1000;
/// How many ends may wait to be written before attempts are held up.
const WAITING: usize = 4000;
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) attempt: Arc<Attempt>,
    pub(super) happening: Happening,
    pub(super) result: Option<serde_json::Value>,
}

#[derive(Debug)]
enum Report {
    Told(Arc<Attempt>),
    Ended(Ended),
}

/// The way from attempts to the writers.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(Arc<[mpsc::Sender<Report>]>);

impl Reporter {
    pub(super) fn start(tasks: &Tasks, held: &Arc<Held>) -> (Self, Vec<JoinHandle<()>>) {
        let mut senders = Vec::new();
        let mut writers = Vec::new();
        for _ in 0..WRITERS {
            let (sender, reports) = mpsc::channel(WAITING);
            senders.push(sender);
            let writer = Writer { tasks: tasks.clone(), held: Arc::clone(held) };
            writers.push(tokio::spawn(writer.run(reports)));
        }
        (Self(senders.into()), writers)
    }

    fn of(&self, id: TaskId) -> &mpsc::Sender<Report> {
        let place = id.0.as_u128() as usize % self.0.len();
        &self.0[place]
    }

    /// Something was told. If the writer is far behind, the next telling will note it.
    pub(super) fn note(&self, attempt: &Arc<Attempt>) {
        if !attempt.noted.swap(true, Ordering::Relaxed)
            && self.of(attempt.task.id).try_send(Report::Told(Arc::clone(attempt))).is_err()
        {
            attempt.noted.store(false, Ordering::Relaxed);
        }
    }

    pub(super) async fn ended(&self, ended: Ended) {
        // The writers live until every sender is gone.
        let _never_closed = self.of(ended.attempt.task.id).send(Report::Ended(ended)).await;
    }
}

struct Writer {
    tasks: Tasks,
    held: Arc<Held>,
}

impl Writer {
    async fn run(self, mut reports: mpsc::Receiver<Report>) {
        let mut told: HashMap<TaskId, Arc<Attempt>> = HashMap::new();
        let mut ended: Vec<Ended> = Vec::new();
        let mut tick = tokio::time::interval(PROGRESS_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_progress = Instant::now();
        loop {
            let mut received = Vec::new();
            tokio::select! {
                count = reports.recv_many(&mut received, BATCH) => {
                    if count == 0 {
                        return;
                    }
                }
                _ = tick.tick(), if !told.is_empty() => {}
            }
            for report in received {
                match report {
                    Report::Told(attempt) => {
                        told.insert(attempt.task.id, attempt);
                    }
                    Report::Ended(end) => {
                        told.remove(&end.attempt.task.id);
                        ended.push(end);
                    }
                }
            }
            if !ended.is_empty() {
                self.write_ends(std::mem::take(&mut ended)).await;
            }
            if !told.is_empty() && last_progress.elapsed() >= PROGRESS_EVERY {
                self.write_progress(told.drain().map(|(_, attempt)| attempt).collect()).await;
                last_progress = Instant::now();
            }
        }
    }

    async fn write_ends(&self, ended: Vec<Ended>) {
        let now = self.tasks.now();
        let mut ends = Vec::with_capacity(ended.len());
        let mut writes = Vec::with_capacity(ended.len());
        for mut end in ended {
            let snapshot = end.attempt.snapshot();
            match next(&snapshot, &end.happening, now) {
                Ok(next) => {
                    let mut write = owned(&end.attempt, next);
                    write.result = end.result.take();
                    write.announce = self.tasks.announces();
                    writes.push(write);
                    ends.push(end);
                }
                Err(illegal) => tracing::error!(%illegal, "an attempt ended in no known way"),
            }
        }
        let outcome = self.until_answered(writes).await;
        let mut counts: HashMap<(&str, Status), u64> = HashMap::new();
        for (end, (written, status)) in ends.iter().zip(&outcome) {
            let task = &end.attempt.task;
            self.held.remove(task.id, task.token);
            match written {
                Written::Applied { .. } => {
                    *counts.entry((&task.kind, *status)).or_default() += 1;
                }
                Written::Refused => self.refused(&end.attempt).await,
            }
        }
        for ((kind, status), count) in counts {
            let labels = [("type", kind.to_owned()), ("status", status.to_string())];
            metrics::counter!("lavra_task_attempts_total", &labels).increment(count);
        }
        self.tasks.wake_if_waiting(&outcome.iter().map(|(_, status)| *status).collect::<Vec<_>>());
    }

    async fn write_progress(&self, attempts: Vec<Arc<Attempt>>) {
        let now = self.tasks.now();
        let mut writes = Vec::new();
        for attempt in &attempts {
            attempt.noted.store(false, Ordering::Relaxed);
            let happening = {
                let mut told = attempt.told();
                if !told.moved && told.steps.is_empty() && told.metadata.is_none() {
                    continue;
                }
                // The last step is the event of this write unless progress moved after it.
                match (told.moved, told.steps.pop()) {
                    (false, Some(last)) => Happening::Step {
                        progress: told.progress,
                        state: last.state,
                        detail: Some(last.detail),
                    },
                    (moved, last) => {
                        told.steps.extend(last);
                        told.moved = false;
                        let detail =
                            moved.then(|| serde_json::json!({ "progress": told.progress }));
                        Happening::Step {
                            progress: told.progress,
                            state: told.state.clone(),
                            detail,
                        }
                    }
                }
            };
            if let Ok(next) = next(&attempt.snapshot(), &happening, now) {
                writes.push(owned(attempt, next));
            }
        }
        // What is refused here is learnt again, and acted on, at the next heartbeat.
        self.until_answered(writes).await;
    }

    /// The store's answers, with the status that each write was for.
    async fn until_answered(&self, writes: Vec<Write>) -> Vec<(Written, Status)> {
        if writes.is_empty() {
            return Vec::new();
        }
        let statuses: Vec<Status> = writes.iter().map(|write| write.next.status).collect();
        let mut tried = false;
        let written = match self.write(&writes, &mut tried).await {
            Ok(written) => written,
            Err(error) => self.one_by_one(&writes, &error, &mut tried).await,
        };
        let mut answers = Vec::with_capacity(written.len());
        for ((written, write), status) in written.into_iter().zip(&writes).zip(statuses) {
            // A connection that was cut after COMMIT: the first try may have counted.
            let settled = match written {
                Written::Refused if tried => self.was_ours(write).await.unwrap_or(written),
                Written::Refused | Written::Applied { .. } => written,
            };
            answers.push((settled, status));
        }
        answers
    }

    /// What the store says to the writes, asked until it answers. `tried` tells that it was asked
    /// before and its answer was lost.
    async fn write(&self, writes: &[Write], tried: &mut bool) -> Result<Vec<Written>> {
        let mut pause = Duration::from_millis(50);
        loop {
            match self.tasks.store().write(writes.to_vec()).await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, tasks = writes.len(), retry_in = ?pause, "a write waits for the database");
                    *tried = true;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                answer => return answer,
            }
        }
    }

    async fn was_ours(&self, write: &Write) -> Option<Written> {
        let task = self.tasks.store().task(write.id).await.ok()??;
        let ours = Some(task.token) == write.guard.token && task.status == write.next.status;
        ours.then_some(Written::Applied { version: task.version })
    }

    /// A batch that the database rejects holds something it cannot store: find it, fail it alone.
    async fn one_by_one(&self, writes: &[Write], error: &Error, tried: &mut bool) -> Vec<Written> {
        tracing::error!(%error, tasks = writes.len(), "a write was rejected; writing one by one");
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            answers.push(match self.write(std::slice::from_ref(write), tried).await {
                Ok(written) => written.first().copied().unwrap_or(Written::Refused),
                Err(error) => self.fail_instead(write, &error, tried).await,
            });
        }
        answers
    }

    async fn fail_instead(&self, write: &Write, error: &Error, tried: &mut bool) -> Written {
        let snapshot = Snapshot {
            status: Status::InProgress,
            progress: write.next.progress,
            retry_count: write.next.retry_count,
            max_retries: 0,
            stopping: false,
        };
        let error = format!("the outcome could not be stored: {error}");
        let happening = Happening::Fail { error, retry_in: None };
        let Ok(next) = next(&snapshot, &happening, self.tasks.now()) else {
            return Written::Refused;
        };
        let plain =
            Write { steps: Vec::new(), metadata: None, result: None, next, ..write.clone() };
        let written = self.write(std::slice::from_ref(&plain), tried).await;
        match written.ok().and_then(|written| written.first().copied()) {
            Some(applied @ Written::Applied { .. }) => applied,
            // If an answer was lost, it is this failure that may be there, not the outcome.
            Some(Written::Refused) | None if *tried => {
                self.was_ours(&plain).await.unwrap_or(Written::Refused)
            }
            Some(Written::Refused) | None => Written::Refused,
        }
    }

    /// Cancelled under us: confirm that we stopped. Anything else: it is another's now.
    async fn refused(&self, attempt: &Attempt) {
        let id = attempt.task.id;
        match self.tasks.confirm_stop(id, attempt.task.token).await {
            Ok(true) => tracing::info!(task = %id, "a cancelled task has stopped"),
            Ok(false) => {
                tracing::warn!(task = %id, token = attempt.task.token, "fenced out: the task is another's now");
                metrics::counter!("lavra_task_fenced_total").increment(1);
            }
            Err(error) => tracing::warn!(task = %id, %error, "could not confirm a stop"),
        }
    }
}

/// A write that holds only while the attempt owns the task.
fn owned(attempt: &Attempt, next: crate::machine::Next) -> Write {
    let mut told = attempt.told();
    Write {
        id: attempt.task.id,
        guard: Guard { status: Status::InProgress, token: Some(attempt.task.token), version: None },
        steps: std::mem::take(&mut told.steps),
        next,
        metadata: told.metadata.take(),
        result: None,
        announce: false,
    }
}
