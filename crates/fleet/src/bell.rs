//! Wake-ups: something changed, so look again before the poll would. Lost ones cost a poll.

use lavra_db::{Listener, Pg};
use tokio::sync::watch;

const CHANNEL: &str = "kodus_workflow_fleet";

/// Rings in this process and, with PostgreSQL, in all others.
#[derive(Clone, Debug)]
pub struct Bell {
    /// What people change: the queue, cancellations, the mode.
    work: watch::Sender<u64>,
    proxies: watch::Sender<u64>,
    leases: watch::Sender<u64>,
    outside: Option<Pg>,
}

impl Default for Bell {
    fn default() -> Self {
        let new = || watch::channel(0).0;
        Self { work: new(), proxies: new(), leases: new(), outside: None }
    }
}

fn ring(bell: &watch::Sender<u64>) {
    bell.send_modify(|count| *count += 1);
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
        ring(&self.work);
        if let Some(pg) = self.outside.clone() {
            tokio::spawn(async move {
                let channel = pg.schema().apply(CHANNEL).into_owned();
                let kind = lavra_db::tokio_postgres::types::Type::TEXT;
                let _a_poll_finds_it =
                    pg.query("ring", "SELECT pg_notify($1, '')", &[(&channel as _, kind)]).await;
            });
        }
    }

    pub(crate) fn proxies(&self) {
        ring(&self.proxies);
    }

    pub(crate) fn leases(&self) {
        ring(&self.leases);
    }

    pub(crate) fn ears(&self) -> Ears {
        Ears {
            work: self.work.subscribe(),
            proxies: self.proxies.subscribe(),
            leases: self.leases.subscribe(),
        }
    }
}

async fn hear(mut listener: Listener, work: watch::Sender<u64>) {
    while listener.next().await.is_some() {
        ring(&work);
    }
}

/// What one who waits hears.
#[derive(Debug)]
pub(crate) struct Ears {
    work: watch::Receiver<u64>,
    proxies: watch::Receiver<u64>,
    leases: watch::Receiver<u64>,
}

impl Ears {
    /// What rang until now is answered by the look that follows.
    pub(crate) fn forget(&mut self) {
        self.work.mark_unchanged();
        self.proxies.mark_unchanged();
        self.leases.mark_unchanged();
    }

    pub(crate) async fn work(&mut self) {
        if self.work.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) async fn proxies_or_work(&mut self) {
        tokio::select! {
                biased;
            _ = self.proxies.changed() => {}
            _ = self.work.changed() => {}
        }
    }

    pub(crate) async fn leases_or_work(&mut self) {
        tokio::select! {
                biased;
            _ = self.leases.changed() => {}
            _ = self.work.changed() => {}
        }
    }
}
