//! A process at work: a runner with the deliveries, and a watcher.

use std::time::Duration;

use lavra_notify::watch::{self, Config};
use lavra_notify::{Delivery, POLICY};
use lavra_tasks::{Registry, Runner, RunnerConfig};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::World;
use super::world::timing;

pub(crate) struct Running {
    stop: CancellationToken,
    parts: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(world: &World) -> Self {
        let stop = CancellationToken::new();
        let delivery = Delivery::new(world.webhooks.clone(), timing());
        let registry = Registry::default().with(delivery, POLICY);
        let config = RunnerConfig { poll: Duration::from_millis(20), ..RunnerConfig::default() };
        let runner = Runner::new(world.tasks.clone(), registry, config);
        let config = Config { every: Duration::from_millis(20), ..Config::default() };
        let (webhooks, tasks, last) = (world.webhooks.clone(), world.tasks.clone(), stop.clone());
        let watcher = async move { watch::watch(&webhooks, &tasks, config, last).await };
        let parts = vec![tokio::spawn(runner.run(stop.clone())), tokio::spawn(watcher)];
        Self { stop, parts }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        for part in self.parts {
            part.await.unwrap();
        }
    }
}
