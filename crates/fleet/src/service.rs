//! The fleet as people have it: everything that the command line, the API and the page do.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lavra_db::{Database, Leases};
use lavra_tasks::model::ProcessId;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::api::{Http, Reply, Transport, Trouble, WorkerApi, WriterApi};
use crate::bank::{self, Wanted};
use crate::bell::Bell;
use crate::duckdb::DuckDb;
use crate::error::{Error, Result};
use crate::keys::{KeySource, Keys, Sealed};
use crate::machine::mission::{Wish, refusal};
use crate::model::{
    LogEntry, LogId, Mission, MissionId, Proxy, ProxyId, Worker, WorkerId, Writer, WriterId,
};
use crate::orchestrator::Orchestrator;
use crate::postgres::Postgres;
use crate::probe;
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::settings::{Adjustable, Timing};
use crate::store::{
    Control, Counts, Edit, Edited, Filter, LogFilter, NewMission, NewProxy, NewWorker, NewWriter,
    Store, Thing,
};

/// How long something that is tested may take to answer: somebody waits for it.
pub(crate) const LONGEST_TEST: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Fleet {
    pub store: Arc<dyn Store>,
    pub keys: Arc<Sealed>,
    pub bell: Bell,
    pub transport: Arc<dyn Transport>,
    pub timing: Timing,
    /// What is asked for through a proxy to test it.
    pub proxy_test_url: Arc<str>,
    leases: Leases,
}

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

/// What came of missions that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub added: Vec<MissionId>,
    /// Those that were there already.
    pub known: usize,
    pub queued: usize,
}

/// What came of a wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    pub done: Vec<MissionId>,
    /// Those that were named and could not be had, with the reason.
    pub refused: Vec<(MissionId, String)>,
}

/// Whether a worker, proxy or writer answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    pub ok: bool,
    pub said: String,
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

    // --- missions -----------------------------------------------------------------------------

    /// Makes the missions that are not there yet; into the queue, if `queue`.
    pub async fn add(&self, wanted: &Wanted, queue: bool) -> Result<Made> {
        let missions = bank::missions(wanted, self.store.clock())?;
        self.add_all(missions, queue).await
    }

    pub async fn import(&self, csv: &str, queue: bool) -> Result<Made> {
        let missions = bank::from_csv(csv, self.store.clock())?;
        self.add_all(missions, queue).await
    }

    async fn add_all(&self, missions: Vec<NewMission>, queue: bool) -> Result<Made> {
        let asked = missions.len();
        let added = self.store.add_missions(missions, false).await?;
        let known = asked - added.len();
        let mut queued = 0;
        if queue && !added.is_empty() {
            let filter = Filter { ids: added.clone(), ..Filter::default() };
            queued = self.wish(&filter, Wish::Queue, "user").await?.done.len();
        }
        Ok(Made { added, known, queued })
    }

    /// A new mission like one that there was.
    pub async fn copy(&self, id: &MissionId, queue: bool) -> Result<MissionId> {
        self.copy_as(MissionId::new(self.store.clock()), id, queue).await
    }

    /// The same under an id of the caller's: once, however often it is asked for.
    pub async fn copy_as(&self, new: MissionId, id: &MissionId, queue: bool) -> Result<MissionId> {
        let old = self.mission(id).await?;
        if self.mission(&new).await.is_err() {
            let copy = NewMission {
                id: new.clone(),
                date_start: old.date_start,
                date_end: old.date_end,
                media_type: old.media_type,
                languages: old.languages,
            };
            self.store.add_missions(vec![copy], true).await?;
        }
        if queue {
            let filter = Filter { ids: vec![new.clone()], ..Filter::default() };
            self.wish(&filter, Wish::Queue, "user").await?;
        }
        Ok(new)
    }

    pub async fn mission(&self, id: &MissionId) -> Result<Mission> {
        let filter = Filter { ids: vec![id.clone()], ..Filter::default() };
        let found = self.store.missions(&filter, None, 1).await?.pop();
        found.ok_or_else(|| Error::NotFound { what: "mission", id: id.0.clone() })
    }

    pub async fn missions(
        &self,
        filter: &Filter,
        before: Option<MissionId>,
        limit: usize,
    ) -> Result<Vec<Mission>> {
        self.store.missions(filter, before, limit).await
    }

    /// Queues, cancels or retries all missions of the filter for which it may be. Those that are
    /// named by id and were not changed come back with the reason.
    pub async fn wish(&self, filter: &Filter, wish: Wish, by: &str) -> Result<Granted> {
        let done = self.store.wish(filter, wish, by).await?;
        self.bell.work();
        let mut refused = Vec::new();
        if !filter.ids.is_empty() && done.len() < filter.ids.len() {
            let named: std::collections::HashSet<&MissionId> = done.iter().collect();
            let missing: Vec<MissionId> =
                filter.ids.iter().filter(|id| !named.contains(id)).cloned().collect();
            let limit = missing.len();
            let ids = Filter { ids: missing.clone(), ..Filter::default() };
            let found = self.store.missions(&ids, None, limit).await?;
            for id in missing {
                let why = match found.iter().find(|mission| mission.id == id) {
                    None => "is not there".to_owned(),
                    Some(mission) => refusal(mission, wish)
                        .unwrap_or("does not fit the other conditions")
                        .to_owned(),
                };
                refused.push((id, why));
            }
        }
        Ok(Granted { done, refused })
    }

    /// Queues, cancels or retries one mission, and shows what it is now.
    pub async fn wish_one(&self, id: &MissionId, wish: Wish, by: &str) -> Result<Mission> {
        let before = self.mission(id).await?;
        let filter = Filter { ids: vec![id.clone()], ..Filter::default() };
        let granted = self.wish(&filter, wish, by).await?;
        match granted.refused.into_iter().next() {
            Some((id, why)) => Err(Error::Refused { id, why }),
            None => self.mission(&before.id).await,
        }
    }

    pub async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>> {
        self.store.log(filter).await
    }

    /// Missions that failed, newest first, older than the entry `before`.
    pub async fn failures(
        &self,
        window: Window,
        before: Option<(Timestamp, LogId)>,
        limit: usize,
    ) -> Result<Vec<Failure>> {
        self.store.failures(window, before, limit).await
    }

    /// What each worker did.
    pub async fn performance(&self, window: Window) -> Result<Vec<Performance>> {
        self.store.performance(window).await
    }

    /// What went wrong behind each proxy.
    pub async fn troubled_proxies(&self, window: Window) -> Result<Vec<ProxyTrouble>> {
        self.store.troubled_proxies(window).await
    }

    // --- workers, proxies, writers ------------------------------------------------------------

    pub async fn add_worker(&self, order: Service) -> Result<WorkerId> {
        self.add_worker_as(WorkerId::new(self.store.clock()), order).await
    }

    /// The same under an id of the caller's: once, however often it is asked for.
    pub async fn add_worker_as(&self, id: WorkerId, order: Service) -> Result<WorkerId> {
        if self.worker(&id).await.is_ok() {
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
        if self.proxy(&id).await.is_ok() {
            return Ok(id);
        }
        let thing = Thing::Proxy(id.clone());
        let password = match &order.password {
            Some(password) => Some(self.keys.seal(&thing, password).await?),
            None => None,
        };
        let new = NewProxy {
            id: id.clone(),
            name: name(&order.name, 200)?,
            host: host(&order.host)?,
            port: order.port.map(port).transpose()?,
            username: order.username.as_deref().map(username).transpose()?.flatten(),
            password,
            active: true,
        };
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
        if self.writer(&id).await.is_ok() {
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
        let mut edit = Edit {
            name: changes.name.as_deref().map(|text| name(text, most)).transpose()?,
            url: changes.url.as_deref().map(address).transpose()?,
            storage_domain: changes.storage_domain.as_deref().map(domain).transpose()?,
            host: changes.host.as_deref().map(host).transpose()?,
            port: changes.port.map(port).transpose()?,
            username: changes.username.as_deref().map(username).transpose()?.flatten(),
            secret: None,
            active: changes.active,
        };
        if let Some(secret) = secret {
            edit.secret = Some(self.keys.seal(thing, &secret).await?);
        }
        let (name, url) = (edit.name.clone(), edit.url.clone());
        let edited = self.store.edit(thing, edit).await?;
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
        let holder = self.store.clock().new_id();
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.timing.test_every) => {}
                () = stop.cancelled() => return,
            }
            let term = self.timing.test_every * 2;
            let tested = match self.leases.acquire("fleet_tests", holder, term).await {
                Ok(Some(_)) => self.test_all().await.map(|_| ()),
                Ok(None) => Ok(()),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = tested {
                tracing::warn!(%error, "workers, proxies and writers are not tested");
            }
        }
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

fn name(text: &str, most: usize) -> Result<String> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > most || text.chars().any(char::is_control) {
        return Err(Error::Invalid(format!("a name has 1 to {most} characters in one line")));
    }
    Ok(text.to_owned())
}

/// The base URL of a worker or a writer.
fn address(text: &str) -> Result<String> {
    let wrong =
        |why: &str| Error::Invalid(format!("the URL {why}: as in https://worker.example.com"));
    if text.len() > 500 {
        return Err(wrong("has more than 500 characters"));
    }
    let url = Url::parse(text.trim()).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => wrong("has no scheme"),
        error => wrong(&format!("cannot be read ({error})")),
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is not http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("has credentials in it, which would show in logs: use the API key"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has a query or a fragment"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Where results are: a host with a path at most; a scheme is kept.
fn domain(text: &str) -> Result<String> {
    let text = text.trim().trim_end_matches('/');
    let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    address(&whole).map_err(|_| {
        let example = "as in storage.example.com";
        Error::Invalid(format!("the storage domain {text:?} cannot be read: {example}"))
    })?;
    if text.len() > 255 {
        return Err(Error::Invalid("the storage domain has more than 255 characters".into()));
    }
    Ok(text.to_owned())
}

/// The host of a proxy, with a scheme where it is no HTTP proxy.
fn host(text: &str) -> Result<String> {
    let text = text.trim().trim_end_matches('/');
    let wrong = || {
        Error::Invalid(format!(
            "the host {text:?} cannot be read: as in proxy.example.com or socks5://10.0.0.7, \
             port, user name and password apart"
        ))
    };
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let is_known = matches!(scheme, "http" | "https" | "socks5" | "socks5h");
    let bare = rest.trim_start_matches('[').trim_end_matches(']');
    let is_host = url::Host::parse(bare).is_ok() || bare.parse::<std::net::IpAddr>().is_ok();
    if !is_known || !is_host || text.len() > 200 {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

/// None where it is empty.
fn username(text: &str) -> Result<Option<String>> {
    if text.chars().count() > 100 || text.chars().any(char::is_control) {
        return Err(Error::Invalid("a user name has at most 100 characters in one line".into()));
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

fn port(number: i32) -> Result<i32> {
    if (1..=65535).contains(&number) {
        return Ok(number);
    }
    Err(Error::Invalid(format!("{number} is no port: from 1 to 65535")))
}

fn key(secret: &SecretString) -> Result<SecretString> {
    let text = secret.expose_secret();
    let is_sendable = text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    if text.is_empty() || text.len() > 200 || !is_sendable {
        let text = "an API key has 1 to 200 characters, none of them a space or beyond ASCII";
        return Err(Error::Invalid(text.into()));
    }
    Ok(secret.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_bases_without_credentials() {
        assert_eq!(address("https://w.example.com/").unwrap(), "https://w.example.com");
        assert_eq!(address("http://127.0.0.1:81/w/3").unwrap(), "http://127.0.0.1:81/w/3");
        for (text, why) in [
            ("w.example.com", "no scheme"),
            ("ftp://w.example.com", "not http"),
            ("https://a:b@w.example.com", "credentials"),
            ("https://w.example.com/?a=1", "query"),
            ("https://", "cannot be read"),
        ] {
            let error = address(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_of_proxies_have_no_port_and_no_credentials() {
        for good in ["proxy.example.com", "10.0.0.1", "socks5://10.0.0.7", "[::1]"] {
            assert!(host(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "user@host", "host:80", "ftp://host", "http://"] {
            assert!(host(bad).is_err(), "{bad}");
        }
        assert!(port(70_000).unwrap_err().to_string().contains("65535"));
        assert!(port(0).is_err() && port(-1).is_err() && port(8080).is_ok());
    }
}
