//! Every page of the plan is there once, as it came, and its records are those of the world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lavra_db::Database;
use lavra_extract::audit::{Audit, Problem};
use lavra_extract::plan::{Plan, plan};
use lavra_extract::source::{End, Period, Series};
use lavra_extract::store::{Planned, Store};
use lavra_extract::task::Order;
use lavra_extract::{has_tables, store_of};
use lavra_world::{Endpoint, Entry, World, page_entries};
use tokio_util::sync::CancellationToken;

use super::{Audited, Code, Finding};

/// Bodies that are read at once.
const BODIES: usize = 50;
/// Records that are named of one list; all of them are counted.
const NAMED: usize = 3;

pub(super) async fn audit(
    database: &Database,
    order: &Order,
    world: &World,
    audited: &mut Audited,
) -> anyhow::Result<()> {
    let source = Arc::new(order.source()?);
    let Plan { tasks, scope } = plan(&source, &order.wanted(), database.clock().now())?;
    if !has_tables(database, &source.name).await? {
        audited.findings.push(Finding::new(
            Code::Lost,
            source.name.as_str(),
            "nothing was extracted",
        ));
        return Ok(());
    }
    let store = store_of(database, &source.name);
    let own = Audit {
        store: Arc::clone(&store),
        source: Arc::clone(&source),
        stop: CancellationToken::new(),
        against: None,
        repair: false,
    };
    let report = own.run(&scope, |_, _| {}).await?;
    audited.months = report.tasks;
    audited.pages = report.pages;
    audited.records = report.records;
    audited.bytes = report.bytes;
    let unfinished: BTreeSet<String> = report
        .findings
        .iter()
        .filter(|finding| code(finding.problem) == Code::Unfinished)
        .map(|finding| finding.task.to_string())
        .collect();
    audited.findings.extend(report.findings.into_iter().map(|finding| {
        let page = finding.page.map(|page| format!(" page {page}")).unwrap_or_default();
        Finding::new(code(finding.problem), format!("{}{page}", finding.task), finding.detail)
    }));
    let there = store.tasks(&scope).await?;
    let there: BTreeSet<String> = there.iter().map(|task| task.task_id.to_string()).collect();
    for task in &tasks {
        let id = task.task_id.to_string();
        if !there.contains(&id) {
            audited.findings.push(Finding::new(Code::Lost, id, "its row is gone"));
            continue;
        }
        let Some(series) = source.series(&task.endpoint_name) else {
            audited.findings.push(Finding::new(Code::Wrong, id, "the source has no such list"));
            continue;
        };
        let found = compare(&*store, task, &series, world).await?;
        // What is not complete need not have all.
        let is_unfinished = unfinished.contains(&id);
        audited
            .findings
            .extend(found.into_iter().filter(|it| it.code != Code::Lost || !is_unfinished));
    }
    Ok(())
}

fn code(problem: Problem) -> Code {
    match problem {
        Problem::NotComplete | Problem::NotAsked => Code::Unfinished,
        Problem::PageMissing | Problem::BodyMissing => Code::Lost,
        Problem::PageTwice | Problem::BodyTwice => Code::Twice,
        Problem::BodyChanged | Problem::RecordsDiffer | Problem::Moved => Code::Wrong,
    }
}

/// The records of one list of one month, by key and hash.
async fn compare(
    store: &dyn Store,
    task: &Planned,
    series: &Series<'_>,
    world: &World,
) -> anyhow::Result<Vec<Finding>> {
    let Ok(endpoint) = series.endpoint.path.parse::<Endpoint>() else {
        let text = format!("the world has no {}", series.endpoint.path);
        return Ok(vec![Finding::new(Code::Wrong, task.task_id.to_string(), text)]);
    };
    // By key: what the world has less what is stored, by hash.
    let mut open: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Entry { key, sha256 } in truth(task, series, endpoint, world) {
        open.entry(key).or_default().push(sha256);
    }
    let (mut twice, mut wrong) = (Vec::new(), Vec::new());
    let pages = store.pages(&task.task_id).await?;
    for some in pages.chunks(BODIES) {
        let ids = some.iter().filter(|page| page.stored.records > 0).map(|page| page.response);
        for (_, body) in store.bodies(&task.task_id, ids.collect()).await? {
            let body = body.unwrap_or_default();
            let Ok(entries) = page_entries(endpoint, &body) else {
                wrong.push("a page that cannot be read".to_owned());
                continue;
            };
            for Entry { key, sha256 } in entries {
                match open.get_mut(&key) {
                    None => wrong.push(key),
                    Some(hashes) => match hashes.iter().position(|hash| *hash == sha256) {
                        Some(place) => drop(hashes.swap_remove(place)),
                        None if hashes.is_empty() => twice.push(key),
                        None => wrong.push(key),
                    },
                }
            }
        }
    }
    let lost: Vec<String> = open
        .into_iter()
        .flat_map(|(key, hashes)| hashes.into_iter().map(move |_| key.clone()))
        .collect();
    let all = [
        (Code::Lost, lost, "that the world has are not there"),
        (Code::Twice, twice, "are there more than once"),
        (Code::Wrong, wrong, "are not as the world has them"),
    ];
    let found = all.into_iter().filter(|(_, keys, _)| !keys.is_empty());
    let found = found.map(|(code, keys, what)| {
        let named: Vec<&str> = keys.iter().take(NAMED).map(String::as_str).collect();
        let text = format!("{} records {what}: {}", keys.len(), named.join(", "));
        Finding::new(code, task.task_id.to_string(), text)
    });
    Ok(found.collect())
}

/// What the world has of a list and month.
fn truth(task: &Planned, series: &Series<'_>, endpoint: Endpoint, world: &World) -> Vec<Entry> {
    let (first, last) = (task.data_date, series.endpoint.last_day(task.data_date));
    // As it is asked for.
    let last = match &series.endpoint.period {
        Period::Month { end: End::Exclusive, .. } => last.tomorrow().unwrap_or(last),
        Period::Month { end: End::Inclusive, .. }
        | Period::Year { .. }
        | Period::Snapshot { .. } => last,
    };
    let value = series.value.and_then(|value| value.parse().ok());
    world.truth(endpoint, value, first, last).entries().collect()
}
