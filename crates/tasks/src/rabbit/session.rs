//! One connection after another: connect, work until something breaks, wait, again.

use std::time::Duration;

use lapin::{Connection, ConnectionProperties};
use tokio_util::sync::CancellationToken;

use super::Broker;

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Says goodbye, to a connection that may be gone already.
pub(super) async fn close(connection: Connection) {
    let closing = connection.close(200, "going".into());
    let _already_gone = tokio::time::timeout(CLOSE_LIMIT, closing).await;
}

pub(super) struct Dialer<'a> {
    broker: &'a Broker,
    stop: &'a CancellationToken,
    wait: Duration,
    broken: bool,
}

impl<'a> Dialer<'a> {
    pub(super) fn new(broker: &'a Broker, stop: &'a CancellationToken) -> Self {
        Self { broker, stop, wait: FIRST_WAIT, broken: false }
    }

    /// A fresh connection, however long that takes; `None` when told to stop.
    pub(super) async fn connect(&mut self) -> Option<Connection> {
        loop {
            if self.broken {
                tokio::select! {
                    () = tokio::time::sleep(self.wait) => {}
                    () = self.stop.cancelled() => return None,
                }
                self.wait = (self.wait * 2).min(LONGEST_WAIT);
            }
            let properties = ConnectionProperties::default().with_connection_name("lavra".into());
            let connecting = Connection::connect(&self.broker.config.url, properties);
            let connected = tokio::select! {
                connected = tokio::time::timeout(CONNECT_LIMIT, connecting) => connected,
                () = self.stop.cancelled() => return None,
            };
            match connected {
                Ok(Ok(connection)) => {
                    self.wait = FIRST_WAIT;
                    return Some(connection);
                }
                Ok(Err(error)) => self.broke(&error.to_string()),
                Err(_) => self.broke("no answer in time"),
            }
        }
    }

    /// The last connection is of no use any more.
    pub(super) fn broke(&mut self, trouble: &str) {
        let health = self.broker.health();
        if health.connected || health.trouble.is_none() {
            tracing::warn!(trouble, "RabbitMQ is away; messages wait in the outbox");
        }
        self.broken = true;
        self.broker.note(|health| {
            health.connected = false;
            health.trouble = Some(trouble.to_owned());
        });
    }
}
