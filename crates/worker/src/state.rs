//! What a worker knows at a moment: at most one session, and all its jobs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::ask::Way;
use crate::machine::{Event, is_open, next};
use crate::model::{Failure, Job, JobId, SessionId, SessionStatus};
use crate::proxy::{Proxy, SealedProxy};
use crate::scrape::Progress;

/// So many keys of sessions are remembered.
const REMEMBERED: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) session: Option<Session>,
    pub(crate) session_keys: VecDeque<String>,
    pub(crate) jobs: HashMap<JobId, Entry>,
    pub(crate) by_key: HashMap<String, JobId>,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) proxy: Proxy,
    pub(crate) status: SessionStatus,
    pub(crate) failure: Option<Failure>,
    /// `None` when it has ended: no connection to the proxy is kept.
    pub(crate) way: Option<Way>,
    pub(crate) job: Option<JobId>,
    /// Ends everything that is under way on it.
    pub(crate) end: CancellationToken,
    /// When someone last asked for something of it.
    pub(crate) used: Instant,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) job: Job,
    pub(crate) progress: Arc<Progress>,
    /// Stops it.
    pub(crate) end: CancellationToken,
}

impl Entry {
    pub(crate) fn new(job: Job, end: CancellationToken) -> Self {
        Self { job, progress: Arc::default(), end }
    }
}

/// `session.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SessionFile {
    /// The session that stands.
    pub(crate) session: Option<StoredSession>,
    pub(crate) keys: VecDeque<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredSession {
    pub(crate) id: SessionId,
    pub(crate) proxy: SealedProxy,
}

impl State {
    /// Something happens to a session; to one that is not there any more nothing can. Says whether
    /// it did.
    pub(crate) fn happens(
        &mut self,
        id: SessionId,
        event: Event,
        failure: Option<&Failure>,
    ) -> bool {
        let Some(session) = self.session.as_mut().filter(|session| session.id == id) else {
            return false;
        };
        let Some(status) = next(session.status, event) else { return false };
        tracing::info!(session = %id, from = ?session.status, to = ?status, "the session");
        session.status = status;
        // What a job failed by is the job's, as long as the session stands.
        session.failure =
            if is_open(status) { None } else { failure.cloned().or(session.failure.take()) };
        true
    }

    /// The keys of sessions with one more.
    pub(crate) fn keys_with(&self, key: Option<String>) -> VecDeque<String> {
        let mut keys = self.session_keys.clone();
        keys.extend(key);
        let too_many = keys.len().saturating_sub(REMEMBERED);
        keys.drain(..too_many);
        keys
    }

    pub(crate) fn insert(&mut self, entry: Entry) {
        if let Some(key) = &entry.job.idempotency_key {
            self.by_key.insert(key.clone(), entry.job.id.clone());
        }
        self.jobs.insert(entry.job.id.clone(), entry);
    }
}
