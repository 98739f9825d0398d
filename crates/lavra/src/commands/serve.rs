//! `lavra serve` and `lavra runner`.

use lavra_db::Database;

use super::on_signal;
use crate::cli::{RunnerArgs, Serve};
use crate::exit::Exit;
use crate::node::{Node, Parts, listen};
use crate::settings::Settings;

pub(crate) async fn serve(settings: &Settings, args: &Serve) -> anyhow::Result<Exit> {
    let listener = listen(args.listen.as_deref().unwrap_or(&settings.listen)).await?;
    let parts = Parts {
        serve: true,
        run: !args.no_runner,
        demo_types: args.demo_types,
        only_extract: false,
        // Whoever reaches a loopback listener is on this machine already.
        private_allowed: true,
    };
    let node = Node::open(settings, parts).await?;
    let address = listener.local_addr()?;
    tracing::info!(url = %format!("http://{address}"), database = %settings.target, runner = parts.run, "serving");
    until_told(node, Some(listener)).await
}

pub(crate) async fn runner(settings: &Settings, args: &RunnerArgs) -> anyhow::Result<Exit> {
    let parts = Parts {
        serve: false,
        run: true,
        demo_types: args.demo_types,
        only_extract: false,
        private_allowed: args.allow_private,
    };
    let node = Node::open(settings, parts).await?;
    // Who opens a file also serves it: nobody else can.
    let listener = match &node.database {
        Database::Duck(_) => Some(listen("127.0.0.1:0").await?),
        Database::Postgres(_) => None,
    };
    tracing::info!(database = %settings.target, "running tasks");
    until_told(node, listener).await
}

/// The first signal drains; a second one ends the process at once.
async fn until_told(node: Node, listener: Option<tokio::net::TcpListener>) -> anyhow::Result<Exit> {
    node.run(listener, on_signal()?).await?;
    Ok(Exit::Done)
}
