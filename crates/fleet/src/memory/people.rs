//! What people ask of the tables.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use lavra_db::Clock;
use serde_json::Value;

use super::Memory;
use crate::code::ErrorCode;
use crate::error::Result;
use crate::machine::mission::{Wish, granted, refusal};
use crate::model::{
    LogEntry, LogId, Mission, MissionId, MissionStatus, Proxy, Worker, WorkerStatus, Writer,
    WriterId,
};
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::settings::Adjustable;
use crate::store::{
    Adjusts, Control, Counts, Edit, Edited, Filter, Glances, LogFilter, NewMission, NewProxy,
    NewWorker, NewWriter, Pace, Reads, Reports, Store, Thing, Things, Wait, Waiter, WaitsFor,
    Wishes, WriterLoad,
};

impl Store for Memory {
    fn clock(&self) -> &Clock {
        &self.clock
    }
}

#[async_trait]
impl Wishes for Memory {
    async fn add_missions(&self, missions: Vec<NewMission>, again: bool) -> Result<Vec<MissionId>> {
        let now = self.now();
        let mut tables = self.tables();
        let mut added = Vec::new();
        for new in missions {
            let is_same = |old: &Mission| {
                (old.date_start, old.date_end, old.media_type, &old.languages)
                    == (new.date_start, new.date_end, new.media_type, &new.languages)
            };
            if !again && tables.missions.values().any(is_same) {
                continue;
            }
            added.push(new.id.clone());
            tables.put(Mission {
                id: new.id,
                date_start: new.date_start,
                date_end: new.date_end,
                media_type: new.media_type,
                languages: new.languages,
                status: MissionStatus::Queued,
                checkpoint: None,
                worker_id: None,
                worker_job_id: None,
                worker_data_url: None,
                proxy_used: None,
                writer_job_id: None,
                ads_count: None,
                error_code: None,
                error_message: None,
                retry_count: 0,
                created_at: now,
                queued_at: None,
                started_at: None,
                finished_at: None,
                attempts: 0,
                phase_started_at: None,
                writer_id: None,
                writer_accepted_at: None,
                writer_processed: None,
                writer_moved_at: None,
                next_attempt_at: None,
                waiting: None,
                told_at: None,
                logged_at: None,
                token: None,
                held_by: None,
            });
        }
        Ok(added)
    }

    async fn wish(&self, filter: &Filter, wish: Wish, by: &str) -> Result<Vec<MissionId>> {
        let now = self.now();
        let mut tables = self.tables();
        let may: Vec<Mission> = tables
            .matching(filter)
            .filter(|mission| refusal(mission, wish).is_none())
            .cloned()
            .collect();
        let mut done = Vec::new();
        for (number, mission) in may.into_iter().enumerate() {
            // Each has a time of its own, so that the queue has an order.
            let at = now.saturating_add(SignedDuration::from_micros(number as i64)).unwrap_or(now);
            let (next, entry) = granted(&mission, wish, by, at);
            done.push(next.id.clone());
            tables.put(next);
            tables.logs.push(LogEntry {
                id: LogId::new(&self.clock),
                mission_id: entry.mission_id,
                event: entry.event,
                details: entry.details,
                timestamp: entry.at,
                session_id: None,
            });
        }
        Ok(done)
    }
}

#[async_trait]
impl Reads for Memory {
    async fn missions(
        &self,
        filter: &Filter,
        before: Option<MissionId>,
        limit: usize,
    ) -> Result<Vec<Mission>> {
        let tables = self.tables();
        let older = |mission: &&Mission| before.as_ref().is_none_or(|id| mission.id < *id);
        let mut found: Vec<Mission> = tables.matching(filter).filter(older).cloned().collect();
        found.reverse();
        found.truncate(limit);
        Ok(found)
    }

    async fn counts(&self) -> Result<Counts> {
        Ok(self.tables().counts)
    }

    async fn log(&self, filter: &LogFilter) -> Result<Vec<LogEntry>> {
        let tables = self.tables();
        let text = |entry: &LogEntry, name: &str| {
            entry.details.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let mut found: Vec<LogEntry> = tables
            .logs
            .iter()
            .filter(|entry| {
                filter.mission.as_ref().is_none_or(|id| entry.mission_id.as_ref() == Some(id))
                    && (!filter.without_mission || entry.mission_id.is_none())
                    && (filter.events.is_empty() || filter.events.contains(&entry.event))
                    && filter
                        .worker
                        .as_ref()
                        .is_none_or(|id| text(entry, "worker_id").as_deref() == Some(&id.0))
                    && filter
                        .proxy
                        .as_ref()
                        .is_none_or(|name| text(entry, "proxy_name").as_ref() == Some(name))
                    && filter
                        .session
                        .as_ref()
                        .is_none_or(|id| entry.session_id.as_ref() == Some(id))
                    && filter.error_code.is_none_or(|code| {
                        text(entry, "error_code").as_deref() == Some(code.as_str())
                    })
                    && filter.since.is_none_or(|time| entry.timestamp >= time)
                    && filter.until.is_none_or(|time| entry.timestamp < time)
                    && filter
                        .before
                        .as_ref()
                        .is_none_or(|(time, id)| (entry.timestamp, &entry.id) < (*time, id))
                    && filter
                        .after
                        .as_ref()
                        .is_none_or(|(time, id)| (entry.timestamp, &entry.id) > (*time, id))
            })
            .cloned()
            .collect();
        found.sort_by(|a, b| (a.timestamp, &a.id).cmp(&(b.timestamp, &b.id)));
        if !filter.oldest_first {
            found.reverse();
        }
        found.truncate(filter.limit);
        Ok(found)
    }

    async fn workers(&self) -> Result<Vec<Worker>> {
        let mut all: Vec<Worker> = self.tables().workers.values().cloned().collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(all)
    }

    async fn proxies(&self) -> Result<Vec<Proxy>> {
        let mut all: Vec<Proxy> = self.tables().proxies.values().cloned().collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(all)
    }

    async fn writers(&self) -> Result<Vec<Writer>> {
        let mut all: Vec<Writer> = self.tables().writers.values().cloned().collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(all)
    }
}

#[async_trait]
impl Glances for Memory {
    async fn count(&self, filter: &Filter) -> Result<i64> {
        Ok(self.tables().matching(filter).count() as i64)
    }

    async fn stamp(&self) -> Result<String> {
        let tables = self.tables();
        let newest = tables.missions.last_key_value().map(|(id, _)| id);
        let (workers, proxies) = (&tables.workers, &tables.proxies);
        let all = (newest, workers, proxies, &tables.writers, tables.control, tables.adjustable);
        Ok(format!("{all:?}"))
    }

    async fn pace(&self, since: Timestamp, step: Duration) -> Result<Vec<Pace>> {
        let step = step.as_micros().max(1_000_000) as i64;
        let mut pieces: BTreeMap<i64, Pace> = BTreeMap::new();
        for mission in self.tables().missions.values() {
            let Some(at) = mission.finished_at.filter(|at| *at >= since) else { continue };
            let start = at.as_microsecond().div_euclid(step) * step;
            let begin = Timestamp::from_microsecond(start).unwrap_or(at);
            let empty = Pace { at: begin, completed: 0, failed: 0, ads: 0 };
            match mission.status {
                MissionStatus::Completed => {
                    let piece = pieces.entry(start).or_insert(empty);
                    piece.completed += 1;
                    piece.ads += i64::from(mission.ads_count.unwrap_or(0));
                }
                MissionStatus::Failed => pieces.entry(start).or_insert(empty).failed += 1,
                MissionStatus::Queued | MissionStatus::Running | MissionStatus::Canceled => {}
            }
        }
        Ok(pieces.into_values().collect())
    }

    async fn failures_by_code(&self, since: Timestamp) -> Result<Vec<(ErrorCode, i64)>> {
        let mut counted: BTreeMap<ErrorCode, i64> = BTreeMap::new();
        for mission in self.tables().missions.values() {
            if mission.status == MissionStatus::Failed
                && mission.finished_at.is_some_and(|at| at >= since)
                && let Some(code) = mission.error_code
            {
                *counted.entry(code).or_default() += 1;
            }
        }
        let mut counted: Vec<(ErrorCode, i64)> = counted.into_iter().collect();
        counted.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), *code));
        Ok(counted)
    }

    async fn waits(&self) -> Result<Vec<Wait>> {
        let tables = self.tables();
        let missions = tables.missions.values().filter_map(|mission| {
            let since = mission.phase_started_at.or(mission.queued_at);
            let what = WaitsFor::of(mission)?;
            Some(Wait { who: Waiter::Mission, what, count: 1, since })
        });
        let workers = tables.workers.values().filter(|worker| worker.active);
        let workers = workers.filter_map(|worker| {
            let what = WaitsFor::Named(worker.waiting?);
            let since = Some(worker.updated_at);
            Some(Wait { who: Waiter::Worker, what, count: 1, since })
        });
        Ok(Wait::merged(missions.chain(workers).collect()))
    }

    async fn writer_loads(&self, since: Timestamp) -> Result<Vec<WriterLoad>> {
        let mut loads: BTreeMap<WriterId, WriterLoad> = BTreeMap::new();
        for mission in self.tables().missions.values() {
            let is_recent = mission.finished_at.is_some_and(|at| at >= since);
            let is_running = mission.status == MissionStatus::Running;
            let Some(writer) = mission.writer_id.clone().filter(|_| is_recent || is_running) else {
                continue;
            };
            let none = WriterLoad { writer: writer.clone(), under_way: 0, completed: 0, failed: 0 };
            let load = loads.entry(writer).or_insert(none);
            match mission.status {
                MissionStatus::Running => load.under_way += 1,
                MissionStatus::Completed => load.completed += 1,
                MissionStatus::Failed => load.failed += 1,
                MissionStatus::Queued | MissionStatus::Canceled => {}
            }
        }
        Ok(loads.into_values().collect())
    }
}

#[async_trait]
impl Reports for Memory {
    async fn failures(
        &self,
        window: Window,
        before: Option<(Timestamp, LogId)>,
        limit: usize,
    ) -> Result<Vec<Failure>> {
        Ok(self.tables().failures(window, before.as_ref(), limit))
    }

    async fn performance(&self, window: Window) -> Result<Vec<Performance>> {
        Ok(self.tables().performance(window))
    }

    async fn troubled_proxies(&self, window: Window) -> Result<Vec<ProxyTrouble>> {
        Ok(self.tables().troubled_proxies(window))
    }
}

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

#[async_trait]
impl Adjusts for Memory {
    async fn settings(&self) -> Result<Adjustable> {
        Ok(self.tables().adjustable)
    }

    async fn set_settings(&self, settings: Adjustable) -> Result<()> {
        self.tables().adjustable = settings;
        Ok(())
    }

    async fn control(&self) -> Result<Control> {
        Ok(self.tables().control)
    }

    async fn set_control(&self, control: Control) -> Result<()> {
        self.tables().control = control;
        Ok(())
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
