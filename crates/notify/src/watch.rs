//! The watcher: reads what happened and makes a delivery of each fact for each webhook that wants
//! it. Every process that runs tasks has one; a lease decides whose turn it is.
//!
//! A fact and a webhook are one task, by its input hash. So it does no harm to be killed after the
//! tasks were made and before the reader moved on, or to be frozen and wake beside another watcher:
//! what is asked for a second time is there already.

use std::time::{Duration, Instant};

use lavra_tasks::Tasks;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::deliver::Order;
use crate::error::Result;
use crate::fact::facts;
use crate::model::Webhook;
use crate::service::Webhooks;
use crate::store::{Reading, Store};

#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Between looks.
    pub every: Duration,
    /// Rows that are read at once, of each kind.
    pub batch: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { every: Duration::from_secs(1), batch: 200 }
    }
}

const LEASE: &str = "webhook-watcher";
const LEASE_LENGTH: Duration = Duration::from_secs(10);
/// Where nothing happened, the position is written only so often.
const MOVE_EVERY: Duration = Duration::from_secs(10);
/// Tasks that are made in one transaction.
const TASKS: usize = 500;

/// Watches until `stop`, whenever the lease is its own.
pub async fn watch(webhooks: &Webhooks, tasks: &Tasks, config: Config, stop: CancellationToken) {
    let mut watcher = Watcher::new(webhooks.store(), tasks, config);
    loop {
        tokio::select! {
            () = tokio::time::sleep(config.every) => {}
            () = stop.cancelled() => break,
        }
        if let Err(error) = watcher.round().await {
            tracing::warn!(%error, "a look for what webhooks are to be told failed; it comes again");
        }
    }
    watcher.leave().await;
}

/// One who watches, for those who want to have it look when they say.
#[derive(Debug)]
pub struct Watcher<'a> {
    store: &'a dyn Store,
    tasks: &'a Tasks,
    config: Config,
    me: Uuid,
    moved: Option<Instant>,
}

impl<'a> Watcher<'a> {
    pub fn new(store: &'a dyn Store, tasks: &'a Tasks, config: Config) -> Self {
        Self { store, tasks, config, me: Uuid::new_v4(), moved: None }
    }

    /// Looks once, and tells all that there is; says how many deliveries were made. None if it is
    /// another's turn.
    pub async fn round(&mut self) -> Result<usize> {
        let mut made = 0;
        while self.is_my_turn().await? {
            let webhooks = self.store.webhooks().await?;
            if !webhooks.iter().any(|webhook| webhook.active) {
                if self.should_move() {
                    self.store.pass_by().await?;
                    self.moved = Some(Instant::now());
                }
                break;
            }
            let Some(reading) = self.store.read(self.config.batch).await? else { break };
            made += self.tell(&reading, &webhooks).await?;
            if !reading.is_empty() || self.should_move() {
                self.store.told(&reading).await?;
                self.moved = Some(Instant::now());
            }
            if !reading.has_more {
                break;
            }
        }
        Ok(made)
    }

    async fn is_my_turn(&self) -> Result<bool> {
        let lease = self.tasks.leases().acquire(LEASE, self.me, LEASE_LENGTH).await;
        Ok(lease?.is_some())
    }

    fn should_move(&self) -> bool {
        self.moved.is_none_or(|moved| moved.elapsed() >= MOVE_EVERY)
    }

    async fn tell(&self, reading: &Reading, webhooks: &[Webhook]) -> Result<usize> {
        let mut wanted = Vec::new();
        for fact in facts(reading) {
            let of_fact = webhooks.iter().filter(|webhook| webhook.wants(fact.topic, fact.at()));
            wanted.extend(of_fact.map(|webhook| {
                Order { webhook: webhook.id, event: fact.notification.clone() }.into_task()
            }));
        }
        let mut made = 0;
        for part in wanted.chunks(TASKS) {
            let created = self.tasks.create_all(part.to_vec()).await?;
            made += created.iter().filter(|created| created.new).count();
        }
        if made > 0 {
            tracing::info!(deliveries = made, "webhooks are being told");
        }
        Ok(made)
    }

    /// Gives the turn to another, at once.
    pub async fn leave(&self) {
        if let Ok(Some(lease)) = self.tasks.leases().acquire(LEASE, self.me, LEASE_LENGTH).await {
            let _expires_anyway = self.tasks.leases().release(&lease).await;
        }
    }
}
