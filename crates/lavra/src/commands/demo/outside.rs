//! The outside world: the PNCP API, an ad library and four proxies, all on loopback and none of them
//! at its best.

use lavra_world::ads::AdFaults;
use lavra_world::proxy::ProxyFaultKind;
use lavra_world::{
    AdLibrary, AdsConfig, Faults, ForwardProxy, Hang, Latency, ProxyFault, RetryAfter, World,
    WorldConfig,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::plan::Plan;
use crate::node::listen_anywhere;

const PROXIES: usize = 4;
pub(super) const PROXY_USER: &str = "user";

/// Served until `end`.
pub(super) struct Outside {
    pub(super) pncp: World,
    /// The base of its API.
    pub(super) pncp_url: String,
    pub(super) ads: AdLibrary,
    pub(super) ads_url: String,
    /// With their ports on loopback.
    pub(super) proxies: Vec<(u16, ForwardProxy)>,
    pub(super) proxy_password: String,
    serving: JoinSet<std::io::Result<()>>,
    stop: CancellationToken,
}

impl Outside {
    pub(super) async fn begin(plan: &Plan) -> anyhow::Result<Self> {
        let (mut serving, stop) = (JoinSet::new(), CancellationToken::new());
        let config = WorldConfig { seed: plan.seed, scale: plan.scale, now: None, fixed: None };
        let pncp = World::new(config);
        pncp.set_faults(api_faults())?;
        let listener = listen_anywhere().await?;
        let pncp_url = format!("http://{}/api/consulta", listener.local_addr()?);
        let (served, until) = (pncp.clone(), stop.clone());
        serving.spawn(async move { served.serve(listener, until).await });

        let config = AdsConfig { seed: plan.seed, ads: plan.ads, ..AdsConfig::default() };
        let ads = AdLibrary::new(config);
        ads.set_faults(ad_faults())?;
        let listener = listen_anywhere().await?;
        let ads_url = format!("http://{}/v1", listener.local_addr()?);
        let (served, until) = (ads.clone(), stop.clone());
        serving.spawn(async move { served.serve(listener, until).await });

        let proxy_password = uuid::Uuid::new_v4().simple().to_string();
        let mut proxies = Vec::with_capacity(PROXIES);
        for number in 0..PROXIES {
            let proxy = ForwardProxy::for_user(PROXY_USER, &proxy_password);
            proxy.set_fault(proxy_fault(number));
            let listener: TcpListener = listen_anywhere().await?;
            proxies.push((listener.local_addr()?.port(), proxy.clone()));
            let until = stop.clone();
            serving.spawn(async move { proxy.serve(listener, until).await });
        }
        Ok(Self { pncp, pncp_url, ads, ads_url, proxies, proxy_password, serving, stop })
    }

    /// Everything closes at once.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.serving.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// A bad day of the API: some six requests of a hundred fail, in the ways that it was seen to.
fn api_faults() -> Faults {
    Faults {
        latency: Latency { fixed_ms: 100, jitter_ms: 150, per_hundred_pages_ms: 0 },
        too_many: 0.01,
        retry_after: RetryAfter { share: 0.005, seconds: 1, as_date: false },
        server_error: 0.01,
        gateway: 0.01,
        input_string: 0.005,
        hang: Hang { share: 0.002, at_most_ms: 2000 },
        reset: 0.005,
        cut_chunks: 0.005,
        cut_length: 0.005,
        html: 0.005,
        wrong_json: 0.005,
        ..Faults::default()
    }
}

/// The library refuses, fails and breaks off now and then.
fn ad_faults() -> AdFaults {
    AdFaults {
        too_many: 0.02,
        server_error: 0.02,
        html: 0.005,
        cut: 0.01,
        reset: 0.01,
        latency_ms: 120,
        ..AdFaults::default()
    }
}

/// One proxy is slow, and one denies everybody: when three sessions have failed it is out of use.
fn proxy_fault(number: usize) -> Option<ProxyFault> {
    match number {
        1 => Some(ProxyFault::now(ProxyFaultKind::Slow { millis: 15 })),
        3 => Some(ProxyFault::now(ProxyFaultKind::Deny)),
        _ => None,
    }
}
