//! The consumer: messages that ring, held until the claim that they caused has committed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::SelectAll;
use lapin::Acker;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::FieldTable;
use lapin::{Connection, Consumer};
use serde::Deserialize;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::{Broker, session, topology};

/// The messages of the types that a runner handles.
#[derive(Debug)]
pub(crate) struct Inbox {
    rung: Arc<Rung>,
    marked: usize,
    _stop: DropGuard,
}

#[derive(Debug, Default)]
struct Rung {
    waiting: Mutex<Vec<Acker>>,
    bell: Notify,
}

/// What a message must at least say to be one of ours.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(rename = "taskId")]
    _task_id: Uuid,
    #[serde(rename = "type")]
    _kind: String,
}

impl Rung {
    fn waiting(&self) -> MutexGuard<'_, Vec<Acker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox {
    pub(super) fn start(broker: Broker, kinds: Vec<String>) -> Self {
        let rung = Arc::new(Rung::default());
        let stop = CancellationToken::new();
        let (shared, ends) = (Arc::clone(&rung), stop.clone());
        tokio::spawn(async move {
            let mut dialer = session::Dialer::new(&broker, &ends);
            while let Some(connection) = dialer.connect().await {
                let outcome = tokio::select! {
                    outcome = consume(&broker, &connection, &kinds, &shared) => outcome,
                    () = ends.cancelled() => Ok(()),
                };
                // They belong to a connection that is gone; the broker delivers them again.
                shared.waiting().clear();
                if let Err(error) = &outcome {
                    dialer.broke(&error.to_string());
                }
                session::close(connection).await;
                if outcome.is_ok() {
                    return;
                }
            }
        });
        Self { rung, marked: 0, _stop: stop.drop_guard() }
    }

    /// The claim that comes now answers every message that is here already.
    pub(crate) fn mark(&mut self) {
        self.marked = self.rung.waiting().len();
    }

    /// The claim has committed. If it took all that waited, it answered every marked message;
    /// otherwise as many as it took tasks.
    pub(crate) async fn answered(&mut self, tasks: usize, took_all: bool) {
        let last = {
            let mut waiting = self.rung.waiting();
            let marked = self.marked.min(waiting.len());
            let count = if took_all { marked } else { tasks.min(marked) };
            waiting.drain(..count).next_back()
        };
        self.marked = 0;
        // All that came before it on its channel is answered as well, or was refused.
        if let Some(message) = last
            && let Err(error) = message.ack(BasicAckOptions { multiple: true }).await
        {
            tracing::debug!(%error, "messages could not be acknowledged; they come again");
        }
    }

    pub(crate) async fn rung(&self) {
        self.rung.bell.notified().await;
    }
}

async fn consume(
    broker: &Broker,
    connection: &Connection,
    kinds: &[String],
    rung: &Rung,
) -> Result<(), lapin::Error> {
    topology::declare(broker, connection).await?;
    let channel = connection.create_channel().await?;
    channel.basic_qos(broker.config.prefetch, BasicQosOptions::default()).await?;
    let mut consumers: SelectAll<Consumer> = SelectAll::new();
    for kind in kinds {
        topology::declare_queue(broker, connection, kind).await?;
        let queue = topology::queue(broker, kind);
        let consumer = channel
            .basic_consume(
                queue.into(),
                "".into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            )
            .await?;
        consumers.push(consumer);
    }
    broker.note(|health| health.connected = true);
    while let Some(delivery) = consumers.next().await {
        receive(delivery?, rung).await?;
    }
    Err(lapin::ErrorKind::MissingHeartbeatError.into())
}

/// What cannot be read goes to the dead letters at once; anything else rings.
async fn receive(delivery: Delivery, rung: &Rung) -> Result<(), lapin::Error> {
    if let Err(error) = serde_json::from_slice::<Message>(&delivery.data) {
        tracing::warn!(%error, bytes = delivery.data.len(), "a message cannot be read; to the dead letters");
        delivery.reject(BasicRejectOptions { requeue: false }).await?;
        return Ok(());
    }
    rung.waiting().push(delivery.acker);
    rung.bell.notify_one();
    Ok(())
}
