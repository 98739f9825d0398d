//! Workers, proxies and writers: added, changed, removed and found.

use secrecy::SecretString;
use serde::Deserialize;

use super::fields::{address, domain, host, key, name, port, username};
use super::{Fleet, is_there};
use crate::error::{Error, Result};
use crate::model::{Proxy, ProxyId, Worker, WorkerId, Writer, WriterId};
use crate::store::{Edit, Edited, NewProxy, NewWorker, NewWriter, Thing};

/// A worker or a writer to be added.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub name: String,
    pub url: String,
    pub api_key: SecretString,
    /// Of a worker: where its results are.
    #[serde(default)]
    pub storage_domain: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyOrder {
    pub name: String,
    pub host: String,
    #[serde(default)]
    pub port: Option<i32>,
    #[serde(default)]
    pub username: Option<String>,
    #[serde(default)]
    pub password: Option<SecretString>,
}

/// What a person changes of a worker, a proxy or a writer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Changes {
    pub name: Option<String>,
    pub url: Option<String>,
    pub storage_domain: Option<String>,
    pub host: Option<String>,
    pub port: Option<i32>,
    pub username: Option<String>,
    pub api_key: Option<SecretString>,
    pub password: Option<SecretString>,
    pub active: Option<bool>,
}

impl Fleet {
    pub async fn add_worker(&self, order: Service) -> Result<WorkerId> {
        self.add_worker_as(WorkerId::new(self.store.clock()), order).await
    }

    /// The same under an id of the caller's: once, however often it is asked for.
    pub async fn add_worker_as(&self, id: WorkerId, order: Service) -> Result<WorkerId> {
        if is_there(self.worker(&id).await)? {
            return Ok(id);
        }
        let thing = Thing::Worker(id.clone());
        let storage_domain = order.storage_domain.as_deref().map(domain).transpose()?;
        let new = NewWorker {
            id: id.clone(),
            name: name(&order.name, 100)?,
            url: address(&order.url)?,
            api_key: self.keys.seal(&thing, &key(&order.api_key)?).await?,
            // Where its results are must be known before it has any.
            active: storage_domain.is_some(),
            storage_domain,
        };
        let (name, url) = (new.name.clone(), new.url.clone());
        let added = self.store.add_worker(new).await?;
        self.settle(&thing, added, &name, &url).await?;
        Ok(id)
    }

    pub async fn add_proxy(&self, order: ProxyOrder) -> Result<ProxyId> {
        self.add_proxy_as(ProxyId::new(self.store.clock()), order).await
    }

    /// The same under an id of the caller's: once, however often it is asked for.
    pub async fn add_proxy_as(&self, id: ProxyId, order: ProxyOrder) -> Result<ProxyId> {
        if is_there(self.proxy(&id).await)? {
            return Ok(id);
        }
        let thing = Thing::Proxy(id.clone());
        let mut new = NewProxy {
            id: id.clone(),
            name: name(&order.name, 200)?,
            host: host(&order.host)?,
            port: order.port.map(port).transpose()?,
            username: order.username.as_deref().map(username).transpose()?.flatten(),
            password: None,
            active: true,
        };
        if let Some(password) = &order.password {
            new.password = Some(self.keys.seal(&thing, password).await?);
        }
        let name = new.name.clone();
        let added = self.store.add_proxy(new).await?;
        self.settle(&thing, added, &name, "").await?;
        Ok(id)
    }

    pub async fn add_writer(&self, order: Service) -> Result<WriterId> {
        self.add_writer_as(WriterId::new(self.store.clock()), order).await
    }

    /// The same under an id of the caller's: once, however often it is asked for.
    pub async fn add_writer_as(&self, id: WriterId, order: Service) -> Result<WriterId> {
        if is_there(self.writer(&id).await)? {
            return Ok(id);
        }
        let thing = Thing::Writer(id.clone());
        let new = NewWriter {
            id: id.clone(),
            name: name(&order.name, 100)?,
            url: address(&order.url)?,
            api_key: self.keys.seal(&thing, &key(&order.api_key)?).await?,
            active: true,
        };
        let name = new.name.clone();
        let added = self.store.add_writer(new).await?;
        self.settle(&thing, added, &name, "").await?;
        Ok(id)
    }

    pub async fn change(&self, thing: &Thing, changes: Changes) -> Result<()> {
        if changes.active == Some(true)
            && let Thing::Worker(id) = thing
            && changes.storage_domain.is_none()
            && self.worker(id).await?.storage_domain.is_none()
        {
            let text = "a worker without a storage domain cannot be active: nobody would know \
                        where its results are";
            return Err(Error::Conflict(text.into()));
        }
        let most = if matches!(thing, Thing::Proxy(_)) { 200 } else { 100 };
        let secret = match (&changes.api_key, &changes.password) {
            (Some(secret), _) => Some(key(secret)?),
            (None, Some(secret)) => Some(secret.clone()),
            (None, None) => None,
        };
        let edit = Edit {
            name: changes.name.as_deref().map(|text| name(text, most)).transpose()?,
            url: changes.url.as_deref().map(address).transpose()?,
            storage_domain: changes.storage_domain.as_deref().map(domain).transpose()?,
            host: changes.host.as_deref().map(host).transpose()?,
            port: changes.port.map(port).transpose()?,
            username: changes.username.as_deref().map(username).transpose()?.flatten(),
            secret: None,
            active: changes.active,
        };
        if secret.is_some() {
            self.keys.to_seal()?;
        }
        let (name, url) = (edit.name.clone(), edit.url.clone());
        let mut edited = self.store.edit(thing, edit).await?;
        // One that is refused leaves the secret that was there.
        if let (Some(secret), Edited::Done) = (secret, &edited) {
            edited = self.keys.replace(thing, &secret).await?;
        }
        self.bell.work();
        Self::told(thing, edited, &name.unwrap_or_default(), &url.unwrap_or_default())
    }

    pub async fn remove(&self, thing: &Thing) -> Result<()> {
        let removed = self.store.remove(thing).await?;
        let is_removed = removed == Edited::Done;
        Self::told(thing, removed, "", "")?;
        if is_removed {
            self.keys.remove(thing).await?;
        }
        Ok(())
    }

    async fn settle(&self, thing: &Thing, added: Edited, name: &str, url: &str) -> Result<()> {
        if added != Edited::Done {
            self.keys.remove(thing).await?;
        }
        self.bell.work();
        Self::told(thing, added, name, url)
    }

    fn told(thing: &Thing, edited: Edited, name: &str, url: &str) -> Result<()> {
        let what = thing.kind();
        match edited {
            Edited::Done => Ok(()),
            Edited::NotFound => Err(Error::NotFound { what, id: thing.id().to_owned() }),
            Edited::NameTaken => Err(Error::NameTaken { what, name: name.to_owned() }),
            Edited::UrlTaken => Err(Error::Conflict(format!(
                "another worker has the URL {url}: a worker has one session, and two rows for it \
                 would fight over it"
            ))),
            Edited::InUse(why) => Err(Error::Conflict(format!(
                "this {what} cannot be removed: {why}; deactivate it instead"
            ))),
        }
    }

    pub async fn worker(&self, id: &WorkerId) -> Result<Worker> {
        let found = self.store.workers().await?.into_iter().find(|worker| worker.id == *id);
        found.ok_or_else(|| Error::NotFound { what: "worker", id: id.0.clone() })
    }

    pub async fn proxy(&self, id: &ProxyId) -> Result<Proxy> {
        let found = self.store.proxies().await?.into_iter().find(|proxy| proxy.id == *id);
        found.ok_or_else(|| Error::NotFound { what: "proxy", id: id.0.clone() })
    }

    pub async fn writer(&self, id: &WriterId) -> Result<Writer> {
        let found = self.store.writers().await?.into_iter().find(|writer| writer.id == *id);
        found.ok_or_else(|| Error::NotFound { what: "writer", id: id.0.clone() })
    }

    /// The one that is meant by an id or a name.
    pub async fn find(&self, kind: &str, text: &str) -> Result<Thing> {
        let found = match kind {
            "worker" => {
                let all = self.store.workers().await?;
                let is = |w: &Worker| w.id.0 == text || w.name == text;
                all.into_iter().find(is).map(|worker| Thing::Worker(worker.id))
            }
            "proxy" => {
                let all = self.store.proxies().await?;
                let is = |p: &Proxy| p.id.0 == text || p.name.as_deref() == Some(text);
                all.into_iter().find(is).map(|proxy| Thing::Proxy(proxy.id))
            }
            _ => {
                let all = self.store.writers().await?;
                let is = |w: &Writer| w.id.0 == text || w.name == text;
                all.into_iter().find(is).map(|writer| Thing::Writer(writer.id))
            }
        };
        let what = match kind {
            "worker" => "worker",
            "proxy" => "proxy",
            _ => "writer",
        };
        found.ok_or_else(|| Error::NotFound { what, id: text.to_owned() })
    }
}
