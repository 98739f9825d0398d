//! What this server remembers of workers between their requests.
//!
//! An answer to a claim can get lost on its way: the tasks in it are then held by a worker that
//! lives and does not know of them. A heartbeat names all that a worker holds, so what it was
//! given a while ago and has never spoken of can be given back.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lavra_tasks::model::{Claimed, ProcessId, TaskId, Token};
use lavra_tasks::store::Process;

/// How long a worker has before it must have spoken of a task.
const UNHEARD: Duration = Duration::from_secs(10);
/// How long a worker that is silent is remembered; what it held was taken over long before.
const FORGET: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<Workers>);

#[derive(Debug, Default)]
struct Workers {
    known: HashMap<ProcessId, Worker>,
    /// Who was given what has not been spoken of.
    given_to: HashMap<TaskId, ProcessId>,
}

#[derive(Debug)]
struct Worker {
    name: String,
    kinds: Vec<String>,
    unheard: HashMap<TaskId, (Token, Instant)>,
    seen: Instant,
}

impl Roster {
    fn lock(&self) -> MutexGuard<'_, Workers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker was given tasks.
    pub(super) fn gave(&self, worker: &Process, claimed: &[Claimed], now: Instant) {
        let mut workers = self.lock();
        workers.forget_the_silent(now);
        workers.given_to.extend(claimed.iter().map(|task| (task.id, worker.id)));
        let known = workers.meet(worker, now);
        known.unheard.extend(claimed.iter().map(|task| (task.id, (task.token, now))));
    }

    /// Somebody who knows the task spoke of it.
    pub(super) fn heard_of(&self, task: TaskId) {
        let mut workers = self.lock();
        if let Some(worker) = workers.given_to.remove(&task)
            && let Some(worker) = workers.known.get_mut(&worker)
        {
            worker.unheard.remove(&task);
        }
    }

    /// The name and types under which a worker has claimed.
    pub(super) fn remembered(&self, worker: ProcessId) -> Option<(String, Vec<String>)> {
        let workers = self.lock();
        workers.known.get(&worker).map(|known| (known.name.clone(), known.kinds.clone()))
    }

    /// A worker named all that it holds; what it should have named by now is returned.
    pub(super) fn named(
        &self,
        worker: &Process,
        held: &[(TaskId, Token)],
        now: Instant,
    ) -> Vec<(TaskId, Token)> {
        for (task, _) in held {
            self.heard_of(*task);
        }
        let mut workers = self.lock();
        let known = workers.meet(worker, now);
        let overdue: Vec<(TaskId, Token)> = known
            .unheard
            .iter()
            .filter(|(_, (_, since))| now.saturating_duration_since(*since) >= UNHEARD)
            .map(|(task, (token, _))| (*task, *token))
            .collect();
        for (task, _) in &overdue {
            known.unheard.remove(task);
        }
        for (task, _) in &overdue {
            workers.given_to.remove(task);
        }
        overdue
    }

    pub(super) fn left(&self, worker: ProcessId) {
        self.lock().forget(worker);
    }
}

impl Workers {
    fn meet(&mut self, worker: &Process, now: Instant) -> &mut Worker {
        let known = self.known.entry(worker.id).or_insert_with(|| Worker {
            name: String::new(),
            kinds: Vec::new(),
            unheard: HashMap::new(),
            seen: now,
        });
        known.name.clone_from(&worker.name);
        known.kinds.clone_from(&worker.kinds);
        known.seen = now;
        known
    }

    fn forget(&mut self, worker: ProcessId) {
        for task in self.known.remove(&worker).into_iter().flat_map(|known| known.unheard) {
            self.given_to.remove(&task.0);
        }
    }

    fn forget_the_silent(&mut self, now: Instant) {
        let is_silent = |known: &Worker| now.saturating_duration_since(known.seen) > FORGET;
        let silent: Vec<ProcessId> =
            self.known.iter().filter(|(_, known)| is_silent(known)).map(|(id, _)| *id).collect();
        for worker in silent {
            self.forget(worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use uuid::Uuid;

    fn worker() -> Process {
        Process { id: ProcessId(Uuid::new_v4()), name: "w".into(), kinds: vec!["a".into()] }
    }

    fn task(token: Token) -> Claimed {
        Claimed {
            id: TaskId(Uuid::new_v4()),
            kind: "a".into(),
            payload: RawValue::from_string("1".into()).unwrap(),
            metadata: serde_json::json!({}),
            priority: 1,
            attempts: 1,
            retry_count: 0,
            max_retries: 3,
            token,
            version: 1,
            created_at: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn what_a_worker_never_names_is_given_back_once() {
        let (roster, worker, start) = (Roster::default(), worker(), Instant::now());
        let (kept, ended, lost) = (task(1), task(2), task(3));
        roster.gave(&worker, &[kept.clone(), ended.clone(), lost.clone()], start);
        roster.heard_of(ended.id);
        let held = [(kept.id, kept.token)];
        assert!(roster.named(&worker, &held, start + Duration::from_secs(9)).is_empty());
        let late = start + Duration::from_secs(11);
        assert_eq!(roster.named(&worker, &held, late), [(lost.id, lost.token)]);
        assert!(roster.named(&worker, &held, late).is_empty());
    }

    #[test]
    fn silent_workers_and_those_that_left_are_forgotten() {
        let (roster, silent, gone, start) = (Roster::default(), worker(), worker(), Instant::now());
        roster.gave(&silent, &[task(1)], start);
        roster.gave(&gone, &[task(2)], start);
        roster.left(gone.id);
        roster.gave(&worker(), &[], start + Duration::from_secs(601));
        let workers = roster.lock();
        assert_eq!((workers.known.len(), workers.given_to.len()), (1, 0));
    }
}
