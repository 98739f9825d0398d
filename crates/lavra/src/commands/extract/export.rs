//! `lavra extract export`: records as files.

use std::path::Path;

use lavra_extract::export::{Format, Report};
use lavra_extract::task::{ExportOrder, Exports, ExtractExport as Handler, scope_of};
use lavra_tasks::Handler as _;
use serde_json::json;

use super::{Named, job, months, named};
use crate::cli::{ExportFormat, ExtractExport};
use crate::exit::{BadUsage, Exit};
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) async fn run(
    settings: &Settings,
    args: ExtractExport,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let Named { name, definition } = named(&args.source)?;
    let (from, to) = months(&args.scope)?;
    let format = match args.format {
        ExportFormat::Parquet => Format::Parquet,
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Jsonl => Format::JsonLines,
    };
    let order = ExportOrder {
        source: name,
        definition,
        from,
        to,
        endpoints: args.scope.endpoints,
        format,
        out: args.out,
        partial: args.partial,
    };
    let usage = |error: lavra_extract::Error| BadUsage(error.to_string());
    scope_of(&order.source().map_err(usage)?, from, to, &order.endpoints).map_err(usage)?;
    let payload = json!(order);
    let here = |node: &crate::node::Node, job: job::Job| {
        let export = Handler::new(node.database.clone(), Exports::Anywhere);
        let order = order.clone();
        async move {
            let report = export.export(&order, job.stop.clone(), |done, all| job.tell(done, all));
            Ok(json!(report.await?))
        }
    };
    let found = match job::run(settings, Handler::KIND, payload, printer, here).await? {
        Ok(found) => found,
        Err(exit) => return Ok(exit),
    };
    let report: Report = serde_json::from_value(found)?;
    show(&report, format, printer);
    if report.left_out.is_empty() {
        return Ok(Exit::Done);
    }
    let source = &order.source;
    Ok(Exit::WorkRemains(format!(
        "{} tasks are not complete and were left out: `lavra extract retry {source}` takes them up, \
         --partial exports what is there",
        report.left_out.len()
    )))
}

fn show(report: &Report, format: Format, printer: &Printer) {
    let rows = report.files.iter().map(|file| {
        vec![file.key.clone(), file.rows.to_string(), indicatif::HumanBytes(file.bytes).to_string()]
    });
    printer.table(&json!(report), &["FILE", "ROWS", "SIZE"], rows.collect());
    if printer.is_json() {
        return;
    }
    printer.note(&format!(
        "{} rows in {} files, {}, in {}",
        report.rows,
        report.files.len(),
        indicatif::HumanBytes(report.bytes),
        report.place
    ));
    if let (Format::Parquet, Some(file)) = (format, report.files.first())
        && Path::new(&report.place).is_dir()
    {
        let (place, endpoint) = (&report.place, &file.endpoint);
        printer.note(&format!(
            "next: lavra sql \"SELECT month, count(*) FROM '{place}/{endpoint}/*/*.parquet' GROUP BY ALL\""
        ));
    }
}
