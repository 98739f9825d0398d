//! What orchestrators ask of the tables.

use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use lavra_tasks::model::{ProcessId, Token};

use super::{Memory, WRITES};
use crate::error::Result;
use crate::machine::Step;
use crate::machine::mission::to_the_writer;
use crate::machine::worker::{self, View};
use crate::model::{
    Checkpoint, Mission, MissionId, MissionStatus, Proxy, Worker, WorkerId, WorkerStatus,
};
use crate::store::{Assigned, Leased, Leases, Opened, Opening, Steps, Supervises};

#[async_trait]
impl Leases for Memory {
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
}

#[async_trait]
impl Supervises for Memory {
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
}

#[async_trait]
impl Steps for Memory {
    async fn apply(&self, steps: Vec<Step>) -> Result<Vec<bool>> {
        self.thawed().await;
        let mut tables = self.tables();
        Ok(steps.into_iter().map(|step| tables.apply(step, &self.clock)).collect())
    }
}
