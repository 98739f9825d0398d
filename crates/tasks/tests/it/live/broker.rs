//! RabbitMQ: a doorbell that may be away.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lapin::options::{
    BasicPublishOptions, QueueDeclareOptions, QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use lavra_tasks::model::Status;
use lavra_tasks::{Broker, BrokerConfig, NewTask, Policy, RunnerConfig};
use serde_json::json;
use uuid::Uuid;

use super::proxy::Proxy;
use super::rig::Rig;
use crate::support::{World, on_each_engine};

on_each_engine!(
    a_task_is_delivered_by_a_message,
    what_is_not_a_message_becomes_a_dead_letter,
    messages_for_nothing_and_doubled_ones_do_no_harm,
    a_queue_with_other_arguments_is_used_as_it_is,
    a_purged_queue_is_filled_again,
);

pub(super) fn amqp() -> String {
    std::env::var("LAVRA_TEST_AMQP")
        .expect("LAVRA_TEST_AMQP is not set: run it by cargo xtask test")
}

/// Names of its own for each test, so that they do not take each other's messages.
pub(super) fn config(url: String) -> BrokerConfig {
    BrokerConfig {
        prefix: format!("test.{}", Uuid::new_v4().simple()),
        sweep: Duration::from_millis(100),
        reannounce_after: Duration::from_secs(1),
        ..BrokerConfig::new(url)
    }
}

async fn rig(world: &World, config: BrokerConfig) -> (Rig, Broker) {
    let broker = Broker::new(config);
    let mut rig = Rig::with(world, Policy::default(), Some(broker.clone())).await;
    let publisher = broker.clone();
    rig.spawn(move |tasks, stop| tokio::spawn(async move { publisher.run(tasks, stop).await }));
    (rig, broker)
}

pub(super) async fn until(what: &str, patience: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < patience, "it never came: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(super) async fn channel() -> (Connection, Channel) {
    let connection = Connection::connect(&amqp(), ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    (connection, channel)
}

pub(super) async fn publish(channel: &Channel, prefix: &str, body: &[u8]) {
    let exchange = format!("{prefix}.tasks");
    let sent = channel.basic_publish(
        exchange.into(),
        "act".into(),
        BasicPublishOptions::default(),
        body,
        BasicProperties::default(),
    );
    sent.await.unwrap().await.unwrap();
}

/// Polling is so slow here that only a message can have brought it.
pub(super) fn by_message_only() -> RunnerConfig {
    let poll = Duration::from_secs(3600);
    RunnerConfig { poll, poll_blind: poll, ..RunnerConfig::default() }
}

async fn a_task_is_delivered_by_a_message(world: World) {
    let (mut rig, broker) = rig(&world, config(amqp())).await;
    rig.run(by_message_only());
    until("the connection", Duration::from_secs(10), async || broker.health().connected).await;
    for _ in 0..20 {
        let id = rig.order(json!({ "do": "complete" })).await;
        rig.until_status(id, Status::Completed).await;
    }
    until("an empty outbox", Duration::from_secs(5), async || {
        rig.tasks.store().outbox_depth().await.unwrap() == 0
    })
    .await;
    rig.stop().await;
}

async fn what_is_not_a_message_becomes_a_dead_letter(world: World) {
    let config = config(amqp());
    let prefix = config.prefix.clone();
    let (mut rig, broker) = rig(&world, config).await;
    rig.run(RunnerConfig::default());
    until("the connection", Duration::from_secs(10), async || broker.health().connected).await;
    // The queue is there when a first task has gone through it.
    let id = rig.order(json!({ "do": "complete" })).await;
    rig.until_status(id, Status::Completed).await;
    let (_connection, channel) = channel().await;
    publish(&channel, &prefix, b"this is not JSON").await;
    publish(&channel, &prefix, br#"{"taskId": 7}"#).await;
    until("two dead letters", Duration::from_secs(10), async || {
        rig.tasks.store().dead_letters(None, 10).await.unwrap().len() == 2
    })
    .await;
    let letters = rig.tasks.store().dead_letters(None, 10).await.unwrap();
    assert!(letters.iter().any(|l| l.body.as_deref() == Some("this is not JSON")), "{letters:?}");
    let error = rig.tasks.redrive(&letters[0]).await.unwrap_err();
    assert!(error.to_string().contains("names no task"), "{error}");
    rig.stop().await;
}

async fn messages_for_nothing_and_doubled_ones_do_no_harm(world: World) {
    let config = config(amqp());
    let prefix = config.prefix.clone();
    let (mut rig, broker) = rig(&world, config).await;
    rig.run(by_message_only());
    until("the connection", Duration::from_secs(10), async || broker.health().connected).await;
    let id = rig.order(json!({ "do": "complete" })).await;
    rig.until_status(id, Status::Completed).await;
    let (_connection, channel) = channel().await;
    for task in [id.0, id.0, Uuid::new_v4()] {
        let body = json!({ "taskId": task, "type": "act" }).to_string();
        publish(&channel, &prefix, body.as_bytes()).await;
    }
    let queue = format!("{prefix}.tasks.queue.act");
    until("an empty queue", Duration::from_secs(10), async || {
        let passive = QueueDeclareOptions { passive: true, ..Default::default() };
        let asked = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default());
        asked.await.unwrap().message_count() == 0
    })
    .await;
    let next = rig.order(json!({ "do": "complete" })).await;
    rig.until_status(next, Status::Completed).await;
    assert_eq!(rig.runs.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert!(rig.tasks.store().dead_letters(None, 10).await.unwrap().is_empty());
    rig.stop().await;
}

async fn a_queue_with_other_arguments_is_used_as_it_is(world: World) {
    let config = config(amqp());
    let queue = format!("{}.tasks.queue.act", config.prefix);
    let (_connection, channel) = channel().await;
    let durable = QueueDeclareOptions { durable: true, ..Default::default() };
    channel.queue_declare(queue.as_str().into(), durable, FieldTable::default()).await.unwrap();
    let (mut rig, broker) = rig(&world, config).await;
    rig.run(by_message_only());
    until("the connection", Duration::from_secs(10), async || broker.health().connected).await;
    let id = rig.order(json!({ "do": "complete" })).await;
    rig.until_status(id, Status::Completed).await;
    assert_eq!(broker.health().foreign_queues, std::slice::from_ref(&queue));
    rig.stop().await;
    channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.unwrap();
}

async fn a_purged_queue_is_filled_again(world: World) {
    let config = config(amqp());
    let prefix = config.prefix.clone();
    let (mut rig, broker) = rig(&world, config).await;
    until("the connection", Duration::from_secs(10), async || broker.health().connected).await;
    let id = rig.order(json!({ "do": "complete" })).await;
    until("an empty outbox", Duration::from_secs(10), async || {
        rig.tasks.store().outbox_depth().await.unwrap() == 0
    })
    .await;
    let (_connection, channel) = channel().await;
    let queue = format!("{prefix}.tasks.queue.act");
    let purged = channel.queue_purge(queue.as_str().into(), QueuePurgeOptions::default()).await;
    assert_eq!(purged.unwrap(), 1, "the message was not there to be lost");
    until("a new message", Duration::from_secs(15), async || {
        let passive = QueueDeclareOptions { passive: true, ..Default::default() };
        let asked = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default());
        asked.await.unwrap().message_count() == 1
    })
    .await;
    rig.run(by_message_only());
    rig.until_status(id, Status::Completed).await;
    rig.stop().await;
}

/// The outage is on the wire: the broker is cut off, connections refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_creates_during_an_outage_are_all_delivered() {
    let world = World::on_postgres().await;
    let url = amqp();
    let (_, rest) = url.split_once('@').unwrap();
    let (host, _) = rest.split_once('/').unwrap();
    let server: SocketAddr = host.parse().unwrap();
    let proxy = Proxy::to(server).await;
    let config = config(url.replace(host, &proxy.address.to_string()));
    let (mut rig, broker) = rig(&world, config).await;
    until("the connection", Duration::from_secs(10), async || broker.health().connected).await;
    let usual = creates_in(&rig, 3).await;

    proxy.down(true);
    until("the outage", Duration::from_secs(10), async || !broker.health().connected).await;
    let begun = Instant::now();
    let during = creates_in(&rig, 10).await;
    if let Some(rest) = Duration::from_secs(10).checked_sub(begun.elapsed()) {
        tokio::time::sleep(rest).await;
    }
    assert!(!broker.health().connected, "the broker came back by itself");
    assert!(rig.tasks.store().outbox_depth().await.unwrap() >= 10_000);
    proxy.down(false);

    rig.run(RunnerConfig::default());
    until("an empty outbox", Duration::from_secs(60), async || {
        rig.tasks.store().outbox_depth().await.unwrap() == 0
    })
    .await;
    until("all done", Duration::from_secs(60), async || {
        let sql = "SELECT count(*) FROM kodus_workflow.tasks WHERE status = 'COMPLETED'";
        world.count(sql).await == 13_000
    })
    .await;
    eprintln!("p99 of a create: usually {usual:?}, during the outage {during:?}");
    assert!(during <= usual * 2, "creation slowed down: usually {usual:?}, now {during:?}");
    rig.stop().await;
}

/// A thousand creates in each round; the median of what the rounds say. Tests beside this one may make
/// some of them slow; an outage would make them all.
async fn creates_in(rig: &Rig, rounds: usize) -> Duration {
    let mut said = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        said.push(creates(rig, 1000).await);
    }
    said.sort();
    said[rounds / 2]
}

/// Creates one by one, eight at a time; the 99th percentile of their times.
async fn creates(rig: &Rig, count: usize) -> Duration {
    let each = count / 8;
    let makers = (0..8).map(|_| {
        let tasks = rig.tasks.clone();
        tokio::spawn(async move {
            let mut times = Vec::with_capacity(each);
            for _ in 0..each {
                let task = NewTask {
                    kind: "act".into(),
                    payload: json!({ "do": "complete" }),
                    ..NewTask::default()
                };
                let begun = Instant::now();
                tasks.create(task).await.unwrap();
                times.push(begun.elapsed());
            }
            times
        })
    });
    let mut times = Vec::with_capacity(count);
    for maker in makers.collect::<Vec<_>>() {
        times.extend(maker.await.unwrap());
    }
    times.sort();
    times[times.len() * 99 / 100]
}
