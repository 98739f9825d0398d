//! The parts of Lavra that a demonstration runs, all in this process: the server with Mission Control,
//! runner and orchestrator, three workers, and the writer. A DuckDB file has one owner, so the writer
//! fills its tables in the same database.

use std::time::Duration;

use anyhow::{Context, anyhow};
use lavra_db::{Database, Secrets};
use lavra_extract::task::Told;
use lavra_fleet::Fleet;
use lavra_fleet::keys::MayMake;
use lavra_fleet::service::{ProxyOrder, Service as Added};
use lavra_tasks::Tasks;
use lavra_worker::{Timing, Worker};
use lavra_writer::{Access, Network};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::outside::{Outside, PROXY_USER};
use super::place::Place;
use crate::commands::writer;
use crate::node::{Node, Parts as NodeParts, keyring, listen, listen_anywhere};
use crate::work::Work;

const WORKERS: usize = 3;
const LOOPBACK: &str = "127.0.0.0/8";
/// How long everything has to end in order; then it ends with the process.
const GRACE: Duration = Duration::from_secs(4);

/// What is asked of them.
pub(super) struct Parts {
    /// Where Mission Control is.
    pub(super) url: String,
    pub(super) database: Database,
    pub(super) tasks: Tasks,
    pub(super) fleet: Fleet,
    /// What happens in extractions.
    pub(super) told: broadcast::Receiver<Told>,
}

/// What runs until `end`.
#[derive(Default)]
pub(super) struct Running {
    parts: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
}

impl Parts {
    pub(super) async fn begin(
        place: &Place,
        outside: &Outside,
        running: &mut Running,
    ) -> anyhow::Result<Self> {
        let settings = &place.settings;
        let parts = NodeParts {
            serve: true,
            work: Work::ALL,
            private_allowed: true,
            ..NodeParts::default()
        };
        let node = Node::open(settings, parts).await?;
        let listener = match listen("--listen", &settings.listen).await {
            Ok(listener) => listener,
            Err(_) => listen_anywhere().await?,
        };
        let all = Self {
            url: format!("http://{}", listener.local_addr()?),
            database: node.database.clone(),
            tasks: node.tasks.clone(),
            fleet: node.fleet.clone(),
            told: node.extract.watch(),
        };
        running.parts.spawn(node.run(Some(listener), running.stop.clone()));
        for number in 1..=WORKERS {
            all.fleet.add_worker(running.worker(number, place, outside).await?).await?;
        }
        for (number, (port, _)) in (1..).zip(&outside.proxies) {
            // Odd ones are asked by HTTP, even ones by SOCKS5.
            let scheme = if number % 2 == 0 { "socks5://" } else { "" };
            let order = ProxyOrder {
                name: format!("proxy-{number}"),
                host: format!("{scheme}127.0.0.1"),
                port: Some(i32::from(*port)),
                username: Some(PROXY_USER.into()),
                password: Some(outside.proxy_password.clone().into()),
            };
            all.fleet.add_proxy(order).await?;
        }
        all.fleet.add_writer(running.writer(&all.database, place).await?).await?;
        Ok(all)
    }
}

impl Running {
    async fn worker(
        &mut self,
        number: usize,
        place: &Place,
        outside: &Outside,
    ) -> anyhow::Result<Added> {
        let (name, key) = (format!("worker-{number}"), new_key());
        let mut source = lavra_worker::ads().map_err(|mistakes| anyhow!("ads: {mistakes}"))?;
        source.base_url = outside.ads_url.parse()?;
        let config = lavra_worker::Config {
            data: place.directory.join(&name),
            api_key: Some(key.clone().into()),
            source,
            endpoint: None,
            storage: None,
            timing: Timing {
                session: Duration::from_secs(20),
                backoff: (Duration::from_millis(100), Duration::from_secs(2)),
                ..Timing::default()
            },
        };
        let worker = Worker::open(config).await?;
        let listener = listen_anywhere().await?;
        let url = format!("http://{}", listener.local_addr()?);
        let stop = self.stop.clone();
        self.parts.spawn(async move { Ok(worker.serve(listener, stop).await?) });
        let storage_domain = Some(url.clone());
        Ok(Added { name, url, api_key: key.into(), storage_domain })
    }

    async fn writer(&mut self, database: &Database, place: &Place) -> anyhow::Result<Added> {
        let keys = keyring(database, place.settings.key_file.as_deref(), MayMake::Yes)?;
        let secrets = keys.map(|keys| Secrets::new(database.clone(), keys));
        let loopback: Network = LOOPBACK.parse().map_err(|error: String| anyhow!(error))?;
        let config = lavra_writer::Config {
            access: Access { private: vec![loopback], ..Access::default() },
            ..lavra_writer::Config::default()
        };
        let service = lavra_writer::Service::new(database, config, secrets)?;
        let listener: TcpListener = listen_anywhere().await?;
        let (url, key) = (format!("http://{}", listener.local_addr()?), new_key());
        let (stop, known) = (self.stop.clone(), key.clone().into());
        self.parts.spawn(async move { writer::serve(service, listener, Some(&known), stop).await });
        Ok(Added { name: "writer".into(), url, api_key: key.into(), storage_domain: None })
    }

    /// Comes back only when a part ends that should not have.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        match self.parts.join_next().await {
            Some(Ok(Err(error))) => error.context("a part of the demonstration ended"),
            Some(Err(error)) => anyhow!(error).context("a part of the demonstration broke"),
            Some(Ok(Ok(()))) | None => anyhow!("a part of the demonstration ended by itself"),
        }
    }

    /// Everything ends in order, or with the process.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        let ended = async {
            while let Some(ended) = self.parts.join_next().await {
                ended.context("a part broke")??;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(GRACE, ended).await.unwrap_or(Ok(()))
    }
}

fn new_key() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
