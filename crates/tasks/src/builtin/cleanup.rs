//! `cleanup`: removes what ended long ago, archived first if there is an archive, and keeps the
//! events to their moving window.
//!
//! The archive file is complete before anything goes, and the rows go last, because they say what
//! there is to remove. A crash in between leaves the rows, and the next run archives them again
//! under another name and removes what is left: nothing stays that no row knows.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::artefact::{Artefacts, Pointer};
use crate::error::Result;
use crate::handler::{Context, Failure, Handler, Outcome};
use crate::service::Tasks;
use crate::store::{Dossier, Expiry};

/// How many are in memory at once, with payloads and results of megabytes.
const BATCH: usize = 50;
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

    async fn archive(&self, dossiers: &[Dossier]) -> Result<Option<Pointer>> {
        let (Some(archive), Some(first)) = (&self.archive, dossiers.first()) else {
            return Ok(None);
        };
        let packed = packed(dossiers).map_err(|error| crate::Error::Invalid(error.to_string()))?;
        let day = self.tasks.now().strftime("%Y/%m/%d");
        let key = format!("tasks/{day}/{}.jsonl.zst", self.tasks.store().clock().new_id());
        let pointer = archive.put(&key, "application/zstd", Bytes::from(packed)).await?;
        tracing::info!(count = dossiers.len(), first = %first.task.id, key, "archived");
        Ok(Some(pointer))
    }

    async fn remove_artefacts(&self, dossiers: &[Dossier]) -> Result<()> {
        for dossier in dossiers {
            let named = dossier.result.as_ref().and_then(|result| result.get("artefact"));
            let pointer: Option<Pointer> =
                named.and_then(|named| serde_json::from_value(named.clone()).ok());
            // A result is what its worker says: of the files here only the task's own are its to name.
            let id = dossier.task.id.to_string();
            let is_own = |it: &Pointer| {
                it.location == self.artefacts.place() && it.key.split('/').any(|part| part == id)
            };
            if let Some(pointer) = pointer.filter(is_own) {
                match self.artefacts.remove(&pointer.key).await {
                    // No artefact has such a name: it must not hold up the others.
                    Err(error) if !error.is_transient() => {
                        tracing::warn!(key = pointer.key, %error, "a result names no artefact");
                    }
                    removed => removed?,
                }
            }
        }
        Ok(())
    }

    async fn run_all(&self, input: &Input, context: &Context) -> Result<serde_json::Value> {
        let expiry = Expiry {
            completed_before: self
                .ago(input.completed_days.unwrap_or(self.retention.completed_days)),
            cancelled_before: self
                .ago(input.cancelled_days.unwrap_or(self.retention.cancelled_days)),
            failed_before: self.ago(input.failed_days.unwrap_or(self.retention.failed_days)),
        };
        let (mut removed, mut events, mut files) = (0, 0, Vec::new());
        while !context.is_stopping() {
            let expired = self.tasks.store().expired(expiry, BATCH).await?;
            if expired.is_empty() {
                break;
            }
            let versions = expired.iter().map(|task| (task.id, task.version)).collect();
            let dossiers = self.tasks.store().dossiers(expired).await?;
            files.extend(self.archive(&dossiers).await?.map(|pointer| pointer.key));
            // Only what has completed has artefacts, and that never changes again.
            self.remove_artefacts(&dossiers).await?;
            let gone = self.tasks.store().remove(versions).await?;
            removed += gone;
            context.progress(50, format!("Removed {removed} tasks"));
            if gone == 0 {
                break;
            }
        }
        let floor = self.ago(input.events_days.unwrap_or(self.retention.events_days));
        while !context.is_stopping() {
            let swept = self.tasks.store().sweep_history(floor, EVENTS).await?;
            events += swept;
            if swept < EVENTS {
                break;
            }
            context.progress(75, format!("Removed {events} events"));
        }
        Ok(json!({ "tasks_removed": removed, "events_removed": events, "archives": files }))
    }
}

/// A line of JSON for each, compressed.
fn packed(dossiers: &[Dossier]) -> std::io::Result<Vec<u8>> {
    let mut lines = zstd::Encoder::new(Vec::new(), 3)?;
    for dossier in dossiers {
        serde_json::to_writer(&mut lines, dossier)?;
        lines.write_all(b"\n")?;
    }
    lines.finish()
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
