//! Which process looks after what.

use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use lavra_tasks::model::{ProcessId, Token};

use super::Memory;
use crate::error::Result;
use crate::machine::mission::to_the_writer;
use crate::model::{Checkpoint, Mission, MissionStatus, Worker, WorkerId, WorkerStatus};
use crate::store::{Leased, Leases, WRITES};

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
