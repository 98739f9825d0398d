//! What one who looks after a worker or a mission asks.

use async_trait::async_trait;
use lavra_tasks::model::Token;

use super::Memory;
use crate::error::Result;
use crate::machine::worker::{self, View};
use crate::model::{Mission, MissionId, Proxy, WorkerId, WorkerStatus};
use crate::store::{Assigned, Opened, Opening, Supervises};

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
