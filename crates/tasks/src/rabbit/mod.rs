//! RabbitMQ as a doorbell.
//!
//! A message says that something of its type waits; the claim in the database decides what is
//! run, and the message is acknowledged when that claim has committed. So a lost message costs a
//! poll interval, a doubled one nothing, and priorities are the same with or without a broker.
//!
//! Connections are dropped and made anew on any trouble ([`session`]): correct without relying
//! on recovery inside the client. While the broker is away, rows wait in the outbox and
//! everything else goes on.

mod dead;
mod inbox;
mod publish;
mod session;
mod topology;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::uri::AMQPUri;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::service::Tasks;
use crate::store::Announcement;

pub(crate) use inbox::Inbox;

/// How the broker is used.
#[derive(Clone)]
pub struct Config {
    /// `amqp://user:password@host:port/vhost`.
    pub url: String,
    /// What the names of exchanges and queues begin with.
    pub prefix: String,
    /// Between looks for outbox rows that nobody publishes.
    pub sweep: Duration,
    /// How long a task waits before one without a message is announced again.
    pub reannounce_after: Duration,
    pub prefetch: u16,
}

impl Config {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "lavra".into(),
            sweep: Duration::from_millis(500),
            reannounce_after: Duration::from_secs(30),
            prefetch: 256,
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// What `/readyz` says of the broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Health {
    pub connected: bool,
    pub trouble: Option<String>,
    /// Queues that exist with other arguments than ours and are used as they are.
    pub foreign_queues: Vec<String>,
}

/// The broker as the rest of the crate sees it.
#[derive(Clone, Debug)]
pub struct Broker {
    config: Arc<Config>,
    health: Arc<Mutex<Health>>,
    outgoing: mpsc::Sender<Vec<Announcement>>,
    arrivals: Arc<Mutex<Option<mpsc::Receiver<Vec<Announcement>>>>>,
}

/// Batches that wait for the publisher; more than that is left to the sweep.
const OUTGOING: usize = 1000;
const CREATORS_LEASE: Duration = Duration::from_secs(10);

impl Broker {
    pub fn new(config: Config) -> Self {
        let (outgoing, arrivals) = mpsc::channel(OUTGOING);
        Self {
            config: Arc::new(config),
            health: Arc::default(),
            outgoing,
            arrivals: Arc::new(Mutex::new(Some(arrivals))),
        }
    }

    /// Where it is, without who may enter.
    pub fn place(&self) -> String {
        match self.config.url.parse::<AMQPUri>() {
            Ok(AMQPUri { authority, .. }) => format!("{}:{}", authority.host, authority.port),
            Err(_) => "an address that is none".into(),
        }
    }

    pub fn health(&self) -> Health {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, change: impl FnOnce(&mut Health)) {
        change(&mut self.health.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// How long rows that are about to be committed are left to their creator before the sweep
    /// takes them.
    pub(crate) fn lease(&self) -> Duration {
        if self.health().connected { CREATORS_LEASE } else { Duration::ZERO }
    }

    /// Hands rows that were just committed to the publisher. Never waits: what does not fit, or
    /// comes while the broker is away, is published by the sweep.
    pub(crate) fn publish(&self, announcements: Vec<Announcement>) {
        if !announcements.is_empty() && self.health().connected {
            let _left_to_the_sweep = self.outgoing.try_send(announcements);
        }
    }

    /// Publishes, sweeps and collects dead letters until `stop`.
    pub async fn run(&self, tasks: Tasks, stop: CancellationToken) {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut arrivals) = arrivals else { return };
        let mut dialer = session::Dialer::new(self, &stop);
        while let Some(connection) = dialer.connect().await {
            let outcome = publish::work(self, &tasks, &connection, &mut arrivals, &stop).await;
            if let Err(error) = &outcome {
                dialer.broke(&error.to_string());
            }
            session::close(connection).await;
            if outcome.is_ok() {
                return;
            }
        }
    }

    /// Looks for at most `patience` whether the broker answers and has what is needed of it. Nothing is
    /// published or collected, so it needs no tasks.
    pub async fn look(&self, patience: Duration) -> Health {
        let stop = CancellationToken::new();
        let mut dialer = session::Dialer::new(self, &stop);
        let looking = async {
            let Some(connection) = dialer.connect().await else { return };
            match topology::declare(self, &connection).await {
                Ok(()) => self.note(|health| {
                    health.connected = true;
                    health.trouble = None;
                }),
                Err(error) => dialer.broke(&error.to_string()),
            }
            session::close(connection).await;
        };
        // In time or not, it is known what came of it.
        let _in_time = tokio::time::timeout(patience, looking).await;
        self.health()
    }

    pub(crate) fn inbox(&self, kinds: &[String]) -> Inbox {
        Inbox::start(self.clone(), kinds.to_vec())
    }
}
