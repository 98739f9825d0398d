//! Workers, proxies and writers, as people add, change and remove them.

use async_trait::async_trait;

use super::Memory;
use crate::error::Result;
use crate::model::{Mission, Proxy, Worker, WorkerStatus, Writer};
use crate::store::{Edit, Edited, NewProxy, NewWorker, NewWriter, Thing, Things};

#[async_trait]
impl Things for Memory {
    async fn add_worker(&self, new: NewWorker) -> Result<Edited> {
        let now = self.now();
        let mut tables = self.tables();
        let thing = Thing::Worker(new.id.clone());
        if tables.has_name(&thing, &new.name) {
            return Ok(Edited::NameTaken);
        }
        if tables.has_url(&new.id, &new.url) {
            return Ok(Edited::UrlTaken);
        }
        tables.secrets.insert(thing, new.api_key);
        let worker = Worker {
            id: new.id.clone(),
            name: new.name,
            url: new.url,
            storage_domain: new.storage_domain,
            status: WorkerStatus::Idle,
            session_count: 0,
            current_mission_id: None,
            active: new.active,
            last_test_at: None,
            last_test_ok: None,
            created_at: now,
            updated_at: now,
            last_proxy_id: None,
            session_id: None,
            session_started_at: None,
            session_accepted: false,
            session_errors: 0,
            error_code: None,
            error_message: None,
            next_attempt_at: None,
            close_reason: None,
            close_by: None,
            unclosed: false,
            stop_by: None,
            unreachable_since: None,
            waiting: None,
            token: None,
            held_by: None,
        };
        tables.workers.insert(new.id, worker);
        Ok(Edited::Done)
    }

    async fn add_proxy(&self, new: NewProxy) -> Result<Edited> {
        let now = self.now();
        let mut tables = self.tables();
        let thing = Thing::Proxy(new.id.clone());
        if tables.has_name(&thing, &new.name) {
            return Ok(Edited::NameTaken);
        }
        if let Some(password) = new.password {
            tables.secrets.insert(thing, password);
        }
        let proxy = Proxy {
            id: new.id.clone(),
            name: Some(new.name),
            host: new.host,
            port: new.port,
            username: new.username,
            active: new.active,
            in_use_by_worker_id: None,
            fail_count: 0,
            last_used_at: None,
            last_test_at: None,
            last_test_ok: None,
            created_at: now,
        };
        tables.proxies.insert(new.id, proxy);
        Ok(Edited::Done)
    }

    async fn add_writer(&self, new: NewWriter) -> Result<Edited> {
        let now = self.now();
        let mut tables = self.tables();
        let thing = Thing::Writer(new.id.clone());
        if tables.has_name(&thing, &new.name) {
            return Ok(Edited::NameTaken);
        }
        tables.secrets.insert(thing, new.api_key);
        let writer = Writer {
            id: new.id.clone(),
            name: new.name,
            url: new.url,
            active: new.active,
            last_test_at: None,
            last_test_ok: None,
            created_at: now,
            updated_at: now,
        };
        tables.writers.insert(new.id, writer);
        Ok(Edited::Done)
    }

    async fn edit(&self, thing: &Thing, edit: Edit) -> Result<Edited> {
        let now = self.now();
        let mut tables = self.tables();
        if edit.name.as_ref().is_some_and(|name| tables.has_name(thing, name)) {
            return Ok(Edited::NameTaken);
        }
        if let (Thing::Worker(id), Some(url)) = (thing, &edit.url)
            && tables.has_url(id, url)
        {
            return Ok(Edited::UrlTaken);
        }
        let found = match thing {
            Thing::Worker(id) => tables.workers.get_mut(id).map(|worker| {
                set(&mut worker.name, edit.name);
                set(&mut worker.url, edit.url);
                set(&mut worker.active, edit.active);
                worker.storage_domain = edit.storage_domain.or(worker.storage_domain.take());
                worker.updated_at = now;
            }),
            Thing::Proxy(id) => tables.proxies.get_mut(id).map(|proxy| {
                if edit.active == Some(true) {
                    proxy.fail_count = 0;
                }
                proxy.name = edit.name.or(proxy.name.take());
                set(&mut proxy.host, edit.host);
                set(&mut proxy.active, edit.active);
                proxy.port = edit.port.or(proxy.port);
                proxy.username = edit.username.or(proxy.username.take());
            }),
            Thing::Writer(id) => tables.writers.get_mut(id).map(|writer| {
                set(&mut writer.name, edit.name);
                set(&mut writer.url, edit.url);
                set(&mut writer.active, edit.active);
                writer.updated_at = now;
            }),
        };
        if found.is_none() {
            return Ok(Edited::NotFound);
        }
        if let Some(secret) = edit.secret {
            tables.secrets.insert(thing.clone(), secret);
        }
        Ok(Edited::Done)
    }

    async fn remove(&self, thing: &Thing) -> Result<Edited> {
        let mut tables = self.tables();
        let found = match thing {
            Thing::Worker(id) => {
                let Some(worker) = tables.workers.get(id) else { return Ok(Edited::NotFound) };
                if worker.status != WorkerStatus::Idle || worker.current_mission_id.is_some() {
                    return Ok(Edited::InUse(format!("it is {}", worker.status)));
                }
                let is_named = |mission: &Mission| mission.worker_id.as_ref() == Some(id);
                if tables.missions.values().any(is_named) {
                    return Ok(Edited::InUse("missions name it".into()));
                }
                tables.workers.remove(id).is_some()
            }
            Thing::Proxy(id) => {
                let user = tables.proxies.get(id).and_then(|p| p.in_use_by_worker_id.clone());
                if let Some(worker) = user {
                    return Ok(Edited::InUse(format!("the worker {worker} uses it")));
                }
                tables.proxies.remove(id).is_some()
            }
            Thing::Writer(id) => {
                let is_named = |mission: &Mission| {
                    mission.writer_id.as_ref() == Some(id) && !mission.status.is_over()
                };
                if tables.missions.values().any(is_named) {
                    return Ok(Edited::InUse("missions are being stored by it".into()));
                }
                tables.writers.remove(id).is_some()
            }
        };
        tables.secrets.remove(thing);
        Ok(if found { Edited::Done } else { Edited::NotFound })
    }

    async fn tested(&self, thing: &Thing, ok: bool) -> Result<()> {
        let now = self.now();
        let mut tables = self.tables();
        let place = match thing {
            Thing::Worker(id) => {
                tables.workers.get_mut(id).map(|w| (&mut w.last_test_at, &mut w.last_test_ok))
            }
            Thing::Proxy(id) => {
                tables.proxies.get_mut(id).map(|p| (&mut p.last_test_at, &mut p.last_test_ok))
            }
            Thing::Writer(id) => {
                tables.writers.get_mut(id).map(|w| (&mut w.last_test_at, &mut w.last_test_ok))
            }
        };
        if let Some((at, result)) = place {
            *at = Some(now);
            *result = Some(ok);
        }
        Ok(())
    }

    async fn secret(&self, thing: &Thing) -> Result<Option<String>> {
        Ok(self.tables().secrets.get(thing).cloned())
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
