//! Everything that happens to orchestrators, and what people do meanwhile.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lavra_fleet::Bell;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::memory::{Freezer, Memory};
use lavra_fleet::model::{MissionId, MissionStatus};
use lavra_fleet::store::{Edit, Filter, Thing, Things, Wishes};
use rand::RngExt;
use rand::rngs::SmallRng;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::transport::Wires;
use super::{Scenario, some};

pub(super) struct Stage {
    pub(super) memory: Memory,
    pub(super) wires: Arc<Wires>,
    pub(super) bell: Bell,
    pub(super) seed: u64,
    /// Missions that a person has tried again: what was written may be written again.
    pub(super) tried_again: Mutex<BTreeSet<MissionId>>,
}

/// A process that orchestrates.
struct Life {
    supervising: JoinHandle<()>,
    freezer: Freezer,
    stop: CancellationToken,
}

impl Drop for Life {
    /// As `kill -9` does.
    fn drop(&mut self) {
        self.supervising.abort();
    }
}

fn born(stage: &Stage, number: u64) -> Life {
    let freezer = Freezer::default();
    let orchestrator = stage.orchestrator(number, Some(freezer.clone()));
    let stop = CancellationToken::new();
    let until = stop.clone();
    let supervising = tokio::spawn(async move {
        if let Err(error) = orchestrator.supervise(&until).await {
            tracing::error!(%error, "supervising ended");
        }
    });
    Life { supervising, freezer, stop }
}

/// Starts the orchestrators, and then kills, stops and freezes them now and then; people cancel,
/// retry and reactivate proxies.
pub(super) async fn play(stage: &Stage, scenario: &Scenario, dice: &mut SmallRng) -> Infallible {
    let mut born_so_far = 1;
    let mut lives: Vec<Life> = Vec::new();
    for _ in 0..scenario.orchestrators {
        lives.push(born(stage, born_so_far));
        born_so_far += 1;
    }
    let mut retries = scenario.missions / 10;
    loop {
        tokio::time::sleep(some(dice, 20, 600)).await;
        operate(stage, dice, scenario.chaos, &mut retries).await;
        if !scenario.chaos {
            continue;
        }
        let place = dice.random_range(0..lives.len());
        match dice.random_range(0..10) {
            // Killed, and started again after a while.
            0..4 => {
                drop(lives.remove(place));
                tokio::time::sleep(some(dice, 0, 60)).await;
                lives.push(born(stage, born_so_far));
                born_so_far += 1;
            }
            // Told to end: it leaves its jobs to whoever comes next.
            4 => {
                let mut life = lives.remove(place);
                life.stop.cancel();
                let ended = tokio::time::timeout(Duration::from_secs(120), &mut life.supervising);
                drop(ended.await);
                lives.push(born(stage, born_so_far));
                born_so_far += 1;
            }
            // Frozen past its lease, and woken: what it still wants to write is refused.
            5..8 => {
                let life = &lives[place];
                life.freezer.freeze();
                tokio::time::sleep(some(dice, 1, 120)).await;
                life.freezer.thaw();
            }
            _ => {}
        }
    }
}

/// What an operator does: proxies that were deactivated are made active again, and now and then a
/// mission is cancelled or one that failed is tried again.
async fn operate(stage: &Stage, dice: &mut SmallRng, chaos: bool, retries: &mut usize) {
    let idle: Vec<_> = {
        let tables = stage.memory.tables();
        tables.proxies.values().filter(|proxy| !proxy.active).map(|p| p.id.clone()).collect()
    };
    for id in idle {
        let edit = Edit { active: Some(true), ..Edit::default() };
        let _always = stage.memory.edit(&Thing::Proxy(id), edit).await;
    }
    if chaos {
        let pick = |status: &[MissionStatus], dice: &mut SmallRng| -> Option<MissionId> {
            let tables = stage.memory.tables();
            let fit: Vec<_> =
                tables.missions.values().filter(|m| status.contains(&m.status)).collect();
            let place = dice.random_range(0..fit.len().max(1));
            fit.get(place).map(|mission| mission.id.clone())
        };
        let running = [MissionStatus::Running, MissionStatus::Queued];
        let wish = match dice.random_range(0..6) {
            0 => pick(&running, dice).map(|id| (id, Wish::Cancel)),
            1 | 2 if *retries > 0 => {
                *retries -= 1;
                let from_scrape = dice.random_bool(0.5);
                pick(&[MissionStatus::Failed], dice).map(|id| (id, Wish::Retry { from_scrape }))
            }
            _ => None,
        };
        if let Some((id, wish)) = wish {
            if let Wish::Retry { .. } = wish {
                let mut again = stage.tried_again.lock().unwrap_or_else(PoisonError::into_inner);
                again.insert(id.clone());
            }
            let filter = Filter { ids: vec![id], ..Filter::default() };
            let _always = stage.memory.wish(&filter, wish, "user").await;
        }
    }
    stage.bell.work();
}
