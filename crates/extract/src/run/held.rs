//! What a run holds: tasks that it has claimed, and what it writes of them, each time with their token.

use std::sync::PoisonError;

use lavra_tasks::model::Token;
use tokio::time::Instant;

use super::Run;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::machine::{Happening, Next, next};
use crate::model::{Extraction, Status};
use crate::sink::persist;
use crate::store::{Change, Held, Write, Written};

impl Run {
    /// Takes a task for this process, if nobody else was faster.
    pub(super) async fn claim(
        &self,
        task: Extraction,
        happening: Happening,
        begun: bool,
    ) -> Result<Option<Extraction>> {
        // Whoever held it is dead: it goes on from where it was left.
        let task = match (&happening, task.status) {
            (Happening::ClaimedToDiscover, Status::Discovering) => {
                let back = next(&task, Happening::GivenBack { reason: None }, self.now())?;
                after(task, &back)
            }
            _ => task,
        };
        if task.status == Status::Partial && happening == Happening::ClaimedToDiscover {
            let write = write(&task, change(next_of(&task), Held::Nobody));
            persist(self.store(), vec![write]).await?;
            return Ok(None);
        }
        tokio::select! {
            () = self.extractor.pulse.regained() => {}
            () = self.extractor.stop.cancelled() => return Ok(None),
        }
        let next = next(&task, happening, self.now())?;
        let held = Held::Claimed { by: self.extractor.process, begun };
        let (begun, before) = (Instant::now(), task.token);
        let token = self.take(write(&task, change(next.clone(), held))).await?;
        self.lose(before);
        Ok(token.map(|token| {
            self.claimed.lock().unwrap_or_else(PoisonError::into_inner).insert(token, begun);
            with_token(after(task, &next), token)
        }))
    }

    fn has_claimed(&self, token: Token) -> bool {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&token)
    }

    /// Whether nobody else can have what was claimed with this token.
    pub(super) fn holds(&self, token: Token) -> bool {
        let claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.get(&token).is_some_and(|at| self.extractor.pulse.is_unbroken_since(*at))
    }

    /// Asks for nothing more of what was claimed with this token.
    pub(super) fn lose(&self, token: Token) {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).remove(&token);
    }

    /// Writes a claim. One that was heard though its answer was lost cannot be written again: the
    /// task has its new token by then, and must not be taken for another's.
    async fn take(&self, claim: Write) -> Result<Option<Token>> {
        let id = claim.task.clone();
        let (written, is_certain) = match self.store().write(vec![claim.clone()]).await {
            Err(Error::Database(error)) if error.is_transient() => {
                tracing::warn!(%error, task = %id, "whether the task was claimed is not known");
                (persist(self.store(), vec![claim]).await?, false)
            }
            answer => (answer?, true),
        };
        match written.first() {
            Some(Written::Applied { token }) => return Ok(Some(*token)),
            Some(Written::Lost) | None if is_certain => return Ok(None),
            Some(Written::Lost) | None => {}
        }
        let row = self.store().task(&id).await?;
        Ok(row.filter(|row| row.process == Some(self.extractor.process)).map(|row| row.token))
    }

    /// Writes what happened to a task that this process holds. `None` when it does not any more.
    pub(super) async fn change(
        &self,
        task: Extraction,
        happening: Happening,
        fill: impl FnOnce(&mut Write),
    ) -> Result<Option<Extraction>> {
        let next = next(&task, happening, self.now())?;
        let held = match next.status {
            Status::Discovering | Status::Fetching => Held::Same,
            Status::Pending | Status::Partial | Status::Complete | Status::Failed => Held::Nobody,
        };
        let mut write = write(&task, change(next.clone(), held));
        fill(&mut write);
        match persist(self.store(), vec![write]).await?.first() {
            Some(Written::Applied { .. }) => Ok(Some(after(task, &next))),
            Some(Written::Lost) | None => {
                self.tell(Event::TaskLost { task: task.task_id });
                Ok(None)
            }
        }
    }

    /// What this run still holds when it ends is partial: nobody is at work on it.
    pub(super) async fn give_back(&self) -> Result<()> {
        let mut writes = Vec::new();
        for task in self.store().tasks(&self.scope).await? {
            let is_begun = matches!(task.status, Status::Discovering | Status::Fetching);
            if is_begun && self.has_claimed(task.token) {
                let next = next(&task, Happening::GivenBack { reason: None }, self.now())?;
                writes.push(write(&task, change(next, Held::Nobody)));
            }
        }
        if !writes.is_empty() {
            persist(self.store(), writes).await?;
        }
        Ok(())
    }
}

pub(super) fn change(next: Next, held: Held) -> Change {
    Change { next, held, totals: None, windows: None, missing: None }
}

pub(super) fn write(task: &Extraction, change: Change) -> Write {
    let change = Some(change);
    Write { task: task.task_id.clone(), token: task.token, change, arrivals: Vec::new() }
}

/// The row as it is.
fn next_of(task: &Extraction) -> Next {
    Next {
        status: task.status,
        attempts: task.attempts,
        failing_since: task.failing_since,
        next_attempt_at: task.next_attempt_at,
        discoveries: task.discoveries,
        generation: task.generation,
        is_final: task.is_final,
        verdict: task.verdict.clone(),
        last_error: task.last_error.clone(),
    }
}

/// The row as it is afterwards.
pub(super) fn after(task: Extraction, next: &Next) -> Extraction {
    Extraction {
        status: next.status,
        attempts: next.attempts,
        failing_since: next.failing_since,
        next_attempt_at: next.next_attempt_at,
        discoveries: next.discoveries,
        generation: next.generation,
        is_final: next.is_final,
        verdict: next.verdict.clone(),
        last_error: next.last_error.clone(),
        ..task
    }
}

fn with_token(task: Extraction, token: Token) -> Extraction {
    Extraction { token, ..task }
}
