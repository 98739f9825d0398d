//! Whether workers, proxies and writers answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::Fleet;
use crate::api::{Reply, Trouble, WorkerApi, WriterApi};
use crate::error::Result;
use crate::keys::Keys;
use crate::probe;
use crate::store::Thing;

/// How long something that is tested may take to answer: somebody waits for it.
pub(crate) const LONGEST_TEST: Duration = Duration::from_secs(10);
const LEASE: &str = "fleet-tests";

/// Whether a worker, proxy or writer answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    pub ok: bool,
    pub said: String,
}

impl Fleet {
    /// Asks it whether it is there, and notes the answer.
    pub async fn test(&self, thing: &Thing) -> Result<Tested> {
        let tested = match thing {
            Thing::Worker(id) => {
                let worker = self.worker(id).await?;
                let api = WorkerApi {
                    transport: &*self.transport,
                    worker: &worker,
                    api_key: self.keys.key(thing).await,
                    timeout: self.timing.call.min(LONGEST_TEST),
                };
                told(api.session().await)
            }
            Thing::Writer(id) => {
                let writer = self.writer(id).await?;
                let api = WriterApi {
                    transport: &*self.transport,
                    writer: &writer,
                    api_key: self.keys.key(thing).await,
                    timeout: self.timing.call.min(LONGEST_TEST),
                };
                told(api.health().await)
            }
            Thing::Proxy(id) => {
                let proxy = self.proxy(id).await?;
                let password = self.keys.key(thing).await;
                probe::proxy(&proxy, password.as_ref(), &self.proxy_test_url).await
            }
        };
        self.store.tested(thing, tested.ok).await?;
        Ok(tested)
    }

    /// Tests all that are active.
    pub async fn test_all(&self) -> Result<Vec<(Thing, Tested)>> {
        let workers = self.store.workers().await?.into_iter().filter(|worker| worker.active);
        let proxies = self.store.proxies().await?.into_iter().filter(|proxy| proxy.active);
        let writers = self.store.writers().await?.into_iter().filter(|writer| writer.active);
        let things: Vec<Thing> = workers
            .map(|worker| Thing::Worker(worker.id))
            .chain(proxies.map(|proxy| Thing::Proxy(proxy.id)))
            .chain(writers.map(|writer| Thing::Writer(writer.id)))
            .collect();
        let mut tested = Vec::with_capacity(things.len());
        for thing in things {
            let answer = self.test(&thing).await?;
            tested.push((thing, answer));
        }
        Ok(tested)
    }

    /// Tests all that are active now and then, until `stop`; of several processes one does.
    pub async fn test_now_and_then(self, stop: CancellationToken) {
        let me = self.store.clock().new_id();
        let mut held = None;
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.timing.test_every) => {}
                () = stop.cancelled() => break,
            }
            let term = self.timing.test_every.saturating_mul(2);
            let tested = match self.leases.acquire(LEASE, me, term).await {
                Ok(lease) => {
                    held = lease;
                    if held.is_some() { self.test_all().await.map(|_| ()) } else { Ok(()) }
                }
                Err(error) => Err(error.into()),
            };
            if let Err(error) = tested {
                tracing::warn!(%error, "workers, proxies and writers are not tested");
            }
        }
        if let Some(lease) = held {
            let _expires_anyway = self.leases.release(&lease).await;
        }
    }
}

fn told(reply: Reply) -> Tested {
    match reply {
        Reply::Session(status) => Tested { ok: true, said: format!("{status:?}").to_lowercase() },
        Reply::Trouble(Trouble::Busy { .. }) => Tested { ok: true, said: "busy".into() },
        Reply::Trouble(Trouble::Away { message, .. } | Trouble::Refused { message }) => {
            Tested { ok: false, said: message }
        }
        Reply::Unknown => Tested { ok: false, said: "404: it has no such address".into() },
        _ => Tested { ok: true, said: "healthy".into() },
    }
}
