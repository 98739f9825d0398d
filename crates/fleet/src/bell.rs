//! Wake-ups: something changed, so look again before the poll would. Lost ones cost a poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lavra_db::{Listener, Pg};
use tokio::sync::Notify;

const CHANNEL: &str = "kodus_workflow_fleet";

/// Rings in this process and, with PostgreSQL, in all others.
#[derive(Clone, Debug, Default)]
pub struct Bell {
    /// What people change: the queue, cancellations, the mode.
    work: Ring,
    /// A mission that went back to the queue: for those who wait for one.
    queue: Ring,
    proxies: Ring,
    outside: Option<Pg>,
}

/// Counts how often it was rung, and wakes those who wait in the order in which they came: a
/// simulation must go the same way twice.
#[derive(Clone, Debug, Default)]
struct Ring(Arc<(AtomicU64, Notify)>);

impl Ring {
    fn ring(&self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        self.0.1.notify_waiters();
    }

    fn count(&self) -> u64 {
        self.0.0.load(Ordering::SeqCst)
    }

    /// Returns when it was rung more often than `seen`.
    async fn rung(&self, seen: &mut u64) {
        loop {
            let waiting = self.0.1.notified();
            let count = self.count();
            if count != *seen {
                *seen = count;
                return;
            }
            waiting.await;
        }
    }
}

impl Bell {
    /// One that rings in other processes too. Must be called in a runtime: it listens in the
    /// background from then on.
    pub fn across(pg: &Pg) -> Self {
        let bell = Self { outside: Some(pg.clone()), ..Self::default() };
        tokio::spawn(hear(pg.listen(CHANNEL), bell.work.clone()));
        bell
    }

    /// People changed something.
    pub fn work(&self) {
        self.work.ring();
        if let Some(pg) = self.outside.clone() {
            tokio::spawn(async move {
                let channel = pg.schema().apply(CHANNEL).into_owned();
                let kind = lavra_db::tokio_postgres::types::Type::TEXT;
                let _a_poll_finds_it =
                    pg.query("ring", "SELECT pg_notify($1, '')", &[(&channel as _, kind)]).await;
            });
        }
    }

    pub(crate) fn queue(&self) {
        self.queue.ring();
    }

    pub(crate) fn proxies(&self) {
        self.proxies.ring();
    }

    pub(crate) fn ears(&self) -> Ears {
        Ears {
            work: (self.work.clone(), self.work.count()),
            queue: (self.queue.clone(), self.queue.count()),
            proxies: (self.proxies.clone(), self.proxies.count()),
        }
    }
}

async fn hear(mut listener: Listener, work: Ring) {
    while listener.next().await.is_some() {
        work.ring();
    }
}

/// What one who waits hears: a bell, and how often it had rung when it was last answered.
#[derive(Debug)]
pub(crate) struct Ears {
    work: (Ring, u64),
    queue: (Ring, u64),
    proxies: (Ring, u64),
}

impl Ears {
    /// What rang until now is answered by the look that follows.
    pub(crate) fn forget(&mut self) {
        for (ring, seen) in [&mut self.work, &mut self.queue, &mut self.proxies] {
            *seen = ring.count();
        }
    }

    pub(crate) async fn work(&mut self) {
        self.work.0.rung(&mut self.work.1).await;
    }

    pub(crate) async fn queue_or_work(&mut self) {
        tokio::select! {
            biased;
            () = self.queue.0.rung(&mut self.queue.1) => {}
            () = self.work.0.rung(&mut self.work.1) => {}
        }
    }

    pub(crate) async fn proxies_or_work(&mut self) {
        tokio::select! {
            biased;
            () = self.proxies.0.rung(&mut self.proxies.1) => {}
            () = self.work.0.rung(&mut self.work.1) => {}
        }
    }
}
