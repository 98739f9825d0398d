//! `cleanup`: removes what ended long ago, archived first if there is an archive, and keeps the
//! events to their moving window.
//!
//! The archive file is complete before anything goes, and the rows go last, because they say what
//! there is to remove. A crash in between leaves the rows, and the next run archives them again
//! under another name and removes what is left: nothing stays that no row knows. A task whose artefact
//! cannot be removed keeps its row, holds up nothing else, and the run ends with the reason.

use std::collections::HashSet;
use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::artefact::{Artefacts, Pointer};
use crate::error::{Error, Result};
use crate::handler::{Context, Failure, Handler, Outcome};
use crate::model::{Task, TaskId};
use crate::service::Tasks;
use crate::store::{Dossier, Expiry};

/// How many go at once, into one file of the archive.
const BATCH: usize = 500;
/// How many of them are in memory, with payloads and results of megabytes.
const IN_MEMORY: usize = 50;
const EVENTS: usize = 10_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long what ended is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Completed tasks are removed after [default: 7]
    pub completed_days: u32,
    /// Cancelled ones [default: 7]
    pub cancelled_days: u32,
    /// Failed ones [default: 30]
    pub failed_days: u32,
    /// Events of ended tasks, dead messages, used keys [default: 30]
    pub events_days: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { completed_days: 7, cancelled_days: 7, failed_days: 30, events_days: 30 }
    }
}

#[derive(Debug)]
pub struct Cleanup {
    tasks: Tasks,
    retention: Retention,
    /// Where results lie that go with their tasks.
    artefacts: Artefacts,
    archive: Option<Artefacts>,
}

/// What one run may do differently from the configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the names of the settings that they stand in for")]
pub struct Input {
    completed_days: Option<u32>,
    cancelled_days: Option<u32>,
    failed_days: Option<u32>,
    events_days: Option<u32>,
}

impl Cleanup {
    pub fn new(
        tasks: Tasks,
        retention: Retention,
        artefacts: Artefacts,
        archive: Option<Artefacts>,
    ) -> Self {
        Self { tasks, retention, artefacts, archive }
    }

    fn ago(&self, days: u32) -> Timestamp {
        let age = SignedDuration::try_from(DAY * days).unwrap_or(SignedDuration::MAX);
        self.tasks.now().checked_sub(age).unwrap_or(Timestamp::MIN)
    }

    /// Reads all that belongs to the tasks, few at a time: lines for the archive, compressed as they come,
    /// and the artefacts that go with them.
    async fn read(&self, expired: Vec<Task>) -> Result<(Vec<u8>, Vec<(TaskId, Pointer)>)> {
        let unpacked = |error: std::io::Error| Error::Invalid(error.to_string());
        let mut lines = zstd::Encoder::new(Vec::new(), 3).map_err(unpacked)?;
        let mut artefacts = Vec::new();
        let mut left = expired.into_iter().peekable();
        while left.peek().is_some() {
            let some = left.by_ref().take(IN_MEMORY).collect();
            for dossier in self.tasks.store().dossiers(some).await? {
                let line = serde_json::to_writer(&mut lines, &dossier).map_err(Into::into);
                line.and_then(|()| lines.write_all(b"\n")).map_err(unpacked)?;
                artefacts.extend(self.own_artefact(&dossier).map(|it| (dossier.task.id, it)));
            }
        }
        Ok((lines.finish().map_err(unpacked)?, artefacts))
    }

    /// A result is what its worker says: of the files here only the task's own are its to name.
    fn own_artefact(&self, dossier: &Dossier) -> Option<Pointer> {
        let named = dossier.result.as_ref()?.get("artefact")?;
        let pointer: Pointer = serde_json::from_value(named.clone()).ok()?;
        let id = dossier.task.id.to_string();
        let is_own = pointer.location == self.artefacts.place()
            && pointer.key.split('/').any(|part| part == id);
        is_own.then_some(pointer)
    }

    async fn archive(&self, packed: Vec<u8>, count: usize) -> Result<Option<String>> {
        let Some(archive) = &self.archive else { return Ok(None) };
        let day = self.tasks.now().strftime("%Y/%m/%d");
        let key = format!("tasks/{day}/{}.jsonl.zst", self.tasks.store().clock().new_id());
        let pointer = archive.put(&key, "application/zstd", Bytes::from(packed)).await?;
        tracing::info!(count, key, "archived");
        Ok(Some(pointer.key))
    }

    /// What removing a task's artefact came to, if that may be otherwise another time.
    async fn trouble_with(&self, pointer: &Pointer) -> Option<Error> {
        let error = self.artefacts.remove(&pointer.key).await.err()?;
        let passes = error.is_transient();
        tracing::warn!(key = pointer.key, %error, passes, "an artefact was not removed");
        passes.then_some(error)
    }

    async fn run_all(&self, input: &Input, context: &Context) -> Result<serde_json::Value> {
        let mut done = Done::default();
        self.remove_tasks(input, context, &mut done).await?;
        self.sweep_events(input, context, &mut done).await?;
        match done.trouble {
            Some(error) => Err(error),
            None => Ok(json!({
                "tasks_removed": done.tasks, "events_removed": done.events, "archives": done.archives
            })),
        }
    }

    async fn remove_tasks(&self, input: &Input, context: &Context, done: &mut Done) -> Result<()> {
        let keep = &self.retention;
        let expiry = Expiry {
            completed_before: self.ago(input.completed_days.unwrap_or(keep.completed_days)),
            cancelled_before: self.ago(input.cancelled_days.unwrap_or(keep.cancelled_days)),
            failed_before: self.ago(input.failed_days.unwrap_or(keep.failed_days)),
        };
        let mut kept = HashSet::new();
        // Where so many cannot be removed, none can.
        while !context.is_stopping() && kept.len() < BATCH {
            let mut expired = self.tasks.store().expired(expiry, BATCH + kept.len()).await?;
            expired.retain(|task| !kept.contains(&task.id));
            let mut versions: Vec<_> = expired.iter().map(|it| (it.id, it.version)).collect();
            if versions.is_empty() {
                break;
            }
            let (packed, artefacts) = self.read(expired).await?;
            done.archives.extend(self.archive(packed, versions.len()).await?);
            // Only what has completed has artefacts, and that never changes again.
            for (id, pointer) in artefacts {
                if let Some(error) = self.trouble_with(&pointer).await {
                    kept.insert(id);
                    done.trouble = Some(error);
                }
            }
            versions.retain(|(id, _)| !kept.contains(id));
            let gone = self.tasks.store().remove(versions).await?;
            done.tasks += gone;
            context.progress(50, format!("Removed {} tasks", done.tasks));
            if gone == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn sweep_events(&self, input: &Input, context: &Context, done: &mut Done) -> Result<()> {
        let floor = self.ago(input.events_days.unwrap_or(self.retention.events_days));
        while !context.is_stopping() {
            let swept = self.tasks.store().sweep_history(floor, EVENTS).await?;
            done.events += swept;
            if swept < EVENTS {
                break;
            }
            context.progress(75, format!("Removed {} events", done.events));
        }
        Ok(())
    }
}

/// What a run has come to.
#[derive(Debug, Default)]
struct Done {
    tasks: usize,
    events: usize,
    archives: Vec<String>,
    /// Why some tasks are still there.
    trouble: Option<Error>,
}

impl Handler for Cleanup {
    type Input = Input;

    const KIND: &'static str = "cleanup";

    async fn run(&self, input: Input, context: Context) -> Outcome {
        let done = self.run_all(&input, &context).await;
        if context.is_stopping() {
            return Err(Failure::Stopped);
        }
        done.map(Some).map_err(|error| Failure::retry(error.to_string()))
    }
}
