//! `lavra serve` and `lavra runner`.

use std::net::SocketAddr;

use lavra_db::Database;
use lavra_web::access::{Key, Role, Standing};

use super::on_signal;
use crate::cli::{RunnerArgs, Serve};
use crate::exit::{BadUsage, Exit};
use crate::node::{Node, Parts, Place, listen_anywhere};
use crate::settings::Settings;
use crate::work::Work;

pub(crate) async fn serve(settings: Settings, args: &Serve) -> anyhow::Result<Exit> {
    let settings = Settings { web: settings.web.with_hosts(&args.hosts)?, ..settings };
    let place = Place::find(args.listen.as_deref().unwrap_or(&settings.listen)).await?;
    let outside = place.beyond_loopback();
    let parts = Parts {
        serve: true,
        work: if args.no_runner { Work::default() } else { Work::only(&args.only) },
        demo_types: args.demo_types,
        // Who needs no key is on this machine already, and reaches all that it reaches.
        private_allowed: args.allow_private || !settings.web.needs_key(outside.is_some()),
        beyond_loopback: outside.is_some(),
    };
    // A port that is taken is said at once; one that others reach is taken when there are keys.
    let early = if outside.is_none() { Some(place.listen().await?) } else { None };
    let node = Node::open(&settings, parts).await?;
    let listener = match (early, outside) {
        (Some(listener), _) => listener,
        (None, outside) => {
            has_admin(&node.database, outside).await?;
            place.listen().await?
        }
    };
    let address = listener.local_addr()?;
    tracing::info!(url = %format!("http://{address}"), database = %settings.target, runner = parts.work.is_any(), "serving");
    until_told(node, Some(listener)).await
}

/// Beyond this machine every caller needs a key, so there must be one to begin with.
async fn has_admin(database: &Database, outside: Option<SocketAddr>) -> anyhow::Result<()> {
    let now = database.clock().now();
    let keys = lavra_web::access::store(database).keys().await?;
    let opens = |key: &Key| key.role == Role::Admin && key.standing(now) == Standing::Valid;
    if keys.iter().any(opens) {
        return Ok(());
    }
    let place = outside.map(|outside| outside.to_string()).unwrap_or_default();
    Err(BadUsage(format!(
        "--listen {place}: others than this machine would reach it, and there is no admin key that is \
         valid. Make one first: lavra key create NAME --role admin"
    ))
    .into())
}

pub(crate) async fn runner(settings: &Settings, args: &RunnerArgs) -> anyhow::Result<Exit> {
    let parts = Parts {
        serve: false,
        work: Work::only(&args.only),
        demo_types: args.demo_types,
        private_allowed: args.allow_private,
        beyond_loopback: false,
    };
    // A port that is taken is said at once.
    let metrics = match args.metrics.as_ref().or(settings.metrics.as_ref()) {
        Some(place) => Some(Place::of("--metrics", place).await?.listen().await?),
        None => None,
    };
    let mut node = Node::open(settings, parts).await?;
    node.metrics = metrics;
    // Who opens a file also serves it: nobody else can.
    let listener = match &node.database {
        Database::Duck(_) => Some(listen_anywhere().await?),
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
