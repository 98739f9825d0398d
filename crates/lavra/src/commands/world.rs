//! `lavra world`: something to extract, without leaving this machine.

use super::on_signal;
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
    world.serve(listener, on_signal()?).await?;
    Ok(Exit::Done)
}
