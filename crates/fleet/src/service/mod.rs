//! The fleet as people have it: everything that the command line, the API and the page do.

mod fields;
mod missions;
mod test;
mod things;

use std::sync::Arc;

use lavra_db::{Database, Leases};
use lavra_tasks::model::ProcessId;
use serde::{Deserialize, Serialize};

use crate::api::{Http, Transport};
use crate::bell::Bell;
use crate::duckdb::DuckDb;
use crate::error::{Error, Result};
use crate::keys::{KeySource, Sealed};
use crate::model::{Proxy, Worker, Writer};
use crate::orchestrator::Orchestrator;
use crate::postgres::Postgres;
use crate::probe;
use crate::settings::{Adjustable, Timing};
use crate::store::{Control, Counts, Store};

pub use self::missions::{Granted, Made};
pub(crate) use self::test::LONGEST_TEST;
pub use self::test::Tested;
pub use self::things::{Changes, ProxyOrder, Service};

#[derive(Clone, Debug)]
pub struct Fleet {
    pub store: Arc<dyn Store>,
    pub keys: Arc<Sealed>,
    pub bell: Bell,
    pub transport: Arc<dyn Transport>,
    pub timing: Timing,
    /// What is asked for through a proxy to test it.
    pub proxy_test_url: Arc<str>,
    pub(crate) leases: Leases,
}

/// The fleet at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub control: Control,
    pub counts: Counts,
    pub workers: Vec<Worker>,
    pub proxies: Vec<Proxy>,
    pub writers: Vec<Writer>,
    pub settings: Adjustable,
}

impl Fleet {
    /// The fleet of a database that has been migrated; `source` has the key of its secrets. Must be
    /// called in a runtime.
    pub fn open(database: &Database, source: Box<KeySource>, timing: Timing) -> Result<Self> {
        let (store, bell): (Arc<dyn Store>, Bell) = match database {
            Database::Duck(duck) => (Arc::new(DuckDb::new(duck.clone())), Bell::default()),
            Database::Postgres(pg) => (Arc::new(Postgres::new(pg.clone())), Bell::across(pg)),
        };
        let keys = Arc::new(Sealed::new(Arc::clone(&store), source));
        Ok(Self {
            store,
            keys,
            bell,
            transport: Arc::new(Http::new()?),
            timing,
            proxy_test_url: probe::TARGET.into(),
            leases: Leases::new(database.clone()),
        })
    }

    /// The orchestrator of this process.
    pub fn orchestrator(&self) -> Orchestrator {
        let process = ProcessId(self.store.clock().new_id());
        Orchestrator::new(
            Arc::clone(&self.store),
            Arc::clone(&self.transport),
            Arc::clone(&self.keys) as _,
            self.bell.clone(),
            self.timing,
            process,
            process.0.as_u64_pair().1,
        )
    }

    pub async fn status(&self) -> Result<Status> {
        Ok(Status {
            control: self.store.control().await?,
            counts: self.store.counts().await?,
            workers: self.store.workers().await?,
            proxies: self.store.proxies().await?,
            writers: self.store.writers().await?,
            settings: self.store.settings().await?,
        })
    }

    pub async fn set_settings(&self, settings: Adjustable) -> Result<()> {
        self.store.set_settings(settings.check()?).await?;
        self.bell.work();
        Ok(())
    }
}

/// Whether what was looked for is there; trouble in looking is no answer.
fn is_there<T>(found: Result<T>) -> Result<bool> {
    match found {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
