//! The database is away for a while: connections are cut and refused.

use std::time::Duration;

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lavra_tasks::model::Status;
use lavra_tasks::{Broker, Policy, RunnerConfig};
use lavra_testkit::Server;
use serde_json::json;
use uuid::Uuid;

use super::ambiguous::behind;
use super::broker::{amqp, by_message_only, channel, config, publish, until};
use super::proxy::Proxy;
use super::rig::Rig;
use crate::support::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_is_asked_now_and_then() {
    let world = World::on_postgres().await;
    let proxy = Proxy::to(Server::address()).await;
    let mut rig = Rig::on(&behind(&proxy, &world).await, Policy::default(), None).await;
    rig.run(RunnerConfig { poll: Duration::from_millis(20), ..RunnerConfig::default() });
    let before = rig.order(json!({ "do": "complete" })).await;
    rig.until_status(before, Status::Completed).await;

    proxy.down(true);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = proxy.refused();
    assert!((1..=20).contains(&asked), "asked {asked} times in three seconds");
    proxy.down(false);
    let after = Rig::new(&world).await.order(json!({ "do": "complete" })).await;
    rig.until_status(after, Status::Completed).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_failed_answers_no_message() {
    let world = World::on_postgres().await;
    let proxy = Proxy::to(Server::address()).await;
    let config = config(amqp());
    let prefix = config.prefix.clone();
    let broker = Broker::new(config);
    let database = behind(&proxy, &world).await;
    let mut rig = Rig::on(&database, Policy::default(), Some(broker.clone())).await;
    rig.run(by_message_only());
    until("the connection", Duration::from_secs(10), async || broker.health().connected).await;
    let (_connection, channel) = channel().await;
    let queue = format!("{prefix}.tasks.queue.act");
    let messages = async || {
        let passive = QueueDeclareOptions { passive: true, ..Default::default() };
        let asked = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default());
        asked.await.unwrap().message_count()
    };

    proxy.down(true);
    let body = json!({ "taskId": Uuid::new_v4(), "type": "act" }).to_string();
    publish(&channel, &prefix, body.as_bytes()).await;
    until("the delivery", Duration::from_secs(10), async || messages().await == 0).await;
    let begun = proxy.refused();
    until("some claims", Duration::from_secs(20), async || proxy.refused() >= begun + 3).await;
    // What was delivered and not answered goes back with the connection.
    rig.stop().await;
    until("the message again", Duration::from_secs(10), async || messages().await == 1).await;
}
