//! Exchanges and queues: one topic exchange, one quorum queue per task type, one dead-letter
//! queue. A queue that someone declared with other arguments is used as it is, and said so.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ExchangeKind, Queue};

use super::Broker;

const DELIVERY_LIMIT: i32 = 20;

pub(super) fn exchange(broker: &Broker) -> String {
    format!("{}.tasks", broker.config.prefix)
}

pub(super) fn dead_queue(broker: &Broker) -> String {
    format!("{}.tasks.dead", broker.config.prefix)
}

fn dead_exchange(broker: &Broker) -> String {
    format!("{}.tasks.dlx", broker.config.prefix)
}

pub(super) fn queue(broker: &Broker, kind: &str) -> String {
    format!("{}.tasks.queue.{kind}", broker.config.prefix)
}

/// The exchanges and the dead-letter queue.
pub(super) async fn declare(broker: &Broker, connection: &Connection) -> Result<(), lapin::Error> {
    let channel = connection.create_channel().await?;
    let durable = ExchangeDeclareOptions { durable: true, ..Default::default() };
    for (name, kind) in
        [(exchange(broker), ExchangeKind::Topic), (dead_exchange(broker), ExchangeKind::Fanout)]
    {
        channel.exchange_declare(name.into(), kind, durable, FieldTable::default()).await?;
    }
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    make(broker, connection, &dead_queue(broker), arguments).await?;
    bind(&channel, &dead_queue(broker), &dead_exchange(broker), "#").await?;
    let _done = channel.close(200, "declared".into()).await;
    Ok(())
}

/// The queue of a task type, bound to the exchange.
pub(super) async fn declare_queue(
    broker: &Broker,
    connection: &Connection,
    kind: &str,
) -> Result<Queue, lapin::Error> {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments.insert("x-dead-letter-exchange".into(), text(&dead_exchange(broker)));
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    arguments.insert("x-overflow".into(), text("reject-publish"));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(DELIVERY_LIMIT));
    let name = queue(broker, kind);
    let made = make(broker, connection, &name, arguments).await?;
    let channel = connection.create_channel().await?;
    bind(&channel, &name, &exchange(broker), kind).await?;
    let _done = channel.close(200, "declared".into()).await;
    Ok(made)
}

/// A declaration with other arguments closes the channel, so each has one of its own.
async fn make(
    broker: &Broker,
    connection: &Connection,
    name: &str,
    arguments: FieldTable,
) -> Result<Queue, lapin::Error> {
    let channel = connection.create_channel().await?;
    let durable = QueueDeclareOptions { durable: true, ..Default::default() };
    match channel.queue_declare(name.into(), durable, arguments).await {
        Ok(queue) => {
            let _done = channel.close(200, "declared".into()).await;
            Ok(queue)
        }
        Err(error) if error.is_amqp_soft_error() => {
            let channel = connection.create_channel().await?;
            let passive = QueueDeclareOptions { passive: true, ..Default::default() };
            let queue = channel.queue_declare(name.into(), passive, FieldTable::default()).await?;
            if !broker.health().foreign_queues.iter().any(|known| known == name) {
                tracing::warn!(queue = name, %error, "the queue exists with other arguments and is used as it is");
                broker.note(|health| health.foreign_queues.push(name.to_owned()));
            }
            let _done = channel.close(200, "declared".into()).await;
            Ok(queue)
        }
        Err(error) => Err(error),
    }
}

async fn bind(
    channel: &Channel,
    queue: &str,
    exchange: &str,
    key: &str,
) -> Result<(), lapin::Error> {
    let options = QueueBindOptions::default();
    channel
        .queue_bind(queue.into(), exchange.into(), key.into(), options, FieldTable::default())
        .await
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}
