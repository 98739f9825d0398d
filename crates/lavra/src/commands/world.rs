//! `lavra world`: something to extract, without leaving this machine.

use lavra_world::fleet::Span;
use lavra_world::{AdLibrary, AdsConfig, FleetConfig, FleetFaults, FleetWorld, ForwardProxy};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::on_signal;
use crate::cli::World;
use crate::exit::{BadUsage, Exit};
use crate::node::listen;
use crate::printer::Printer;

const PROXY_USER: &str = "user";
const PROXY_PASSWORD: &str = "proxy-password";

/// What is served, until told to stop or one of it fails.
struct Parts {
    serving: JoinSet<std::io::Result<()>>,
    stop: CancellationToken,
}

pub(crate) async fn run(args: &World, printer: &Printer) -> anyhow::Result<Exit> {
    let world = args.options.world().map_err(|error| BadUsage(error.to_string()))?;
    let listener = listen("--listen", &args.listen).await?;
    let address = listener.local_addr()?;
    printer.note(&format!("the PNCP API is at http://{address}/api/consulta; try"));
    printer.note(&format!(
        "  lavra extract run pncp --from 2024-01 --to 2024-03 --base-url http://{address}/api/consulta"
    ));
    let mut parts = Parts { serving: JoinSet::new(), stop: on_signal()? };
    let stop = parts.stop.clone();
    parts.serving.spawn(async move { world.serve(listener, stop).await });
    if let Some(place) = &args.fleet {
        parts.fleet(args, place, printer).await?;
    }
    if let Some(place) = &args.ads {
        parts.ads(args, place, printer).await?;
    }
    while let Some(ended) = parts.serving.join_next().await {
        ended??;
    }
    Ok(Exit::Done)
}

impl Parts {
    async fn fleet(&mut self, args: &World, place: &str, printer: &Printer) -> anyhow::Result<()> {
        let fleet = fleet(args)?;
        let listener = listen("--fleet", place).await?;
        let base = format!("http://{}", listener.local_addr()?);
        fleet.set_base_url(&base);
        printer
            .note(&format!("workers are at {base}/worker/0 and on, a writer at {base}/writer/0"));
        let stop = self.stop.clone();
        self.serving.spawn(async move { fleet.serve(listener, stop).await });
        Ok(())
    }

    async fn ads(&mut self, args: &World, place: &str, printer: &Printer) -> anyhow::Result<()> {
        let config = AdsConfig {
            seed: args.options.seed,
            ads: args.ads_per_day.min(100_000),
            ..AdsConfig::default()
        };
        let library = AdLibrary::new(config);
        let listener = listen("--ads", place).await?;
        let address = listener.local_addr()?;
        printer.note(&format!("an ad library is at http://{address}/v1; try"));
        printer.note(&format!("  lavra worker --base-url http://{address}/v1"));
        let mut proxies = Vec::new();
        for number in 0..args.proxies {
            let port = args.proxy_port.map_or(0, |first| first.saturating_add(number));
            let place = format!("127.0.0.1:{port}");
            let listener: TcpListener = listen("--proxy-port", &place).await?;
            let at = listener.local_addr()?;
            printer.note(&format!("proxy {number} is at {at}, user {PROXY_USER}"));
            let proxy = ForwardProxy::for_user(PROXY_USER, PROXY_PASSWORD);
            let (served, stop) = (proxy.clone(), self.stop.clone());
            self.serving.spawn(async move { served.serve(listener, stop).await });
            proxies.push(proxy);
        }
        library.tell_of(proxies);
        let stop = self.stop.clone();
        self.serving.spawn(async move { library.serve(listener, stop).await });
        Ok(())
    }
}

/// Doubles of workers and a writer, quick enough to be watched.
fn fleet(args: &World) -> anyhow::Result<FleetWorld> {
    let config = FleetConfig {
        workers: args.fleet_workers,
        session: Span::new(500, 1500),
        job: Span::new(1000, 4000),
        write: Span::new(300, 1000),
        latency: Span::new(1, 10),
        worker_key: Some("worker-key".into()),
        writer_key: Some("writer-key".into()),
        ..FleetConfig::default()
    };
    let fleet = FleetWorld::new(config, args.options.seed);
    if let Some(text) = &args.fleet_faults {
        let faults = match text.as_str() {
            "all" => FleetFaults::all(),
            text => serde_json::from_str(text)
                .map_err(|error| BadUsage(format!("--fleet-faults is all or JSON: {error}")))?,
        };
        fleet.set_faults(faults).map_err(|error| BadUsage(error.to_string()))?;
    }
    Ok(fleet)
}
