//! What a demonstration prints: where everything is, what came of the work, and what to try next.

use std::path::Path;

use indicatif::{HumanBytes, HumanCount};
use lavra_db::{Answer, Database};
use serde::Serialize;
use serde_json::{Value, json};

use super::audit::Audited;
use super::outside::Outside;
use super::parts::Parts;
use super::place::Place;
use super::work::Done;
use crate::commands::sql;
use crate::printer::Printer;

/// Read-only, and the same on both engines.
const QUERIES: [&str; 3] = [
    "SELECT ufSigla AS uf, count(*) AS contracts, sum(valorGlobal) AS value
FROM psa.pncp_contratos_publicacao GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5",
    "SELECT data->'languages'->>0 AS language, data->>'media_type' AS media,
count(*) AS ads FROM public.ads GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2",
    "SELECT w.name AS worker, count(*) AS missions, sum(m.ads_count) AS ads
FROM public.missions m JOIN public.workers w ON w.id = m.worker_id
GROUP BY 1 ORDER BY 1",
];
/// Findings that a person reads; `--json` has all.
const SHOWN: usize = 20;

#[derive(Serialize)]
struct Asked {
    query: &'static str,
    #[serde(flatten)]
    answer: Answer,
}

/// What happened in the fleet, as its log and its tables have it.
#[derive(Debug, Default, Serialize)]
struct Happened {
    /// Sessions that never stood, or broke.
    sessions_lost: i64,
    /// Phases of missions that were begun again.
    retries: i64,
    /// Proxies that were taken out of use, repaired and put back.
    proxies_repaired: Vec<String>,
}

pub(super) fn starting(printer: &Printer) {
    if !printer.is_json() {
        printer.note("starting a world, three workers, a writer and the server, all on loopback");
    }
}

/// Where everything is, before the work begins.
pub(super) fn begin(place: &Place, parts: &Parts, outside: &Outside, printer: &Printer) {
    if printer.is_json() {
        return;
    }
    let is_elsewhere = parts.url != format!("http://{}", place.settings.listen);
    let why = if is_elsewhere { " (the usual port is taken)" } else { "" };
    printer.note(&format!("  Mission Control  {}{why}", parts.url));
    printer.note(&format!("  PNCP API         {}", outside.pncp_url));
    printer.note(&format!("  ad library       {}, behind four proxies", outside.ads_url));
    printer.note(&format!("  database         {}", place.settings.target));
    if place.settings.broker.is_some() {
        printer.note("  broker           RabbitMQ, which says when something waits");
    }
    printer.note(
        "All of it fails now and then, on purpose. The fleet is looked at every 0.2 s\n\
         here; usually it is every 10 to 30 s.\n",
    );
}

/// What came of it; asks the three questions.
pub(super) async fn end(
    place: &Place,
    parts: &Parts,
    done: &Done,
    audited: &Audited,
    printer: &Printer,
) -> anyhow::Result<()> {
    let happened = happened(parts, done).await?;
    let mut asked = Vec::with_capacity(QUERIES.len());
    for query in QUERIES {
        asked.push(Asked { query, answer: parts.database.ask(query, 100).await? });
    }
    let summary = done.extraction.metadata.get("summary").cloned().unwrap_or_default();
    if printer.is_json() {
        printer.json(&json!({
            "url": parts.url,
            "directory": place.directory,
            "database": place.settings.target.to_string(),
            "seconds": done.took.as_secs_f64(),
            "extraction": { "status": done.extraction.status, "summary": summary },
            "fleet": { "status": done.run.status, "happened": happened },
            "audit": audited,
            "queries": asked,
        }));
        return Ok(());
    }
    printer.data("");
    extracted(&summary, audited, printer);
    fleet(&happened, audited, printer);
    verdict(audited, done, printer);
    for Asked { query, answer } in &asked {
        printer.data(&format!("\n{query};"));
        sql::show(&answer.columns, &answer.rows, printer);
    }
    Ok(())
}

fn extracted(summary: &Value, audited: &Audited, printer: &Printer) {
    printer.data(&format!(
        "extracted  {} lists of a month: {} pages with {} records, {}",
        audited.months,
        HumanCount(audited.pages),
        HumanCount(audited.records),
        HumanBytes(audited.bytes)
    ));
    let failures = summary.get("failures").and_then(Value::as_object).cloned().unwrap_or_default();
    let count: u64 = failures.values().filter_map(Value::as_u64).sum();
    let kinds: Vec<String> =
        failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let requests = summary.get("requests").and_then(Value::as_u64).unwrap_or(0);
    let text = match count {
        0 => format!("           {requests} requests, none of which failed"),
        _ => format!(
            "           {requests} requests; {count} failed and were made again:\n           {}",
            kinds.join(", ")
        ),
    };
    printer.data(&text);
}

fn fleet(happened: &Happened, audited: &Audited, printer: &Printer) {
    printer.data(&format!(
        "stored     {} missions: {} ads in public.ads",
        audited.missions,
        HumanCount(audited.ads as u64)
    ));
    let Happened { sessions_lost, retries, proxies_repaired } = happened;
    printer.data(&format!(
        "           {sessions_lost} sessions failed behind a proxy, {retries} retries"
    ));
    if !proxies_repaired.is_empty() {
        let names = proxies_repaired.join(", ");
        printer
            .data(&format!("           {names}: out of use after 3 failures, repaired, put back"));
    }
}

fn verdict(audited: &Audited, done: &Done, printer: &Printer) {
    let took = done.took.as_secs_f64();
    if audited.findings.is_empty() {
        printer.data(
            "audited    each page, record and ad is there once and as the world has it;\n           \
             workers and proxies are free, no dead letter",
        );
    } else {
        printer.data(&format!(
            "audited    {} things are not as they should be:",
            audited.findings.len()
        ));
        for finding in audited.findings.iter().take(SHOWN) {
            let code = finding.code.as_str();
            printer.data(&format!("           [{code}] {}: {}", finding.of, finding.detail));
        }
        if audited.findings.len() > SHOWN {
            let more = audited.findings.len() - SHOWN;
            printer.data(&format!("           and {more} more: --json has them all"));
        }
    }
    printer.data(&format!("took       {took:.1} s"));
}

async fn happened(parts: &Parts, done: &Done) -> anyhow::Result<Happened> {
    let count = async |database: &Database, event: &str| -> anyhow::Result<i64> {
        let query =
            format!("SELECT count(*) AS n FROM public.mission_logs WHERE event = '{event}'");
        let answer = database.ask(&query, 1).await?;
        Ok(answer.rows.first().and_then(|row| row.first()?.as_i64()).unwrap_or(0))
    };
    Ok(Happened {
        sessions_lost: count(&parts.database, "session_failed").await?,
        retries: count(&parts.database, "retry_triggered").await?,
        proxies_repaired: done.repaired.clone(),
    })
}

/// What somebody may do now, in another terminal.
pub(super) fn next(place: &Place, parts: &Parts, outside: &Outside, printer: &Printer) {
    let mut lines =
        vec![format!("\nLook at {} in a browser, and try in another terminal:", parts.url)];
    if let Some(directory) = not_on_the_path() {
        lines.push(format!("  export PATH=\"{}:$PATH\"", directory.display()));
    }
    if place.is_on_a_server() {
        lines.push(format!("  export LAVRA_SERVER={}", parts.url));
    } else {
        lines.push(format!("  cd {}", place.directory.display()));
        lines.push("  lavra sql 'SELECT * FROM psa.pncp_extraction_tasks LIMIT 5'".into());
    }
    let more = "lavra mission add --from 2025-03-10 --to 2025-03-12 --language pt --queue";
    lines.push("  lavra extract status pncp".into());
    lines.push("  lavra extract audit pncp --against-source \\".into());
    lines.push(format!("      --base-url {}", outside.pncp_url));
    lines.push("  lavra fleet report workers".into());
    lines.push(format!("  {more}"));
    lines.push("  lavra fleet start --wait".into());
    lines.push("Ctrl-C ends the demonstration; what it stored stays.".into());
    printer.note(&lines.join("\n"));
}

/// Where this program is, if a shell does not find it by its name.
fn not_on_the_path() -> Option<std::path::PathBuf> {
    let here = std::env::current_exe().ok()?;
    let directory = here.parent().map(Path::to_path_buf)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path);
    (!places.any(|place| place == directory)).then_some(directory)
}
