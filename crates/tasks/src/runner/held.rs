//! The tasks that this process holds: what its heartbeat asks about.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::attempt::{Attempt, Stop};
use crate::model::{TaskId, Token};
use crate::store::Lost;

#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<HashMap<TaskId, Arc<Attempt>>>);

impl Held {
    fn map(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<Attempt>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, attempts: &[Arc<Attempt>]) {
        self.map().extend(attempts.iter().map(|a| (a.task.id, Arc::clone(a))));
    }

    /// A later claim of the same task by this process has another token and stays.
    pub(super) fn remove(&self, id: TaskId, token: Token) {
        let mut map = self.map();
        if map.get(&id).is_some_and(|attempt| attempt.task.token == token) {
            map.remove(&id);
        }
    }

    pub(super) fn list(&self) -> Vec<(TaskId, Token)> {
        self.map().values().map(|attempt| (attempt.task.id, attempt.task.token)).collect()
    }

    pub(super) fn lose(&self, lost: &[Lost]) {
        let map = self.map();
        for Lost { id, token, cancelled } in lost {
            if let Some(attempt) = map.get(id).filter(|attempt| attempt.task.token == *token) {
                attempt.stop(if *cancelled { Stop::Cancelled } else { Stop::Lost });
            }
        }
    }

    pub(super) fn stop_all(&self) {
        self.map().values().for_each(|attempt| attempt.stop(Stop::Shutdown));
    }
}
