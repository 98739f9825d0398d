//! Somebody who looks after the proxies: one that was taken out of use is repaired, and put back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lavra_fleet::Fleet;
use lavra_fleet::model::ProxyId;
use lavra_fleet::service::{Changes, Status};
use lavra_fleet::store::Thing;
use lavra_world::ForwardProxy;

/// How long it takes until it is noticed.
const NOTICED_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Operator {
    /// By their ports.
    proxies: BTreeMap<i32, ForwardProxy>,
    out_since: BTreeMap<ProxyId, Instant>,
    /// The names of those that were put back.
    repaired: Vec<String>,
}

impl Operator {
    pub(super) fn new(proxies: &[(u16, ForwardProxy)]) -> Self {
        let proxies = proxies.iter().map(|(port, proxy)| (i32::from(*port), proxy.clone()));
        Self { proxies: proxies.collect(), out_since: BTreeMap::new(), repaired: Vec::new() }
    }

    pub(super) async fn look(&mut self, fleet: &Fleet, status: &Status) -> anyhow::Result<()> {
        for proxy in status.proxies.iter().filter(|proxy| !proxy.active) {
            let since = *self.out_since.entry(proxy.id.clone()).or_insert_with(Instant::now);
            if since.elapsed() < NOTICED_AFTER {
                continue;
            }
            if let Some(real) = proxy.port.and_then(|port| self.proxies.get(&port)) {
                real.set_fault(None);
            }
            let changes = Changes { active: Some(true), ..Changes::default() };
            fleet.change(&Thing::Proxy(proxy.id.clone()), changes).await?;
            self.out_since.remove(&proxy.id);
            self.repaired.push(proxy.label().to_owned());
        }
        Ok(())
    }

    pub(super) fn repaired(self) -> Vec<String> {
        self.repaired
    }
}
