//! The store over the tables.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use lavra_db::Clock;
use lavra_tasks::model::{ProcessId, Token};
use serde_json::Value;

use super::{Memory, WRITES};
use crate::code::ErrorCode;
use crate::error::Result;
use crate::machine::Step;
use crate::machine::mission::{Wish, granted, refusal, to_the_writer};
use crate::machine::worker::{self, View};
use crate::model::{
    Checkpoint, LogEntry, LogId, Mission, MissionId, MissionStatus, Proxy, Worker, WorkerId,
    WorkerStatus, Writer, WriterId,
};
use crate::report::{Failure, Performance, ProxyTrouble, Window};
use crate::settings::Adjustable;
use crate::store::{
    Assigned, Control, Counts, Edit, Edited, Filter, Leased, LogFilter, NewMission, NewProxy,
    NewWorker, NewWriter, Opened, Opening, Pace, Store, Thing, Wait, Waiter, WaitsFor, WriterLoad,
};

#[async_trait]
impl Store for Memory {
    fn clock(&self) -> &Clock {
        &self.clock
    }

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

    async fn lease(&self, process: ProcessId, stale: Duration) -> Result<Leased> {
        self.thawed().await;
        let now = self.now();
        let stale = SignedDuration::try_from(stale).unwrap_or(SignedDuration::MAX);
        let since = now.saturating_sub(stale).unwrap_or(Timestamp::MIN);
        let mut tables = self.tables();
        tables.processes.insert(process, now);
        tables.processes.retain(|_, seen| *seen >= since);
        let live = tables.processes.len();
        let needed = |worker: &&Worker| {
            worker.active || worker.status != WorkerStatus::Idle || worker.unclosed
        };
        let all = tables.workers.values().filter(needed).count();
        let share = all.div_ceil(live.max(1));
        let held = tables.workers.values().filter(|w| w.held_by == Some(process)).count();
        let free: Vec<WorkerId> = tables
            .workers
            .values()
            .filter(needed)
            .filter(|worker| worker.held_by != Some(process))
            .filter(|worker| tables.is_dead(worker.held_by, since))
            .map(|worker| worker.id.clone())
            .take(share.saturating_sub(held))
            .collect();
        for id in free {
            let token = tables.token();
            let Some(worker) = tables.workers.get_mut(&id) else { continue };
            worker.token = Some(token);
            worker.held_by = Some(process);
            let mission = worker.current_mission_id.clone();
            if let Some(mission) = mission.and_then(|id| tables.missions.get_mut(&id))
                && mission.status == MissionStatus::Running
                && mission.checkpoint == Some(Checkpoint::Extracao)
            {
                mission.token = Some(token);
                mission.held_by = Some(process);
            }
        }
        let writes: Vec<Mission> = tables
            .storing
            .iter()
            .filter_map(|id| tables.missions.get(id))
            .filter(|mission| mission.held_by != Some(process))
            .filter(|mission| tables.is_dead(mission.held_by, since))
            .take(WRITES)
            .cloned()
            .collect();
        for mission in writes {
            let mut next = match mission.status {
                MissionStatus::Queued => to_the_writer(&mission, now),
                _ => mission,
            };
            next.token = Some(tables.token());
            next.held_by = Some(process);
            tables.put(next);
        }
        let workers: Vec<(WorkerId, Token)> = tables
            .workers
            .values()
            .filter(|worker| worker.held_by == Some(process))
            .filter_map(|worker| Some((worker.id.clone(), worker.token?)))
            .collect();
        let missions = tables
            .storing
            .iter()
            .filter_map(|id| tables.missions.get(id))
            .filter(|mission| mission.held_by == Some(process))
            .filter_map(|mission| Some((mission.id.clone(), mission.token?)))
            .collect();
        Ok(Leased { surplus: workers.len().saturating_sub(share), workers, missions })
    }

    async fn release(&self, process: ProcessId, workers: Vec<WorkerId>) -> Result<()> {
        self.thawed().await;
        let mut tables = self.tables();
        for id in workers {
            if let Some(worker) = tables.workers.get_mut(&id)
                && worker.held_by == Some(process)
            {
                worker.held_by = None;
            }
        }
        Ok(())
    }

    async fn leave(&self, process: ProcessId) -> Result<()> {
        let mut tables = self.tables();
        tables.processes.remove(&process);
        for worker in tables.workers.values_mut().filter(|w| w.held_by == Some(process)) {
            worker.held_by = None;
        }
        for mission in tables.missions.values_mut().filter(|m| m.held_by == Some(process)) {
            mission.held_by = None;
        }
        Ok(())
    }

    async fn view(&self, worker: &WorkerId, token: Token) -> Result<Option<View>> {
        self.thawed().await;
        Ok(self.tables().view(worker, token))
    }

    async fn storing(&self, id: &MissionId, token: Token) -> Result<Option<Mission>> {
        self.thawed().await;
        let tables = self.tables();
        Ok(tables.missions.get(id).filter(|mission| mission.token == Some(token)).cloned())
    }

    async fn open(&self, opening: Opening) -> Result<Opened> {
        self.thawed().await;
        let now = self.now();
        let mut tables = self.tables();
        let view = tables.view(&opening.worker, opening.token);
        let Some(view) = view.filter(|view| view.worker.status == WorkerStatus::Idle) else {
            return Ok(Opened::Lost);
        };
        if view.mission.is_none() && tables.queue.len() <= tables.expecting() {
            return Ok(Opened::NotNeeded);
        }
        let active: Vec<&Proxy> = tables.proxies.values().filter(|proxy| proxy.active).collect();
        let is_only = active.len() == 1;
        let free: Vec<&&Proxy> = active
            .iter()
            .filter(|proxy| proxy.in_use_by_worker_id.is_none())
            .filter(|proxy| is_only || Some(&proxy.id) != view.worker.last_proxy_id.as_ref())
            .collect();
        if free.is_empty() {
            if let Some(step) = worker::no_proxy(&view, now) {
                tables.apply(step, &self.clock);
            }
            return Ok(Opened::NoProxy);
        }
        let proxy = (*free[(opening.luck % free.len() as u64) as usize]).clone();
        let previous = view.worker.last_proxy_id.as_ref().and_then(|id| tables.proxies.get(id));
        let name = previous.map(|proxy| proxy.label().to_owned());
        let step = worker::opened(&view, &proxy, name.as_deref(), opening.session, now);
        let is_applied = tables.apply(step, &self.clock);
        Ok(if is_applied { Opened::With(Box::new(proxy)) } else { Opened::Lost })
    }

    async fn assign(&self, worker: &WorkerId, token: Token) -> Result<Assigned> {
        self.thawed().await;
        let now = self.now();
        let mut tables = self.tables();
        let Some(view) = tables.view(worker, token).filter(View::is_free) else {
            return Ok(Assigned::Lost);
        };
        let next = tables.queue.first().and_then(|(_, id)| tables.missions.get(id));
        let Some(mission) = next.cloned() else {
            return Ok(Assigned::NothingQueued);
        };
        let step = worker::assigned(&view, &mission, now);
        let after = Box::new(view.after(&step));
        let is_written = tables.apply(step, &self.clock);
        Ok(if is_written { Assigned::With(after) } else { Assigned::Lost })
    }

    async fn apply(&self, steps: Vec<Step>) -> Result<Vec<bool>> {
        self.thawed().await;
        let mut tables = self.tables();
        Ok(steps.into_iter().map(|step| tables.apply(step, &self.clock)).collect())
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
