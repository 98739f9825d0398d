//! `lavra world`: something to extract, without leaving this machine.

use tokio_util::sync::CancellationToken;

use super::told_to_stop;
use crate::cli::World;
use crate::exit::{BadUsage, Exit};
use crate::node::listen;
use crate::printer::Printer;

pub(crate) async fn run(args: &World, printer: &Printer) -> anyhow::Result<Exit> {
    let world = args.world.world().map_err(|error| BadUsage(error.to_string()))?;
    let listener = listen(&args.listen).await?;
    let address = listener.local_addr()?;
    printer.note(&format!("the PNCP API is at http://{address}/api/consulta; try"));
    printer.note(&format!(
        "  lavra extract run pncp --from 2024-01 --to 2024-03 --base-url http://{address}/api/consulta"
    ));
    let stop = CancellationToken::new();
    let asked = stop.clone();
    tokio::spawn(async move {
        told_to_stop().await;
        asked.cancel();
    });
    world.serve(listener, stop).await?;
    Ok(Exit::Done)
}
