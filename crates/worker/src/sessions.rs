//! Sessions: opened step by step behind a proxy, and ended.

use std::time::Instant;

use lavra_extract::reading::Trouble as Lost;
use tokio_util::sync::CancellationToken;

use crate::ask::{Trouble, Way};
use crate::disk::put_json;
use crate::jobs::End;
use crate::machine::{Event, is_open};
use crate::model::{Blame, Code, Failure, SessionId, SessionStatus};
use crate::plan::Plan;
use crate::proxy::{Proxy, Unreached};
use crate::refusal::Refusal;
use crate::state::{SessionFile, StoredSession};
use crate::wire::OpenSession;
use crate::worker::Worker;

impl Worker {
    /// `POST /session`. The same key opens one session; without `force_refresh` one that is open stays.
    pub(crate) async fn open_session(
        &self,
        order: OpenSession,
        key: Option<String>,
    ) -> Result<(), Refusal> {
        let OpenSession { force_refresh, proxy } = order;
        let _turn = self.inner.changes.lock().await;
        if self.inner.stop.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        {
            let state = self.inner.state.lock();
            let is_known = key.as_ref().is_some_and(|key| state.session_keys.contains(key));
            let stands = state.session.as_ref().is_some_and(|session| is_open(session.status));
            if is_known || (stands && !force_refresh) {
                return Ok(());
            }
        }
        let id = SessionId::new();
        let session = self.session(id, proxy.clone()).map_err(Refusal::Invalid)?;
        self.end_session("another session was opened").await;
        let end = session.end.clone();
        let sealed = proxy
            .seal(&self.inner.keyring, &id.to_string())
            .map_err(|error| Refusal::Internal(error.to_string()))?;
        let keys = self.inner.state.lock().keys_with(key);
        let stored = Some(StoredSession { id, proxy: sealed });
        self.write_session(SessionFile { session: stored, keys: keys.clone() }).await?;
        tracing::info!(session = %id, proxy = proxy.server(), "a session is opened");
        {
            // Not before: who sends the key again after a failure is to get a session.
            let mut state = self.inner.state.lock();
            (state.session, state.session_keys) = (Some(session), keys);
        }
        self.spawn_opening(id, proxy, end);
        Ok(())
    }

    /// `GET /session/status`.
    pub(crate) fn session_status(&self) -> Result<(SessionStatus, Option<Failure>), Refusal> {
        let mut state = self.inner.state.lock();
        let session = state.session.as_mut().ok_or(Refusal::NoSession)?;
        session.used = Instant::now();
        Ok((session.status, session.failure.clone()))
    }

    /// `DELETE /session`. A job that runs on it is cancelled.
    pub(crate) async fn close_session(&self) -> Result<(), Refusal> {
        let _turn = self.inner.changes.lock().await;
        let stands = {
            let state = self.inner.state.lock();
            state.session.as_ref().is_some_and(|it| it.status != SessionStatus::Terminated)
        };
        if !stands {
            return Err(Refusal::NoSession);
        }
        let keys = self.inner.state.lock().session_keys.clone();
        self.write_session(SessionFile { session: None, keys }).await?;
        self.end_session("its session was closed").await;
        Ok(())
    }

    /// Ends what stands, and its job. Only within a change.
    async fn end_session(&self, why: &str) {
        let standing = {
            let state = self.inner.state.lock();
            state.session.as_ref().map(|session| (session.id, session.job.clone()))
        };
        let Some((id, job)) = standing else { return };
        if let Some(job) = job {
            self.finish_within(&job, End::Cancelled(why.to_owned())).await;
        }
        let mut state = self.inner.state.lock();
        state.happens(id, Event::Ended, None);
        if let Some(session) = &mut state.session {
            session.end.cancel();
            session.way = None;
        }
    }

    /// A session that nobody asks about ends by itself.
    pub(crate) async fn end_if_idle(&self) {
        let _turn = self.inner.changes.lock().await;
        let is_idle = self.inner.state.lock().session.as_ref().is_some_and(|session| {
            session.status != SessionStatus::Scraping
                && session.status != SessionStatus::Terminated
                && session.used.elapsed() >= self.inner.timing.idle
        });
        if is_idle {
            tracing::info!("nobody uses the session: it ends");
            let keys = self.inner.state.lock().session_keys.clone();
            if self.write_session(SessionFile { session: None, keys }).await.is_ok() {
                self.end_session("its session ended unused").await;
            }
        }
    }

    async fn write_session(&self, file: SessionFile) -> Result<(), Refusal> {
        let path = self.inner.disk.session();
        let written = tokio::task::spawn_blocking(move || put_json(&path, &file)).await;
        let failed =
            |error: String| Refusal::Internal(format!("the session cannot be stored: {error}"));
        written.map_err(|error| failed(error.to_string()))?.map_err(|e| failed(e.to_string()))
    }

    pub(crate) fn spawn_opening(&self, id: SessionId, proxy: Proxy, end: CancellationToken) {
        let worker = self.clone();
        self.inner.tasks.spawn(async move {
            let opening =
                tokio::time::timeout(worker.inner.timing.session, worker.steps(id, &proxy));
            let opened = tokio::select! {
                () = end.cancelled() => return,
                opened = opening => opened,
            };
            let trouble = match opened {
                Ok(Ok(())) => return,
                Ok(Err(trouble)) => trouble,
                Err(_) => {
                    let limit = worker.inner.timing.session;
                    Trouble::stalled(format!("the session was not ready within {limit:?}"))
                }
            };
            // What fails in another way is no more use than what does not answer.
            let event = trouble.event.unwrap_or(Event::Stalled);
            tracing::warn!(session = %id, reason = trouble.failure.error_message, "no session");
            worker.inner.state.lock().happens(id, event, Some(&trouble.failure));
        });
    }

    /// From accepted to ready.
    async fn steps(&self, id: SessionId, proxy: &Proxy) -> Result<(), Trouble> {
        let way = {
            let state = self.inner.state.lock();
            let session = state.session.as_ref().filter(|session| session.id == id);
            session.and_then(|session| session.way.clone())
        };
        let Some(way) = way else { return Ok(()) };
        let step = |event| self.inner.state.lock().happens(id, event, None);
        let source = &self.inner.source;
        step(Event::ClientMade);
        proxy.reach(source.limits.connect).await.map_err(|unreached| match unreached {
            Unreached::Refused(error) => Trouble::broke(format!("the proxy is not there: {error}")),
            Unreached::Silent => Trouble::stalled("the proxy does not accept connections in time"),
        })?;
        step(Event::ProxyReached);
        let least = Plan::least(source, &self.inner.endpoint);
        knock(&way, &least).await?;
        step(Event::ProxyAdmitted);
        way.ask(&least, 0, 1).await.map_err(|trouble| match trouble.failure.blame {
            // There is no mission yet that could be wrong.
            Blame::Mission => Trouble::new(
                Code::Error102,
                Blame::Nobody,
                format!(
                    "either the proxy is none, or the source is not where it is said to be: {}",
                    trouble.failure.error_message
                ),
            ),
            Blame::Proxy | Blame::Worker | Blame::Storage | Blame::Nobody => trouble,
        })?;
        step(Event::SourceAnswered);
        Ok(())
    }
}

/// One request through the proxy: whatever the source says to it, the proxy has let it pass.
async fn knock(way: &Way, least: &Plan) -> Result<(), Trouble> {
    let url = least.url(0, 1).map_err(Trouble::broke)?;
    match way.client.fetch(&url).await {
        Ok(reply) if reply.status == 407 => {
            Err(Trouble::broke("the proxy does not take the credentials"))
        }
        Ok(_) | Err(Lost::TooLarge { .. }) => Ok(()),
        Err(Lost::Timeout(limit)) => {
            Err(Trouble::stalled(format!("nothing came through the proxy within {limit:?}")))
        }
        Err(Lost::Connection(error)) => Err(Trouble::broke(format!("through the proxy: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, Timing};

    async fn worker(place: &Path) -> Worker {
        let _once = rustls::crypto::ring::default_provider().install_default();
        let config = Config {
            data: place.to_owned(),
            api_key: None,
            source: crate::ads().unwrap(),
            endpoint: None,
            storage: None,
            timing: Timing::default(),
        };
        Worker::open(config).await.unwrap()
    }

    fn order() -> OpenSession {
        let proxy = Proxy::parse("127.0.0.1:9", None, None).unwrap();
        OpenSession { force_refresh: false, proxy }
    }

    #[tokio::test]
    async fn the_key_of_a_session_that_could_not_be_stored_opens_one_later() {
        let place = tempfile::tempdir().unwrap();
        let worker = worker(place.path()).await;
        let in_the_way = crate::disk::unfinished(&worker.inner.disk.session());
        std::fs::create_dir(&in_the_way).unwrap();
        let key = || Some("key-1".to_owned());
        assert!(worker.open_session(order(), key()).await.is_err());
        assert!(worker.session_status().is_err());
        std::fs::remove_dir(&in_the_way).unwrap();
        worker.open_session(order(), key()).await.unwrap();
        assert!(worker.session_status().is_ok());
    }

    /// On one thread: nothing that was begun has had its turn.
    #[tokio::test]
    async fn a_session_that_was_just_accepted_is_initializing() {
        let place = tempfile::tempdir().unwrap();
        let worker = worker(place.path()).await;
        worker.open_session(order(), None).await.unwrap();
        let (status, failure) = worker.session_status().unwrap();
        assert_eq!((status, failure.is_none()), (SessionStatus::Initializing, true));
        assert_eq!(serde_json::to_value(status).unwrap(), "initializing");
    }
}
