//! A worker: its beginning, what it finds from before, and its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lavra_db::Keyring;
use lavra_db::door::Door;
use lavra_extract::client::Client;
use lavra_extract::source::{Endpoint, Source};
use lavra_tasks::Artefacts;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ask::Way;
use crate::config::{Config, Timing};
use crate::disk::{Disk, Lock, get_json};
use crate::error::{Error, Result};
use crate::jobs::End;
use crate::model::{Blame, Code, Failure, Job, JobId, JobStatus, SessionId, SessionStatus};
use crate::proxy::Proxy;
use crate::scrape::left;
use crate::state::{Entry, Session, SessionFile, State, StoredSession};

/// Clones are the same worker.
#[derive(Clone, Debug)]
pub struct Worker {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) source: Source,
    pub(crate) endpoint: Endpoint,
    pub(crate) timing: Timing,
    pub(crate) disk: Disk,
    _lock: Lock,
    pub(crate) keyring: Keyring,
    pub(crate) bucket: Option<Artefacts>,
    pub(crate) door: Arc<Door>,
    /// Looked at and changed in a moment.
    pub(crate) state: Mutex<State>,
    /// One change at a time: first the file, then the state, then what follows from it.
    pub(crate) changes: tokio::sync::Mutex<()>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Worker {
    /// Takes the data directory, and goes on with what was under way when the last worker left it.
    pub async fn open(config: Config) -> Result<Self> {
        let Config { data, api_key, source, endpoint, storage, timing } = config;
        let named = |wanted: &str| source.endpoints.iter().find(|known| known.name == wanted);
        let endpoint = match &endpoint {
            Some(wanted) => named(wanted).ok_or_else(|| {
                let known: Vec<&str> = source.endpoints.iter().map(|e| e.name.as_str()).collect();
                Error::Invalid(format!("there is no endpoint {wanted}: {}", known.join(", ")))
            })?,
            None => source.endpoints.first().ok_or_else(|| {
                Error::Invalid(format!("the source {} has no endpoint", source.name))
            })?,
        };
        let endpoint = endpoint.clone();
        if let Some(place) = storage.as_deref().filter(|place| !place.starts_with("s3://")) {
            return Err(Error::Invalid(format!(
                "{place} is no bucket: results go to s3://bucket/below, or are served from the \
                 data directory"
            )));
        }
        let bucket = storage.as_deref().map(Artefacts::open).transpose()?;
        let (disk, lock) = Disk::open(&data)?;
        let keyring = disk.keyring()?;
        let inner = Inner {
            source,
            endpoint,
            timing,
            disk,
            _lock: lock,
            keyring,
            bucket,
            door: Arc::new(Door::new(api_key.as_ref())),
            state: Mutex::default(),
            changes: tokio::sync::Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let worker = Self { inner: Arc::new(inner) };
        worker.recover().await;
        worker.keep();
        Ok(worker)
    }

    pub(crate) fn way(&self, proxy: &Proxy) -> std::result::Result<Way, String> {
        let Inner { source, timing, .. } = &*self.inner;
        let through =
            proxy.for_client().map_err(|_| "the proxy cannot be used as it is written")?;
        let client = Client::through(source, through).map_err(|error| error.to_string())?;
        Ok(Way::new(Arc::new(client), source.limits.in_flight, *timing))
    }

    /// What the last worker left: its session stands again, and its job goes on under its id.
    async fn recover(&self) {
        let inner = &self.inner;
        let file: SessionFile = get_json(&inner.disk.session()).unwrap_or_default();
        let jobs: Vec<Job> = std::fs::read_dir(inner.disk.jobs())
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let id = JobId::of(entry.ok()?.file_name().to_str()?);
                get_json(&inner.disk.job_file(&id))
            })
            .collect();
        let session = file.session.map(|stored| (stored.id, self.stand_again(stored)));
        let mut open = Vec::new();
        {
            let mut state = inner.state.lock();
            state.session_keys = file.keys;
            for mut job in jobs {
                if !job.status.is_over() {
                    job.status = JobStatus::Queued;
                    open.push((job.id.clone(), job.session));
                }
                state.insert(Entry::new(job, CancellationToken::new()));
            }
        }
        match session {
            None => {}
            Some((id, Err(reason))) => {
                tracing::warn!(session = %id, reason, "the session cannot be taken up again");
            }
            Some((id, Ok(session))) => self.go_on(id, session, &mut open),
        }
        for (id, _) in open {
            let found = left(&inner.source, &inner.endpoint, &inner.disk.pages(&id));
            if let Some(entry) = inner.state.lock().jobs.get(&id) {
                entry.progress.ads.store(found, Ordering::Relaxed);
            }
            let failure = Failure {
                error_code: Code::Error100,
                blame: Blame::Worker,
                error_message: "the worker was restarted, and the session was gone".into(),
            };
            self.finish(&id, End::Failed(failure, None)).await;
        }
    }

    /// The session's job, if it has one, is taken from `open` and goes on.
    fn go_on(&self, id: SessionId, mut session: Session, open: &mut Vec<(JobId, SessionId)>) {
        let own = open.iter().position(|(_, of)| *of == id).map(|place| open.remove(place));
        let (proxy, end) = (session.proxy.clone(), session.end.clone());
        match own {
            None => {
                self.inner.state.lock().session = Some(session);
                self.spawn_opening(id, proxy, end);
            }
            Some((job, _)) => {
                tracing::info!(session = %id, %job, "going on with a job of before");
                session.status = SessionStatus::Scraping;
                session.job = Some(job.clone());
                let way = session.way.clone();
                self.inner.state.lock().session = Some(session);
                if let Some(way) = way {
                    self.spawn_job(&job, id, way, &end);
                }
            }
        }
    }

    fn stand_again(&self, stored: StoredSession) -> std::result::Result<Session, String> {
        let StoredSession { id, proxy } = stored;
        self.session(id, proxy.open(&self.inner.keyring, &id.to_string())?)
    }

    pub(crate) fn session(
        &self,
        id: SessionId,
        proxy: Proxy,
    ) -> std::result::Result<Session, String> {
        Ok(Session {
            id,
            way: Some(self.way(&proxy)?),
            proxy,
            status: SessionStatus::Initializing,
            failure: None,
            job: None,
            end: self.inner.stop.child_token(),
            used: Instant::now(),
        })
    }

    /// Stops what runs, which the next worker on this directory goes on with, and waits for it.
    pub async fn drain(&self, grace: Duration) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        if tokio::time::timeout(grace, self.inner.tasks.wait()).await.is_err() {
            tracing::warn!("something was still under way at the shutdown, and was left");
        }
    }
}
