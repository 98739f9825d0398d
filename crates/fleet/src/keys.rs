//! The secrets that calls need: API keys of workers and writers, passwords of proxies.
//!
//! They are sealed in a table of ours; the specification's column has a reference. What someone has put there
//! by SQL as plain text is taken as it is, and sealed at the next start.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lavra_db::Secrets;
use secrecy::SecretString;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::store::{Edit, Edited, Store, Thing};

const REFERENCE: &str = "secret:";
/// How long a secret that was read is kept: one that was changed counts from then on.
const KEPT: Duration = Duration::from_secs(30);

#[async_trait]
pub trait Keys: Send + Sync + Debug {
    /// What a call to this, or through it, has to show.
    async fn key(&self, thing: &Thing) -> Option<SecretString>;
}

/// Nobody has any: for simulations.
#[derive(Debug)]
pub struct NoKeys;

#[async_trait]
impl Keys for NoKeys {
    async fn key(&self, _: &Thing) -> Option<SecretString> {
        None
    }
}

/// Where the key of the seals is found, or made if it may be and there is none.
pub type KeySource = dyn Fn(MayMake) -> Result<Option<Secrets>> + Send + Sync;

/// Whether a key may be made: only where something is to be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayMake {
    Yes,
    No,
}

/// The secrets of a database.
pub struct Sealed {
    store: Arc<dyn Store>,
    secrets: OnceLock<Secrets>,
    source: Box<KeySource>,
    read: Mutex<HashMap<Thing, (Instant, Option<SecretString>)>>,
}

impl Debug for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealed")
    }
}

impl Sealed {
    /// Where `source` has no key, nothing can be sealed or opened.
    pub fn new(store: Arc<dyn Store>, source: Box<KeySource>) -> Self {
        Self { store, secrets: OnceLock::new(), source, read: Mutex::default() }
    }

    fn secrets(&self, may_make: MayMake) -> Result<Option<&Secrets>> {
        if self.secrets.get().is_none()
            && let Some(secrets) = (self.source)(may_make)?
        {
            return Ok(Some(self.secrets.get_or_init(|| secrets)));
        }
        Ok(self.secrets.get())
    }

    /// Where something can be sealed, with a key that is made if there may be one.
    pub fn to_seal(&self) -> Result<&Secrets> {
        self.secrets(MayMake::Yes)?.ok_or_else(|| {
            Error::Invalid(
                "there is no key to seal secrets with: set LAVRA_SECRET_KEY to what \
                 `lavra secret generate-key` prints"
                    .into(),
            )
        })
    }

    /// Where what was sealed can be opened.
    pub fn to_open(&self) -> Result<&Secrets> {
        let secrets = self.secrets(MayMake::No)?;
        secrets.ok_or_else(|| Error::Invalid("LAVRA_SECRET_KEY is not set".into()))
    }

    /// Seals a secret and returns what goes into the column.
    pub async fn seal(&self, thing: &Thing, secret: &SecretString) -> Result<String> {
        let name = name(thing);
        self.to_seal()?.put(&name, secret).await?;
        self.forget(thing);
        Ok(format!("{REFERENCE}{name}"))
    }

    /// Seals another secret of something that is there.
    pub async fn replace(&self, thing: &Thing, secret: &SecretString) -> Result<Edited> {
        let edit = Edit { secret: Some(self.seal(thing, secret).await?), ..Edit::default() };
        self.store.edit(thing, edit).await
    }

    /// Removes the secret of something that is removed.
    pub async fn remove(&self, thing: &Thing) -> Result<()> {
        if let Some(secrets) = self.secrets(MayMake::No)? {
            secrets.remove(&name(thing)).await?;
        }
        self.forget(thing);
        Ok(())
    }

    /// Seals what stands in a column as plain text; says how many there were.
    pub async fn absorb(&self) -> Result<usize> {
        let workers = self.store.workers().await?;
        let proxies = self.store.proxies().await?;
        let writers = self.store.writers().await?;
        let things = workers
            .into_iter()
            .map(|worker| Thing::Worker(worker.id))
            .chain(proxies.into_iter().map(|proxy| Thing::Proxy(proxy.id)))
            .chain(writers.into_iter().map(|writer| Thing::Writer(writer.id)));
        let mut absorbed = 0;
        for thing in things {
            let column = self.store.secret(&thing).await?;
            let Some(plain) = column.filter(|text| !text.starts_with(REFERENCE)) else { continue };
            if plain.is_empty() {
                continue;
            }
            if self.secrets(MayMake::Yes)?.is_none() {
                tracing::warn!("secrets stand in columns as plain text: set LAVRA_SECRET_KEY");
                return Ok(absorbed);
            }
            self.replace(&thing, &plain.into()).await?;
            absorbed += 1;
        }
        Ok(absorbed)
    }

    async fn open(&self, thing: &Thing) -> Result<Option<SecretString>> {
        let Some(column) = self.store.secret(thing).await? else { return Ok(None) };
        match column.strip_prefix(REFERENCE) {
            None if column.is_empty() => Ok(None),
            None => Ok(Some(column.into())),
            Some(name) => Ok(self.to_open()?.get(name).await?),
        }
    }

    fn forget(&self, thing: &Thing) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).remove(thing);
    }
}

#[async_trait]
impl Keys for Sealed {
    async fn key(&self, thing: &Thing) -> Option<SecretString> {
        let known = {
            let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            read.get(thing).filter(|(at, _)| at.elapsed() < KEPT).map(|(_, key)| key.clone())
        };
        if let Some(key) = known {
            return key;
        }
        match self.open(thing).await {
            Ok(key) => {
                let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
                read.insert(thing.clone(), (Instant::now(), key.clone()));
                key
            }
            Err(error) => {
                let (kind, id) = (thing.kind(), thing.id());
                tracing::error!(%error, kind, id, "its secret cannot be read: it is called without");
                None
            }
        }
    }
}

fn name(thing: &Thing) -> String {
    let column = match thing {
        Thing::Worker(_) | Thing::Writer(_) => "api_key",
        Thing::Proxy(_) => "password",
    };
    format!("{}s/{}/{column}", thing.kind().replace("proxy", "proxie"), thing.id())
}
