//! `lavra world`: something to extract, without leaving this machine.

use lavra_world::fleet::Span;
use lavra_world::{FleetConfig, FleetFaults, FleetWorld};

use super::on_signal;
use crate::cli::World;
use crate::exit::{BadUsage, Exit};
use crate::node::listen;
use crate::printer::Printer;

pub(crate) async fn run(args: &World, printer: &Printer) -> anyhow::Result<Exit> {
    let world = args.options.world().map_err(|error| BadUsage(error.to_string()))?;
    let listener = listen(&args.listen).await?;
    let address = listener.local_addr()?;
    printer.note(&format!("the PNCP API is at http://{address}/api/consulta; try"));
    printer.note(&format!(
        "  lavra extract run pncp --from 2024-01 --to 2024-03 --base-url http://{address}/api/consulta"
    ));
    let stop = on_signal()?;
    let pncp = world.serve(listener, stop.clone());
    match &args.fleet {
        None => pncp.await?,
        Some(place) => {
            let fleet = fleet(args)?;
            let listener = listen(place).await?;
            let base = format!("http://{}", listener.local_addr()?);
            fleet.set_base_url(&base);
            printer.note(&format!(
                "workers are at {base}/worker/0 and on, a writer at {base}/writer/0"
            ));
            tokio::try_join!(pncp, fleet.serve(listener, stop))?;
        }
    }
    Ok(Exit::Done)
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
