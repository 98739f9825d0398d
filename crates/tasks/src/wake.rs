//! What wakes a runner: the bell of this process and of PostgreSQL, and messages of RabbitMQ.

use std::time::Duration;

use crate::bell::{Bell, Ears};
use crate::rabbit::Inbox;

/// How often to look at the database while a broker rings: only in case a message was lost.
const POLL_WITH_BROKER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Waker {
    bell: Bell,
    ears: Ears,
    inbox: Option<Inbox>,
}

impl Waker {
    pub(crate) fn new(bell: Bell, inbox: Option<Inbox>) -> Self {
        let ears = bell.on_work();
        Self { bell, ears, inbox }
    }

    /// What rang until now is answered by the claim that follows.
    pub(crate) fn about_to_claim(&mut self) {
        self.ears.forget();
        if let Some(inbox) = &mut self.inbox {
            inbox.mark();
        }
    }

    pub(crate) async fn claimed(&mut self, count: usize, took_all: bool) {
        if let Some(inbox) = &mut self.inbox {
            inbox.answered(count, took_all).await;
        }
    }

    pub(crate) async fn rung(&mut self) {
        match &self.inbox {
            Some(inbox) => tokio::select! {
                () = inbox.rung() => {}
                () = self.ears.rung() => {}
            },
            None => self.ears.rung().await,
        }
    }

    pub(crate) fn poll_interval(&self, usual: Duration, blind: Duration) -> Duration {
        if self.inbox.is_some() {
            // Retries that fall due have no message; the poll finds them.
            return usual.min(POLL_WITH_BROKER);
        }
        if self.bell.hears_all() { usual } else { blind.min(usual) }
    }
}
