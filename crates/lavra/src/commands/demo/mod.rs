//! `lavra demo`: all of Lavra in one process on loopback, with work for it, an audit of what came of it
//! against the world it was taken from, and what to try next.

mod audit;
mod bars;
mod operator;
mod outside;
mod parts;
mod place;
mod plan;
mod report;
mod work;

use anyhow::anyhow;
use tokio_util::sync::CancellationToken;

use self::audit::Audited;
use self::bars::Bars;
use self::outside::Outside;
use self::parts::{Parts, Running};
use self::place::Place;
use self::plan::Plan;
use self::work::Work;
use super::on_signal;
use crate::cli::{Demo, Options};
use crate::exit::Exit;
use crate::printer::Printer;

pub(crate) async fn run(options: &Options, args: &Demo, printer: &Printer) -> anyhow::Result<Exit> {
    let told = on_signal()?;
    let plan = Plan::default();
    let outside = Outside::begin(&plan).await?;
    let mut running = Running::default();
    let shown = show(options, args, &plan, &outside, &mut running, &told, printer);
    // The first signal ends it wherever it is.
    let exit = tokio::select! {
        biased;
        shown = shown => shown,
        () = told.cancelled() => Ok(Exit::Interrupted),
    };
    let ended = running.end().await;
    outside.end().await?;
    let exit = exit?;
    ended?;
    Ok(exit)
}

async fn show(
    options: &Options,
    args: &Demo,
    plan: &Plan,
    outside: &Outside,
    running: &mut Running,
    told: &CancellationToken,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let place = Place::new(options, &outside.ads_url)?;
    place.is_ready().await?;
    report::starting(printer);
    let parts = Parts::begin(&place, outside, running).await?;
    report::begin(&place, &parts, outside, printer);
    let work = Work::new(&parts, outside);
    let (order, missions) = (plan.order(&outside.pncp_url)?, plan.missions());
    let mut bars = Bars::new(printer);
    let audited = tokio::select! {
        audited = async {
            let done = work.run(&order, &missions, &mut bars).await?;
            let bar = bars.audit();
            let audited = audit::audit(plan, outside, &parts).await;
            bar.finish_and_clear();
            let audited = audited?;
            report::end(&place, &parts, &done, &audited, printer).await?;
            anyhow::Ok(audited)
        } => audited?,
        error = running.failed() => return Err(error),
    };
    if args.exit {
        return Ok(end(&audited));
    }
    report::next(&place, &parts, outside, printer);
    tokio::select! {
        () = told.cancelled() => Ok(end(&audited)),
        error = running.failed() => Err(error),
    }
}

/// Work that can still be done is not the same as something that is lost.
fn end(audited: &Audited) -> Exit {
    let count = audited.findings.len();
    match count {
        0 => Exit::Done,
        _ if audited.is_only_unfinished() => Exit::WorkRemains(format!("{count} things remain")),
        _ => Exit::Failed(anyhow!(
            "the demonstration found {count} things that are not as the world has them; they are \
             listed above"
        )),
    }
}
