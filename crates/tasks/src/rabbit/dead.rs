//! What the broker gave up on: its dead-letter queue is emptied into the database, where it can
//! be listed and driven again even while the broker is away.

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Connection, Consumer};
use serde::Deserialize;

use super::{Broker, topology};
use crate::model::{DeadLetterId, TaskId};
use crate::service::Tasks;
use crate::store::DeadLetter;

const LONGEST_BODY: usize = 64 * 1024;

pub(super) struct Letters(Consumer);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    task_id: TaskId,
    #[serde(rename = "type")]
    kind: String,
}

impl Letters {
    pub(super) async fn open(
        broker: &Broker,
        connection: &Connection,
    ) -> Result<Self, lapin::Error> {
        let channel = connection.create_channel().await?;
        channel.basic_qos(32, BasicQosOptions::default()).await?;
        let queue = topology::dead_queue(broker);
        let options = BasicConsumeOptions::default();
        let consumer =
            channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await?;
        Ok(Self(consumer))
    }

    pub(super) async fn next(&mut self) -> Result<Delivery, lapin::Error> {
        match self.0.next().await {
            Some(delivery) => delivery,
            None => Err(lapin::ErrorKind::MissingHeartbeatError.into()),
        }
    }
}

/// Stored first, acknowledged then. A task whose message died is failed with the reason, if it
/// still waits.
pub(super) async fn keep(tasks: &Tasks, delivery: Delivery) -> Result<(), lapin::Error> {
    let reason = reason(&delivery);
    let message: Option<Message> = serde_json::from_slice(&delivery.data).ok();
    let kept = match message {
        Some(message) => tasks.bury(message.task_id, &reason).await.map(|buried| {
            tracing::warn!(task = %message.task_id, kind = message.kind, reason, buried, "a message died");
        }),
        None => {
            let mut body = delivery.data.clone();
            body.truncate(LONGEST_BODY);
            let letter = DeadLetter {
                id: DeadLetterId(tasks.store().clock().new_id()),
                task_id: None,
                kind: None,
                reason: format!("the message cannot be read ({reason})"),
                body: Some(String::from_utf8_lossy(&body).into_owned()),
                created_at: tasks.now(),
            };
            tasks.store().bury(letter).await
        }
    };
    match kept {
        Ok(()) => delivery.ack(BasicAckOptions::default()).await.map(|_| ()),
        Err(error) => {
            tracing::warn!(%error, "a dead letter could not be stored; it stays in its queue");
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            delivery
                .nack(BasicNackOptions { requeue: true, ..Default::default() })
                .await
                .map(|_| ())
        }
    }
}

fn reason(delivery: &Delivery) -> String {
    let headers = delivery.properties.headers().as_ref();
    let first = headers.and_then(|table| table.inner().get("x-first-death-reason"));
    match first.and_then(|value| value.as_long_string()) {
        Some(reason) => reason.to_string(),
        None => "dead-lettered".into(),
    }
}
