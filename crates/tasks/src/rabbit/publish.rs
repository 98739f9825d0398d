//! The publisher: what was just committed, and what a crash or an outage left in the outbox.
//!
//! A row goes only when the broker has confirmed its message, and only `Ack(None)` is delivery:
//! an unroutable message is confirmed as well, with the message returned.

use std::collections::HashSet;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{Broker, dead, topology};
use crate::service::Tasks;
use crate::store::Announcement;

const BATCH: usize = 500;
const LEASE: Duration = Duration::from_secs(30);
const POSTPONE: Duration = Duration::from_secs(5);
const PERSISTENT: u8 = 2;
/// The most that is announced again in one look.
const REANNOUNCE: usize = 1000;

pub(super) async fn work(
    broker: &Broker,
    tasks: &Tasks,
    connection: &Connection,
    arrivals: &mut mpsc::Receiver<Vec<Announcement>>,
    stop: &CancellationToken,
) -> Result<(), lapin::Error> {
    topology::declare(broker, connection).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let mut publisher = Publisher { broker, tasks, connection, channel, declared: HashSet::new() };
    let mut dead = dead::Letters::open(broker, connection).await?;
    broker.note(|health| {
        health.connected = true;
        health.trouble = None;
    });
    tracing::info!("RabbitMQ is connected");
    let mut sweep = tokio::time::interval(broker.config.sweep);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reconciled = Instant::now();
    loop {
        let mut batches = Vec::new();
        tokio::select! {
            _ = arrivals.recv_many(&mut batches, 64) => {
                let all: Vec<Announcement> = batches.into_iter().flatten().collect();
                for part in all.chunks(BATCH) {
                    publisher.publish(part).await?;
                }
            }
            _ = sweep.tick() => {
                publisher.sweep().await?;
                if reconciled.elapsed() >= broker.config.reannounce_after {
                    publisher.reconcile().await?;
                    reconciled = Instant::now();
                }
            }
            letter = dead.next() => dead::keep(tasks, letter?).await?,
            () = stop.cancelled() => return Ok(()),
        }
    }
}

struct Publisher<'a> {
    broker: &'a Broker,
    tasks: &'a Tasks,
    connection: &'a Connection,
    channel: Channel,
    declared: HashSet<String>,
}

impl Publisher<'_> {
    async fn publish(&mut self, batch: &[Announcement]) -> Result<(), lapin::Error> {
        let mut under_way = Vec::with_capacity(batch.len());
        for announcement in batch {
            self.ensure_queue(&announcement.kind).await?;
            let confirm = self.send(announcement).await?;
            under_way.push((announcement.id, confirm));
        }
        let (mut delivered, mut refused) = (Vec::new(), Vec::new());
        for (id, confirm) in under_way {
            match confirm.await? {
                Confirmation::Ack(None) => delivered.push(id),
                Confirmation::Ack(Some(_)) | Confirmation::Nack(_) | Confirmation::NotRequested => {
                    refused.push(id);
                }
            }
        }
        metrics::counter!("lavra_outbox_published_total").increment(delivered.len() as u64);
        if !delivered.is_empty()
            && let Err(error) = self.tasks.store().announced(delivered).await
        {
            // They are published again by the sweep; a doubled message does no harm.
            tracing::warn!(%error, "published messages stay in the outbox for now");
        }
        if !refused.is_empty() {
            tracing::warn!(count = refused.len(), "RabbitMQ did not take messages; later again");
            self.declared.clear();
            let _sweep_finds_them = self.tasks.store().postpone(refused, POSTPONE).await;
        }
        Ok(())
    }

    async fn send(
        &self,
        announcement: &Announcement,
    ) -> Result<lapin::PublisherConfirm, lapin::Error> {
        let id = announcement.task.to_string();
        let body = json!({ "taskId": id, "type": announcement.kind }).to_string();
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_content_type("application/json".into())
            .with_message_id(id.as_str().into())
            .with_correlation_id(id.as_str().into())
            .with_type(announcement.kind.as_str().into());
        let options = BasicPublishOptions { mandatory: true, ..Default::default() };
        self.channel
            .basic_publish(
                topology::exchange(self.broker).into(),
                announcement.kind.as_str().into(),
                options,
                body.as_bytes(),
                properties,
            )
            .await
    }

    async fn ensure_queue(&mut self, kind: &str) -> Result<(), lapin::Error> {
        if !self.declared.contains(kind) {
            topology::declare_queue(self.broker, self.connection, kind).await?;
            self.declared.insert(kind.to_owned());
        }
        Ok(())
    }

    /// What nobody is publishing: a creator that died, or an outage.
    async fn sweep(&mut self) -> Result<(), lapin::Error> {
        loop {
            let taken = match self.tasks.store().take_announcements(LEASE, BATCH).await {
                Ok(taken) => taken,
                Err(error) => {
                    tracing::warn!(%error, "the outbox cannot be read");
                    return Ok(());
                }
            };
            if taken.is_empty() {
                return Ok(());
            }
            self.publish(&taken).await?;
            if taken.len() < BATCH {
                return Ok(());
            }
        }
    }

    /// Tasks that wait while their queue is empty have lost their messages (a purged queue, a
    /// broker that lost its data): announce them again.
    async fn reconcile(&mut self) -> Result<(), lapin::Error> {
        let Ok(waiting) = self.tasks.store().waiting().await else { return Ok(()) };
        for backlog in waiting {
            let queue =
                topology::declare_queue(self.broker, self.connection, &backlog.kind).await?;
            if queue.message_count() > 0 {
                continue;
            }
            let age = self.broker.config.reannounce_after;
            let again = self.tasks.store().announce_again(backlog.kind.clone(), age, REANNOUNCE);
            match again.await {
                Ok(0) => {}
                Ok(count) => tracing::warn!(
                    count,
                    kind = backlog.kind,
                    "waiting tasks that no message announced are announced again"
                ),
                Err(error) => tracing::warn!(%error, "waiting tasks could not be announced again"),
            }
        }
        Ok(())
    }
}
