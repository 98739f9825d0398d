//! The publisher: what was just committed, and what a crash or an outage left in the outbox.
//!
//! A row goes only when the broker has confirmed its message, and only `Ack(None)` is delivery:
//! an unroutable message is confirmed as well, with the message returned. While the confirms of
//! one batch are under way the next are sent, up to a few.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection, PublisherConfirm};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{Broker, dead, topology};
use crate::model::OutboxId;
use crate::service::Tasks;
use crate::store::Announcement;

const BATCH: usize = 1000;
const UNDER_WAY: usize = 4;
/// How long sending a batch, or its confirms, may take.
const LIMIT: Duration = Duration::from_secs(20);
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
    let (declared, under_way) = (HashSet::new(), JoinSet::new());
    let mut publisher = Publisher { broker, tasks, connection, channel, declared, under_way };
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
        let has_room = publisher.under_way.len() < UNDER_WAY;
        let mut batches = Vec::new();
        tokio::select! {
            _ = arrivals.recv_many(&mut batches, 64), if has_room => {
                let all: Vec<Announcement> = batches.into_iter().flatten().collect();
                for part in all.chunks(BATCH) {
                    publisher.publish(part).await?;
                }
            }
            Some(settled) = publisher.under_way.join_next() => publisher.settled(settled)?,
            _ = sweep.tick(), if has_room => {
                if publisher.sweep().await? == BATCH {
                    sweep.reset_immediately();
                }
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
    /// Batches whose confirms are awaited.
    under_way: JoinSet<Result<Refused, lapin::Error>>,
}

/// Whether the broker did not take some message of a batch.
type Refused = bool;

impl Publisher<'_> {
    async fn publish(&mut self, batch: &[Announcement]) -> Result<(), lapin::Error> {
        let sent = in_time(self.send_all(batch)).await?;
        self.under_way.spawn(settle(self.tasks.clone(), sent));
        Ok(())
    }

    async fn send_all(
        &mut self,
        batch: &[Announcement],
    ) -> Result<Vec<(OutboxId, PublisherConfirm)>, lapin::Error> {
        for announcement in batch {
            self.ensure_queue(&announcement.kind).await?;
        }
        // All at once: one by one, each would wait for the connection's thread to have written it.
        let sending = batch.iter().map(async |announcement| {
            self.send(announcement).await.map(|confirm| (announcement.id, confirm))
        });
        try_join_all(sending).await
    }

    fn settled(
        &mut self,
        settled: Result<Result<Refused, lapin::Error>, JoinError>,
    ) -> Result<(), lapin::Error> {
        // A batch that panicked is published again by the sweep.
        if settled.unwrap_or(Ok(true))? {
            self.declared.clear();
        }
        Ok(())
    }

    async fn send(&self, announcement: &Announcement) -> Result<PublisherConfirm, lapin::Error> {
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

    /// What nobody is publishing: a creator that died, or an outage. Says how many it found.
    async fn sweep(&mut self) -> Result<usize, lapin::Error> {
        match self.tasks.store().take_announcements(LEASE, BATCH).await {
            Ok(taken) if taken.is_empty() => Ok(0),
            Ok(taken) => self.publish(&taken).await.map(|()| taken.len()),
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read");
                Ok(0)
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

/// A connection that is cut in the wrong moment may never say so.
async fn in_time<T>(
    work: impl Future<Output = Result<T, lapin::Error>>,
) -> Result<T, lapin::Error> {
    match tokio::time::timeout(LIMIT, work).await {
        Ok(outcome) => outcome,
        Err(_) => {
            tracing::warn!(limit = ?LIMIT, "RabbitMQ does not answer; connecting anew");
            Err(lapin::ErrorKind::MissingHeartbeatError.into())
        }
    }
}

/// Waits for the confirms of a batch and removes what was delivered from the outbox.
async fn settle(
    tasks: Tasks,
    sent: Vec<(OutboxId, PublisherConfirm)>,
) -> Result<Refused, lapin::Error> {
    let (delivered, refused) = in_time(confirmed(sent)).await?;
    metrics::counter!("lavra_outbox_published_total").increment(delivered.len() as u64);
    if !delivered.is_empty()
        && let Err(error) = tasks.store().announced(delivered).await
    {
        // They are published again by the sweep; a doubled message does no harm.
        tracing::warn!(%error, "published messages stay in the outbox for now");
    }
    if refused.is_empty() {
        return Ok(false);
    }
    tracing::warn!(count = refused.len(), "RabbitMQ did not take messages; later again");
    let _sweep_finds_them = tasks.store().postpone(refused, POSTPONE).await;
    Ok(true)
}

/// Which messages the broker took, and which it did not.
async fn confirmed(
    sent: Vec<(OutboxId, PublisherConfirm)>,
) -> Result<(Vec<OutboxId>, Vec<OutboxId>), lapin::Error> {
    let (mut delivered, mut refused) = (Vec::with_capacity(sent.len()), Vec::new());
    for (id, confirm) in sent {
        match confirm.await? {
            Confirmation::Ack(None) => delivered.push(id),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(_) | Confirmation::NotRequested => {
                refused.push(id);
            }
        }
    }
    Ok((delivered, refused))
}
