//! Forward proxies that really forward: HTTP (absolute-form requests and `CONNECT`) and SOCKS5 with user
//! name and password, on one port, told apart by the first byte. They count what passes, and fail on
//! command.

mod fault;
mod http;
mod relay;
mod serve;
mod socks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;

pub use fault::{ProxyFault, ProxyFaultKind};

/// A proxy. Clones are the same one.
#[derive(Clone, Debug)]
pub struct ForwardProxy {
    inner: Arc<Inner>,
}

struct Inner {
    /// Who may use it; without one, everybody.
    user: Option<(String, String)>,
    fault: Mutex<Option<ProxyFault>>,
    turned: Notify,
    counts: Counts,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Proxy").field("counts", &self.counts).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    http_requests: AtomicU64,
    tunnels: AtomicU64,
    socks: AtomicU64,
    requests: AtomicU64,
    denied: AtomicU64,
    failed: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
}

/// What passed through a proxy so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Meter {
    pub connections: u64,
    /// Requests in absolute form.
    pub http_requests: u64,
    /// `CONNECT`.
    pub tunnels: u64,
    /// Connections over SOCKS5.
    pub socks: u64,
    /// Requests of all kinds, in tunnels as far as they can be seen there.
    pub requests: u64,
    /// Wrong credentials, or none.
    pub denied: u64,
    /// Failed on command.
    pub failed: u64,
    /// From clients to servers.
    pub bytes_up: u64,
    pub bytes_down: u64,
}

impl ForwardProxy {
    /// A proxy that everybody may use.
    pub fn open() -> Self {
        Self::with(None)
    }

    pub fn for_user(name: &str, password: &str) -> Self {
        Self::with(Some((name.to_owned(), password.to_owned())))
    }

    fn with(user: Option<(String, String)>) -> Self {
        let (fault, turned) = (Mutex::new(None), Notify::new());
        Self { inner: Arc::new(Inner { user, fault, turned, counts: Counts::default() }) }
    }

    /// From now on, until it is set to another or to none.
    pub fn set_fault(&self, fault: Option<ProxyFault>) {
        *self.inner.fault.lock() = fault;
        self.inner.turned.notify_waiters();
    }

    pub fn fault(&self) -> Option<ProxyFault> {
        *self.inner.fault.lock()
    }

    pub fn meter(&self) -> Meter {
        let Counts {
            connections,
            http_requests,
            tunnels,
            socks,
            requests,
            denied,
            failed,
            bytes_up,
            bytes_down,
        } = &self.inner.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Meter {
            connections: read(connections),
            http_requests: read(http_requests),
            tunnels: read(tunnels),
            socks: read(socks),
            requests: read(requests),
            denied: read(denied),
            failed: read(failed),
            bytes_up: read(bytes_up),
            bytes_down: read(bytes_down),
        }
    }
}

fn count(counter: &AtomicU64, by: u64) -> u64 {
    counter.fetch_add(by, Ordering::Relaxed) + by
}
