//! `lavra extract audit`: whether the store keeps its promises.

use lavra_extract::audit::{Problem, Report};
use lavra_extract::task::{AuditOrder, ExtractAudit as Handler, scope_of};
use lavra_tasks::Handler as _;
use serde_json::json;

use super::{Named, job, months, named};
use crate::cli::ExtractAudit;
use crate::exit::{BadUsage, Exit};
use crate::printer::Printer;
use crate::settings::Settings;

/// Findings that a person reads; `--json` has more.
const SHOWN: usize = 20;

pub(super) async fn run(
    settings: &Settings,
    args: ExtractAudit,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let Named { name, definition } = named(&args.source)?;
    let (from, to) = months(&args.scope)?;
    let order = AuditOrder {
        source: name,
        definition,
        from,
        to,
        endpoints: args.scope.endpoints,
        against_source: args.against_source,
        repair: args.repair,
        base_url: args.base_url,
    };
    let usage = |error: lavra_extract::Error| BadUsage(error.to_string());
    scope_of(&order.source().map_err(usage)?, from, to, &order.endpoints).map_err(usage)?;
    let payload = json!(order);
    let here = |node: &crate::node::Node, job: job::Job| {
        let audit = node.audit.clone();
        let order = order.clone();
        async move {
            let report = audit.audit(&order, job.stop.clone(), |done, all| job.tell(done, all));
            Ok(json!(report.await?))
        }
    };
    let found = match job::run(settings, Handler::KIND, payload, printer, here).await? {
        Ok(found) => found,
        Err(exit) => return Ok(exit),
    };
    let report: Report = serde_json::from_value(found)?;
    show(&report, printer);
    Ok(end(&report, &order.source))
}

fn show(report: &Report, printer: &Printer) {
    if printer.is_json() {
        printer.json(&json!(report));
        return;
    }
    printer.data(&format!("tasks     {}, {} of them complete", report.tasks, report.complete));
    printer.data(&format!(
        "pages     {} with {} records, {}: each there once, as it came{}",
        report.pages,
        report.records,
        indicatif::HumanBytes(report.bytes),
        if report.is_damaged() { ", but for those below" } else { "" }
    ));
    if report.repeated > 0 {
        printer.data(&format!(
            "repeated  {} records have the key of another one: the source gave them twice",
            report.repeated
        ));
    }
    if report.asked > 0 {
        let moved = report.problems.get(&Problem::Moved).copied().unwrap_or(0);
        printer
            .data(&format!("source    {} totals asked for anew, {moved} have moved", report.asked));
    }
    if !report.findings.is_empty() {
        let rows = report.findings.iter().take(SHOWN).map(|finding| {
            let page = finding.page.map(|page| page.to_string()).unwrap_or_default();
            let problem = json!(finding.problem).as_str().unwrap_or_default().replace('_', " ");
            vec![finding.task.to_string(), page, problem, finding.detail.clone()]
        });
        printer.table(&json!(null), &["TASK", "PAGE", "PROBLEM", "DETAIL"], rows.collect());
        let all: u64 = report.problems.values().sum();
        if all > SHOWN as u64 {
            printer.note(&format!("{} more: --json has up to a thousand", all - SHOWN as u64));
        }
    }
}

fn end(report: &Report, source: &str) -> Exit {
    if report.is_clean() {
        return Exit::Done;
    }
    let next = if report.repaired > 0 {
        format!("{} tasks are fetched again by `lavra extract run {source} …`", report.repaired)
    } else if report.is_damaged() {
        format!("`lavra extract audit {source} --repair` marks what is damaged to be fetched again")
    } else if report.problems.contains_key(&Problem::NotComplete) {
        format!("`lavra extract retry {source}` takes up what is not complete")
    } else {
        format!("`lavra extract run {source} … --refresh` fetches what has moved")
    };
    Exit::WorkRemains(format!("not all is well; {next}"))
}
