//! What this server remembers of workers between their requests: a heartbeat writes the worker's
//! row anew and need not repeat what the last claim has said.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lavra_tasks::model::ProcessId;
use lavra_tasks::store::Process;

/// How long a worker that is silent is remembered; what it held was taken over long before.
const FORGET: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<HashMap<ProcessId, Known>>);

#[derive(Debug)]
struct Known {
    name: String,
    kinds: Vec<String>,
    seen: Instant,
}

impl Roster {
    fn lock(&self) -> MutexGuard<'_, HashMap<ProcessId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker said who it is.
    pub(super) fn met(&self, worker: &Process, now: Instant) {
        let mut known = self.lock();
        let is_silent = |known: &Known| now.saturating_duration_since(known.seen) > FORGET;
        if known.values().any(is_silent) {
            known.retain(|_, known| !is_silent(known));
        }
        let (name, kinds) = (worker.name.clone(), worker.kinds.clone());
        known.insert(worker.id, Known { name, kinds, seen: now });
    }

    /// The worker as it last said, with other types if it says so now.
    pub(super) fn recall(&self, id: ProcessId, kinds: Option<Vec<String>>) -> Process {
        let known = self.lock();
        let (name, before) = match known.get(&id) {
            Some(known) => (known.name.clone(), known.kinds.clone()),
            None => ("worker".into(), Vec::new()),
        };
        Process { id, name, kinds: kinds.unwrap_or(before) }
    }

    pub(super) fn left(&self, worker: ProcessId) {
        self.lock().remove(&worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_worker_is_remembered_until_it_leaves_or_is_silent_for_long() {
        let (roster, start) = (Roster::default(), Instant::now());
        let [silent, gone, new] = [(); 3].map(|()| ProcessId(Uuid::new_v4()));
        for id in [silent, gone] {
            roster.met(&Process { id, name: "w".into(), kinds: vec!["a".into()] }, start);
        }
        assert_eq!(roster.recall(silent, None).kinds, ["a"]);
        assert_eq!(roster.recall(silent, Some(vec!["b".into()])).kinds, ["b"]);
        roster.left(gone);
        assert_eq!(roster.recall(gone, None).name, "worker");
        roster.met(&roster.recall(new, None), start + Duration::from_secs(601));
        assert_eq!(roster.lock().len(), 1);
    }
}
