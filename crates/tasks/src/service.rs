//! The tasks as everyone else sees them: create, look, cancel, retry, and the workers' verbs.
//!
//! Each verb reads, lets the machine decide, and writes under a guard; if the task changed in
//! between it starts over, unless the caller named the version it had seen. Wake-ups and
//! messages follow the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use lavra_db::{Database, Leases, key_as_said};
use serde_json::Value;

use crate::backoff::Backoff;
use crate::bell::{Bell, Ears};
use crate::create::{NewTask, TypePolicy, check_kind};
use crate::error::{Error, Result};
use crate::handler::{Policy, Registry};
use crate::machine::{Happening, Snapshot, next};
use crate::model::{Claimed, Event, OutboxId, ProcessId, Status, Task, TaskId, TaskResult, Token};
use crate::rabbit::Broker;
use crate::store::{
    Along, Announcement, Claim, DeadLetter, Guard, Lost, Made, NewRow, Process, Store, Write,
    Written,
};
use crate::wake::Waker;

/// How long the worker of a cancelled task has to confirm that it stopped.
pub const STOP_WITHIN: Duration = Duration::from_secs(30);
const RACES: usize = 16;
/// Tasks of dead processes that are looked at.
const LEFT_BEHIND: usize = 500;
/// Dead letters that are read at once.
const LETTERS: usize = 500;
/// How long a claim's answer may be under way before the task counts as gone astray.
const STRAY_AFTER: Duration = Duration::from_secs(5);

/// The verbs, for one database.
#[derive(Clone, Debug)]
pub struct Tasks {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    leases: Leases,
    bell: Bell,
    broker: Option<Broker>,
    backoff: Backoff,
    policies: BTreeMap<String, Policy>,
    known: RwLock<BTreeSet<String>>,
}

/// What the service is made of, beside the database.
#[derive(Debug, Default)]
pub struct Settings {
    pub broker: Option<Broker>,
    pub backoff: Backoff,
    /// How the types of `lavra.toml` and of the handlers are treated.
    pub policies: BTreeMap<String, Policy>,
}

impl Settings {
    /// Takes over the types of a registry.
    #[must_use]
    pub fn knowing(mut self, registry: &Registry) -> Self {
        self.policies.extend(registry.policies().map(|(kind, policy)| (kind.to_owned(), policy)));
        self
    }
}

/// What became of many dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redriven {
    pub done: usize,
    pub refused: usize,
    /// Of the first that was refused.
    pub why: Option<String>,
}

/// What a creation answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    pub id: TaskId,
    /// False when an earlier task answers for this request.
    pub new: bool,
}

impl Tasks {
    /// Makes the types of the settings known to all. Must be called in a runtime.
    pub async fn open(database: &Database, settings: Settings) -> Result<Self> {
        let store = crate::store(database).await?;
        let inner = Inner {
            leases: Leases::new(database.clone()),
            bell: Bell::new(database),
            broker: settings.broker,
            backoff: settings.backoff,
            known: RwLock::default(),
            policies: settings.policies,
            store,
        };
        let tasks = Self { inner: Arc::new(inner) };
        let kinds: Vec<String> = tasks.inner.policies.keys().cloned().collect();
        kinds.iter().try_for_each(|kind| check_kind(kind))?;
        tasks.declare(kinds).await?;
        Ok(tasks)
    }

    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    pub fn leases(&self) -> &Leases {
        &self.inner.leases
    }

    pub fn broker(&self) -> Option<&Broker> {
        self.inner.broker.as_ref()
    }

    pub fn backoff(&self) -> &Backoff {
        &self.inner.backoff
    }

    pub fn now(&self) -> Timestamp {
        self.store().clock().now()
    }

    pub(crate) fn announces(&self) -> bool {
        self.inner.broker.is_some()
    }

    /// Rings once for something that went back to the queue and may be taken at once.
    pub(crate) fn wake_if_waiting(&self, statuses: &[Status]) {
        if statuses.contains(&Status::Pending) {
            self.inner.bell.work();
        }
    }

    pub(crate) fn waker(&self, kinds: &[String]) -> Waker {
        let inbox = self.inner.broker.as_ref().map(|broker| broker.inbox(kinds));
        Waker::new(self.inner.bell.clone(), inbox)
    }

    pub(crate) fn cancels(&self) -> Ears {
        self.inner.bell.on_cancel()
    }

    /// Rings when tasks are created or go back to the queue, here or (where it is known to be
    /// heard) elsewhere: a hint for those who follow events.
    pub fn changes(&self) -> Ears {
        self.inner.bell.on_work()
    }

    // ---- creation ----

    /// Makes one task.
    pub async fn create(&self, task: NewTask) -> Result<Created> {
        let created = self.create_all(vec![task]).await.map_err(Error::of_the_only_one)?;
        created.into_iter().next().ok_or_else(|| Error::Invalid("nothing was created".into()))
    }

    /// Makes tasks in one transaction; if any request is wrong, none is made, and the error says
    /// which one it is.
    pub async fn create_all(&self, requests: Vec<NewTask>) -> Result<Vec<Created>> {
        let mut rows: Vec<NewRow> = Vec::with_capacity(requests.len());
        for (index, request) in requests.into_iter().enumerate() {
            let row = self.checked(request).await.map_err(|error| error.of_request(index))?;
            rows.push(row);
        }
        let keys: Vec<Option<String>> =
            rows.iter().map(|row| Some(row.key.as_ref()?.key.clone())).collect();
        let brief: Vec<_> = rows
            .iter()
            .map(|row| (row.id, OutboxId(row.event.0), row.kind.clone(), row.delay.is_none()))
            .collect();
        let ring = self.inner.bell.rings_with_commit();
        let made = self
            .store()
            .create(rows, Along { announce: self.inner.broker.as_ref().map(Broker::lease), ring })
            .await
            .map_err(|error| about_its_request(error, &keys))?;
        let mut created = Vec::with_capacity(made.len());
        let mut announcements = Vec::new();
        for ((id, outbox, kind, now), made) in brief.into_iter().zip(made) {
            created.push(match made {
                Made::New => {
                    if now {
                        announcements.push(Announcement { id: outbox, task: id, kind });
                    }
                    Created { id, new: true }
                }
                Made::Existing(existing) => Created { id: existing, new: false },
            });
        }
        if !announcements.is_empty() {
            if ring {
                self.inner.bell.work_here();
            } else {
                self.inner.bell.work();
            }
            if let Some(broker) = &self.inner.broker {
                broker.publish(announcements);
            }
        }
        Ok(created)
    }

    async fn checked(&self, request: NewTask) -> Result<NewRow> {
        let policy = self.policy_for_new(&request.kind).await?;
        request.into_row(policy, self.store().clock())
    }

    /// A row for a request of the system itself; its type is known.
    pub(crate) fn row(&self, request: NewTask) -> Result<NewRow> {
        let policy = self.inner.policies.get(&request.kind).copied().unwrap_or_default();
        let policy = TypePolicy {
            max_retries: policy.max_retries,
            may_be_idempotent: policy.may_be_idempotent,
        };
        request.into_row(policy, self.store().clock())
    }

    pub(crate) fn ring(&self) {
        self.inner.bell.work();
    }

    /// What is known of a type of which a task is asked for; it must be known.
    pub(crate) async fn policy_for_new(&self, kind: &str) -> Result<TypePolicy> {
        check_kind(kind)?;
        if !self.knows(kind) {
            // Another process may have declared it since.
            self.refresh_types().await?;
            if !self.knows(kind) {
                let known = self.known();
                let known = if known.is_empty() { "none yet".into() } else { known.join(", ") };
                return Err(Error::UnknownType { kind: kind.to_owned(), known });
            }
        }
        let policy = self.inner.policies.get(kind).copied().unwrap_or_default();
        Ok(TypePolicy {
            max_retries: policy.max_retries,
            may_be_idempotent: policy.may_be_idempotent,
        })
    }

    /// Makes types known to every process of this database.
    pub async fn declare(&self, kinds: Vec<String>) -> Result<()> {
        kinds.iter().try_for_each(|kind| check_kind(kind))?;
        if kinds.iter().any(|kind| !self.knows(kind)) {
            self.store().declare(kinds).await?;
            self.refresh_types().await?;
        }
        Ok(())
    }

    async fn refresh_types(&self) -> Result<()> {
        let declared = self.store().declared().await?;
        let mut known = self.inner.known.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(declared);
        Ok(())
    }

    fn knows(&self, kind: &str) -> bool {
        self.inner.known.read().unwrap_or_else(PoisonError::into_inner).contains(kind)
    }

    pub fn known(&self) -> Vec<String> {
        let known = self.inner.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().cloned().collect()
    }

    // ---- looking ----

    pub async fn task(&self, id: TaskId) -> Result<Task> {
        self.store().task(id).await?.ok_or(Error::NoSuchTask(id))
    }

    pub async fn input(&self, id: TaskId) -> Result<Value> {
        self.store().input(id).await?.ok_or(Error::NoSuchTask(id))
    }

    pub async fn result(&self, id: TaskId) -> Result<TaskResult> {
        let task = self.task(id).await?;
        self.store().result(task.id).await?.ok_or(Error::NoResult(id))
    }

    /// The newest events of a task, newest first.
    pub async fn events(&self, id: TaskId, limit: usize) -> Result<Vec<Event>> {
        let task = self.task(id).await?;
        self.store().newest_events(task.id, limit).await
    }

    // ---- a person's verbs ----

    pub async fn cancel(&self, id: TaskId, version: Option<i32>) -> Result<Task> {
        let happening = Happening::Cancel { stop_within: STOP_WITHIN };
        let task = self.change(id, version, &happening).await?;
        self.inner.bell.cancel();
        Ok(task)
    }

    pub async fn retry(&self, id: TaskId, version: Option<i32>) -> Result<Task> {
        let task = self.change(id, version, &Happening::Retry).await?;
        self.inner.bell.work();
        Ok(task)
    }

    /// Decides on the task as it is and writes under its version, again if it moved meanwhile.
    async fn change(
        &self,
        id: TaskId,
        version: Option<i32>,
        happening: &Happening,
    ) -> Result<Task> {
        for _ in 0..RACES {
            let task = self.task(id).await?;
            if let Some(expected) = version.filter(|expected| *expected != task.version) {
                return Err(Error::VersionMismatch { expected, actual: task.version });
            }
            if self.apply(&task, happening).await? {
                return self.task(id).await;
            }
        }
        Err(Error::Invalid("the task changes too fast; try again".into()))
    }

    /// Writes what the machine decides for `task` as it was read; false if it moved since.
    pub(crate) async fn apply(&self, task: &Task, happening: &Happening) -> Result<bool> {
        let next = next(&Snapshot::from(task), happening, self.now())?;
        let guard =
            Guard { status: task.status, token: Some(task.token), version: Some(task.version) };
        let write = Write {
            id: task.id,
            guard,
            steps: Vec::new(),
            next,
            metadata: None,
            result: None,
            announce: self.announces(),
        };
        let written = self.store().write(vec![write]).await?;
        Ok(matches!(written.first(), Some(Written::Applied { .. })))
    }

    /// Puts a dead letter's task back into the queue; a letter without a task cannot be driven.
    pub async fn redrive(&self, letter: &DeadLetter) -> Result<Task> {
        let Some(id) = letter.task_id else {
            return Err(Error::Invalid(
                "this dead letter names no task, so there is nothing to run again: read its body, \
                 then delete it"
                    .into(),
            ));
        };
        let task = self.retry(id, None).await?;
        self.store().remove_dead_letter(letter.id).await?;
        Ok(task)
    }

    /// Puts the tasks of dead letters back into the queue, the newest first, each by itself; letters
    /// that name no task are left. No more than `most`; a second call goes on.
    pub async fn redrive_all(&self, most: usize) -> Result<Redriven> {
        let mut redriven = Redriven::default();
        let mut before = None;
        loop {
            let page = self.store().dead_letters(before, LETTERS).await?;
            let named = page.iter().filter(|letter| letter.task_id.is_some());
            for letter in named {
                if redriven.done == most {
                    return Ok(redriven);
                }
                match self.redrive(letter).await {
                    Ok(_) => redriven.done += 1,
                    Err(error @ Error::Database(_)) => return Err(error),
                    Err(error) => {
                        redriven.refused += 1;
                        redriven.why.get_or_insert_with(|| error.to_string());
                    }
                }
            }
            if page.len() < LETTERS {
                return Ok(redriven);
            }
            before = page.last().map(|letter| letter.id);
        }
    }

    /// A message of this task died in the broker: fail the task if it still waits.
    pub(crate) async fn bury(&self, id: TaskId, reason: &str) -> Result<bool> {
        let Some(task) = self.store().task(id).await? else { return Ok(false) };
        if task.status != Status::Pending {
            return Ok(false);
        }
        let reason = format!("its message could not be delivered ({reason})");
        self.apply(&task, &Happening::Bury { reason }).await
    }

    /// The worker of a cancelled attempt has stopped. False if the task is not ours to confirm.
    pub(crate) async fn confirm_stop(&self, id: TaskId, token: Token) -> Result<bool> {
        let Some(task) = self.store().task(id).await? else { return Ok(false) };
        if task.status != Status::Cancelled || task.token != token || task.stop_by.is_none() {
            return Ok(false);
        }
        self.apply(&task, &Happening::ConfirmStop).await
    }

    // ---- the verbs of workers in other languages ----

    /// Renews the process's row; says which of the held tasks are no longer its own, and gives
    /// back those that the store believes it holds and it never heard of.
    pub async fn beat(&self, process: Process, held: Vec<(TaskId, Token)>) -> Result<Vec<Lost>> {
        let id = process.id;
        let known = held.iter().map(|(id, _)| *id).collect();
        let lost = self.store().beat(process, held).await?;
        for task in self.store().strays(id, known, STRAY_AFTER).await? {
            if self.apply(&task, &Happening::Interrupt).await? {
                tracing::warn!(task = %task.id, "a claim whose answer was lost is given back");
                self.ring();
            }
        }
        Ok(lost)
    }

    /// Takes tasks for a worker that speaks HTTP, and makes its types known.
    pub async fn claim(&self, worker: Process, limit: usize) -> Result<Vec<Claimed>> {
        self.declare(worker.kinds.clone()).await?;
        self.store().beat(worker.clone(), Vec::new()).await?;
        self.store().claim(Claim { process: worker.id, kinds: worker.kinds, limit }).await
    }

    /// What `happening` makes of a task that the caller holds by `token`.
    pub async fn report(
        &self,
        id: TaskId,
        token: Token,
        happening: Happening,
        metadata: Option<Value>,
        result: Option<Value>,
    ) -> Result<i32> {
        let detail =
            if let Happening::Step { detail, .. } = &happening { detail.as_ref() } else { None };
        for part in [metadata.as_ref(), result.as_ref(), detail].into_iter().flatten() {
            crate::create::check_text("the report", part)?;
        }
        let task = self.task(id).await?;
        if task.status == Status::Cancelled && task.token == token {
            self.confirm_stop(id, token).await?;
            return Err(Error::Lost(id));
        }
        let ours = task.token == token && task.status == Status::InProgress;
        if !ours {
            return Err(Error::Lost(id));
        }
        let next = next(&Snapshot::from(&task), &happening, self.now())?;
        let requeued = next.status;
        let guard = Guard { status: Status::InProgress, token: Some(token), version: None };
        let announce = self.announces();
        let write = Write { id, guard, steps: Vec::new(), next, metadata, result, announce };
        match self.store().write(vec![write]).await?.first() {
            Some(Written::Applied { version }) => {
                self.wake_if_waiting(&[requeued]);
                Ok(*version)
            }
            Some(Written::Refused) | None => Err(Error::Lost(id)),
        }
    }

    /// Of a kind, a task with this payload that was under way when its process died, ready to be claimed.
    /// Only for who knows that no other process is alive: of a file there is one.
    pub async fn left_behind(&self, kind: &str, payload: &Value) -> Result<Option<TaskId>> {
        for task in self.store().orphans(Duration::ZERO, LEFT_BEHIND).await? {
            if task.kind != kind || self.input(task.id).await? != *payload {
                continue;
            }
            if let Some(process) = task.process {
                self.retire(process).await?;
            }
            let reason = "its process was killed; another goes on with it".to_owned();
            let lost = Happening::Lose { reason, retry_in: Duration::ZERO };
            // Past its retries it has failed.
            if self.apply(&task, &lost).await?
                && self.task(task.id).await?.status == Status::Pending
            {
                return Ok(Some(task.id));
            }
        }
        Ok(None)
    }

    /// Leaves in order: what the process held is free at once.
    pub async fn retire(&self, process: ProcessId) -> Result<()> {
        self.store().retire(process).await
    }
}

/// A store names the key that was used before, as it is kept; the requests are known by their places,
/// and callers know their keys as they wrote them.
fn about_its_request(error: Error, keys: &[Option<String>]) -> Error {
    let Error::KeyReused(kept) = error else { return error };
    let place = keys.iter().position(|known| known.as_ref() == Some(&kept));
    let error = Error::KeyReused(key_as_said(&kept).to_owned());
    match place {
        Some(index) => error.of_request(index),
        None => error,
    }
}
