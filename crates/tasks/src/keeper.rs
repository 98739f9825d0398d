//! What one process at a time does for all: takeover of what a dead process held, stops that
//! nobody confirmed, schedules that are due. Every process runs it; a lease with a term decides
//! whose turn it is, and every write is guarded anyway.

use std::time::Duration;

use lavra_db::Lease;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cron;
use crate::error::Result;
use crate::machine::Happening;
use crate::service::Tasks;

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub every: Duration,
    /// A process that has not renewed its row for this long is dead.
    pub stale: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { every: Duration::from_secs(1), stale: Duration::from_secs(10) }
    }
}

const LEASE: &str = "tasks-keeper";
const LEASE_LENGTH: Duration = Duration::from_secs(5);
const BATCH: usize = 500;

/// Keeps until `stop`, whenever the lease is ours.
pub async fn keep(tasks: Tasks, config: Config, stop: CancellationToken) {
    let me = Uuid::new_v4();
    let mut held = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(config.every) => {}
            () = stop.cancelled() => break,
        }
        match round(&tasks, &config, me).await {
            Ok(lease) => held = lease,
            Err(error) => tracing::warn!(%error, "the keeper's round failed; it comes again"),
        }
    }
    if let Some(lease) = held {
        let _expires_anyway = tasks.leases().release(&lease).await;
    }
}

/// The lease, if it is ours.
async fn round(tasks: &Tasks, config: &Config, me: Uuid) -> Result<Option<Lease>> {
    let Some(lease) = tasks.leases().acquire(LEASE, me, LEASE_LENGTH).await? else {
        return Ok(None);
    };
    take_over(tasks, config.stale).await?;
    give_up_stops(tasks).await?;
    cron::fire_due(tasks).await?;
    Ok(Some(lease))
}

/// What a dead process held goes back to the queue, counted as an attempt; past its retries it
/// has failed, so that a task that kills its process cannot do so for ever.
async fn take_over(tasks: &Tasks, stale: Duration) -> Result<()> {
    loop {
        let orphans = tasks.store().orphans(stale, BATCH).await?;
        let count = orphans.len();
        let mut taken = 0;
        for task in orphans {
            let reason = match task.process {
                Some(process) => format!("the process {process} stopped answering"),
                None => "the process that ran it is unknown".to_owned(),
            };
            let retry_in = Duration::ZERO;
            let happening = Happening::Lose { reason: reason.clone(), retry_in };
            if tasks.apply(&task, &happening).await? {
                taken += 1;
                tracing::warn!(task = %task.id, kind = task.kind, reason, "taken over");
                metrics::counter!("lavra_task_takeovers_total").increment(1);
            }
        }
        if taken > 0 {
            tasks.ring();
        }
        if count < BATCH {
            return Ok(());
        }
    }
}

async fn give_up_stops(tasks: &Tasks) -> Result<()> {
    for task in tasks.store().overdue_stops(BATCH).await? {
        if tasks.apply(&task, &Happening::GiveUpStop).await? {
            tracing::warn!(task = %task.id, "the worker of a cancelled task did not confirm that it stopped");
        }
    }
    Ok(())
}
