//! What changes in the tables, as the statements of a database would change it.

use jiff::Timestamp;
use lavra_db::Clock;
use lavra_tasks::model::{ProcessId, Token};

use super::Tables;
use crate::machine::worker::View;
use crate::machine::{Guard, Step, mission_may, worker_may};
use crate::model::{
    Checkpoint, LogEntry, LogId, Mission, MissionStatus, Proxy, Worker, WorkerId, WorkerStatus,
};
use crate::store::{Counts, Filter, Thing};

impl Tables {
    pub(super) fn token(&mut self) -> Token {
        self.last_token += 1;
        self.last_token
    }

    pub(super) fn put(&mut self, mission: Mission) {
        if let Some(old) = self.missions.get(&mission.id) {
            if let Some(at) = old.queued_at {
                self.queue.remove(&(at, old.id.clone()));
            }
            *counted(&mut self.counts, old) -= 1;
        }
        *counted(&mut self.counts, &mission) += 1;
        self.storing.remove(&mission.id);
        let has_data = mission.worker_data_url.is_some();
        match (mission.status, mission.queued_at) {
            (MissionStatus::Queued, Some(at)) if !has_data => {
                self.queue.insert((at, mission.id.clone()));
            }
            (MissionStatus::Queued, Some(_)) => {
                self.storing.insert(mission.id.clone());
            }
            (MissionStatus::Running, _)
                if mission.checkpoint == Some(Checkpoint::Armazenamento) =>
            {
                self.storing.insert(mission.id.clone());
            }
            _ => {}
        }
        self.missions.insert(mission.id.clone(), mission);
    }

    pub(super) fn view(&self, id: &WorkerId, token: Token) -> Option<View> {
        let worker = self.workers.get(id).filter(|worker| worker.token == Some(token))?.clone();
        let mission = worker.current_mission_id.as_ref().and_then(|id| self.missions.get(id));
        let in_use = |proxy: &&Proxy| proxy.in_use_by_worker_id.as_ref() == Some(id);
        // A worker has at most one, and it is the last that it was given.
        let last = worker.last_proxy_id.as_ref().and_then(|id| self.proxies.get(id));
        Some(View {
            mission: mission.cloned(),
            proxy: last.filter(in_use).cloned(),
            has_queue: !self.queue.is_empty(),
            mode: self.control.mode,
            worker,
        })
    }

    pub(super) fn is_ours(&self, step: &Step) -> bool {
        let worker = step.worker.as_ref().is_none_or(|(token, worker)| {
            self.workers.get(&worker.id).is_some_and(|row| {
                let seen = step.seen.worker;
                row.token == Some(*token) && seen.is_none_or(|seen| seen == row.updated_at)
            })
        });
        let mission = step.mission.as_ref().is_none_or(|(guard, mission)| {
            self.missions.get(&mission.id).is_some_and(|row| {
                let is_held = match guard {
                    Guard::Held(token) => {
                        row.status == MissionStatus::Running && row.token == Some(*token)
                    }
                    Guard::Queued => row.status == MissionStatus::Queued,
                };
                is_held && (step.seen.mission.is_none() || row.logged_at == step.seen.mission)
            })
        });
        worker && mission
    }

    pub(super) fn apply(&mut self, step: Step, clock: &Clock) -> bool {
        if !self.is_unguarded && !self.is_ours(&step) {
            return false;
        }
        if self.is_checked {
            self.check(&step);
        }
        let worker_id = step.worker.as_ref().map(|(_, worker)| worker.id.clone());
        if let Some((id, most)) = step.blamed
            && let Some(proxy) = self.proxies.get_mut(&id)
        {
            proxy.fail_count += 1;
            proxy.active &= proxy.fail_count < most;
        }
        if let Some(proxy) = step.praised.and_then(|id| self.proxies.get_mut(&id)) {
            proxy.fail_count = 0;
        }
        if step.releases_proxy {
            for proxy in self.proxies.values_mut() {
                if proxy.in_use_by_worker_id == worker_id {
                    proxy.in_use_by_worker_id = None;
                }
            }
        }
        if let Some(proxy) = step.reserves.and_then(|id| self.proxies.get_mut(&id)) {
            proxy.in_use_by_worker_id = worker_id;
            proxy.last_used_at = step.worker.as_ref().map(|(_, worker)| worker.updated_at);
        }
        if let Some((_, after)) = step.worker
            && let Some(row) = self.workers.get_mut(&after.id)
        {
            // What people set stays theirs.
            let Worker { name, url, storage_domain, active, last_test_at, last_test_ok, .. } =
                row.clone();
            *row = Worker {
                name,
                url,
                storage_domain,
                active,
                last_test_at,
                last_test_ok,
                held_by: row.held_by,
                token: row.token,
                ..after
            };
        }
        if let (Some(session), Some((_, mission))) = (&step.links, &step.mission) {
            for place in self.unlinked.remove(session).unwrap_or_default() {
                if let Some(entry) = self.logs.get_mut(place) {
                    entry.mission_id = Some(mission.id.clone());
                }
            }
        }
        if let Some((_, mission)) = step.mission {
            self.put(mission);
        }
        for entry in step.logs {
            if let (None, Some(session)) = (&entry.mission_id, &entry.session_id) {
                self.unlinked.entry(session.clone()).or_default().push(self.logs.len());
            }
            self.logs.push(LogEntry {
                id: LogId::new(clock),
                mission_id: entry.mission_id,
                event: entry.event,
                details: entry.details,
                timestamp: entry.at,
                session_id: entry.session_id,
            });
        }
        true
    }

    /// The invariants of a step: no transition outside the tables, no mission on two workers, no
    /// proxy on two.
    pub(super) fn check(&mut self, step: &Step) {
        let mut wrong = Vec::new();
        if let Some((_, after)) = &step.worker
            && let Some(before) = self.workers.get(&after.id)
        {
            let (from, to) = (before.status, after.status);
            if from != to && !worker_may(from, to) {
                wrong.push(format!("worker {}: {from} → {to}", after.id));
            }
            if let Some(mission) = &after.current_mission_id
                && before.current_mission_id.as_ref() != Some(mission)
            {
                let has = |other: &&Worker| {
                    other.id != after.id && other.current_mission_id.as_ref() == Some(mission)
                };
                if let Some(other) = self.workers.values().find(has) {
                    wrong.push(format!("mission {mission} on {} and {}", after.id, other.id));
                }
            }
            if let Some(proxy) = &step.reserves {
                let user = self.proxies.get(proxy).map(|proxy| &proxy.in_use_by_worker_id);
                if !matches!(user, Some(None)) {
                    wrong.push(format!("proxy {proxy} for {}: it is {user:?}'s", after.id));
                }
            }
        }
        if let Some((_, after)) = &step.mission
            && let Some(before) = self.missions.get(&after.id)
        {
            if !mission_may(before.status, after.status) {
                wrong.push(format!("mission {}: {} → {}", after.id, before.status, after.status));
            }
            if after.attempts < before.attempts {
                wrong.push(format!("mission {}: its attempts go back", after.id));
            }
            if step.logs.iter().any(|entry| {
                entry.mission_id.as_ref() == Some(&after.id) && Some(entry.at) <= before.logged_at
            }) {
                wrong.push(format!("mission {}: its log goes back", after.id));
            }
        }
        self.wrong.append(&mut wrong);
    }

    pub(super) fn is_dead(&self, process: Option<ProcessId>, since: Timestamp) -> bool {
        process.is_none_or(|id| self.processes.get(&id).is_none_or(|seen| *seen < since))
    }

    /// Sessions that stand or are being opened, without a mission.
    pub(super) fn expecting(&self) -> usize {
        let is_expecting = |worker: &&Worker| {
            let is_open = matches!(worker.status, WorkerStatus::Ready | WorkerStatus::Initializing);
            is_open && worker.current_mission_id.is_none() && worker.close_reason.is_none()
        };
        self.workers.values().filter(is_expecting).count()
    }

    pub(super) fn matching<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> impl Iterator<Item = &'a Mission> + 'a {
        self.missions.values().filter(move |mission| matches(mission, filter))
    }

    pub(super) fn has_name(&self, thing: &Thing, name: &str) -> bool {
        match thing {
            Thing::Worker(id) => self.workers.values().any(|w| w.name == name && w.id != *id),
            Thing::Proxy(id) => {
                self.proxies.values().any(|p| p.name.as_deref() == Some(name) && p.id != *id)
            }
            Thing::Writer(id) => self.writers.values().any(|w| w.name == name && w.id != *id),
        }
    }

    pub(super) fn has_url(&self, id: &WorkerId, url: &str) -> bool {
        self.workers.values().any(|worker| worker.url == url && worker.id != *id)
    }
}

/// Where a mission is counted.
pub(super) fn counted<'a>(counts: &'a mut Counts, mission: &Mission) -> &'a mut i64 {
    match mission.status {
        MissionStatus::Queued if mission.queued_at.is_none() => &mut counts.bank,
        MissionStatus::Queued => &mut counts.queued,
        MissionStatus::Running if mission.checkpoint == Some(Checkpoint::Armazenamento) => {
            &mut counts.armazenamento
        }
        MissionStatus::Running => &mut counts.extracao,
        MissionStatus::Completed => &mut counts.completed,
        MissionStatus::Failed => &mut counts.failed,
        MissionStatus::Canceled => &mut counts.canceled,
    }
}

pub(super) fn matches(mission: &Mission, filter: &Filter) -> bool {
    let in_bank = mission.status == MissionStatus::Queued && mission.queued_at.is_none();
    (filter.ids.is_empty() || filter.ids.contains(&mission.id))
        && filter.status.is_none_or(|status| mission.status == status)
        && filter.in_bank.is_none_or(|wanted| in_bank == wanted)
        && filter.checkpoint.is_none_or(|wanted| mission.checkpoint == Some(wanted))
        && filter.error_code.is_none_or(|wanted| mission.error_code == Some(wanted))
        && filter.media_type.is_none_or(|wanted| mission.media_type == wanted)
        && filter.language.as_ref().is_none_or(|wanted| mission.languages.contains(wanted))
        && filter.worker.as_ref().is_none_or(|wanted| mission.worker_id.as_ref() == Some(wanted))
        && filter.from.is_none_or(|day| mission.date_start >= day)
        && filter.to.is_none_or(|day| mission.date_end <= day)
        && filter.waiting.is_none_or(|wanted| mission.waiting == Some(wanted))
        && filter.search.as_ref().is_none_or(|text| is_found(mission, text))
}

fn is_found(mission: &Mission, text: &str) -> bool {
    let (lower, message) = (text.to_lowercase(), mission.error_message.as_deref());
    let code = mission.error_code.map(|code| code.as_str().to_lowercase());
    mission.id.0.starts_with(text)
        || code.is_some_and(|code| code.starts_with(&lower))
        || message.is_some_and(|message| message.to_lowercase().contains(&lower))
}
