//! Every table against the world, against what was promised, and against what must be free at the end.
//! What cannot be looked at is a finding as well, so that one trouble hides no other.

mod ads;
mod extraction;
pub(super) mod floor;
mod rules;

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use self::floor::Amounts;
use super::parts::Parts;
use super::promises::{Kept, Promises};
use crate::servers::Postgres;
use crate::torture::rules::broken;
use crate::torture::tasks::audit as tasks;

/// How many are somebody's, or still to be done.
pub(super) fn open(postgres: &Postgres, database: &str) -> Result<u64> {
    count(
        postgres,
        database,
        "SELECT (SELECT count(*) FROM public.workers WHERE status <> 'idle' OR held_by IS NOT NULL)
              + (SELECT count(*) FROM public.missions WHERE held_by IS NOT NULL)
              + (SELECT count(*) FROM kodus_workflow.tasks
                 WHERE status IN ('PENDING', 'IN_PROGRESS') OR stop_by IS NOT NULL)
              + (SELECT count(*) FROM kodus_workflow.task_outbox)",
    )
}

/// How many secrets the writer should have removed.
pub(super) fn secrets(postgres: &Postgres, database: &str) -> Result<u64> {
    count(postgres, database, rules::SECRETS_OF_ENDED_JOBS)
}

fn count(postgres: &Postgres, database: &str, sql: &str) -> Result<u64> {
    postgres.sql(database, sql)?.parse().context("a count is no number")
}

pub(super) fn audit(
    postgres: &Postgres,
    database: &str,
    parts: &Parts,
    promises: &Promises,
    findings: &mut Vec<String>,
) -> Amounts {
    findings.extend(broken(tasks::RULES, postgres, database));
    findings.extend(broken(rules::RULES, postgres, database));
    for (what, found) in [
        ("the tables", rules::unlooked(postgres, database)),
        ("workers, proxies and writers", rules::furniture(postgres, database)),
        ("the program's own audit", extraction::own(parts)),
    ] {
        findings.extend(found.unwrap_or_else(|error| vec![unseen(what, &error)]));
    }
    let kept = kept(postgres, database).unwrap_or_else(|error| {
        findings.push(unseen("what was promised", &error));
        Kept::default()
    });
    findings.extend(promises.broken(&kept));
    let months: BTreeSet<String> =
        kept.lists.iter().filter_map(|list| month(list)).chain(promises.months()).collect();
    let records = extraction::compare(parts, &months, findings).unwrap_or_else(|error| {
        findings.push(unseen("the records", &error));
        0
    });
    let ads = ads::compare(postgres, database, parts.ads, promises.missions(), findings);
    let ads = ads.unwrap_or_else(|error| {
        findings.push(unseen("the ads", &error));
        0
    });
    Amounts {
        days: promises.days.len(),
        extractions: promises.extractions.len(),
        missions: kept.missions.len(),
        ads,
        records,
    }
}

fn unseen(what: &str, error: &anyhow::Error) -> String {
    format!("{what} cannot be looked at: {error:#}")
}

/// What is in the tables of that which can be promised.
fn kept(postgres: &Postgres, database: &str) -> Result<Kept> {
    let rows = |sql: &str| postgres.sql(database, sql);
    let names = |sql: &str| -> Result<BTreeSet<String>> {
        Ok(rows(sql)?.lines().map(str::to_owned).collect())
    };
    let missions = rows(
        "SELECT date_start, media_type, array_to_string(languages, ',') FROM public.missions
         WHERE date_start = date_end",
    )?;
    let mission = |line: &str| {
        let mut words = line.split('|').map(str::to_owned);
        Some((words.next()?, words.next()?, words.next()?))
    };
    Ok(Kept {
        missions: missions.lines().filter_map(mission).collect(),
        lists: names("SELECT task_id FROM psa.pncp_extraction_tasks")?,
        extractions: names("SELECT id FROM kodus_workflow.tasks WHERE type = 'extract'")?,
        tasks: names("SELECT id FROM kodus_workflow.tasks")?,
    })
}

/// Of `atas_atualizacao_2025-01-01`.
fn month(list: &str) -> Option<String> {
    let (_, day) = list.rsplit_once('_')?;
    day.get(..7).map(str::to_owned)
}

/// What happened, in a line.
pub(super) fn summary(postgres: &Postgres, database: &str, amounts: &Amounts) -> String {
    let again = "SELECT count(*) FROM public.mission_logs WHERE event = 'retry_triggered'";
    let takeovers = "SELECT count(*) FROM kodus_workflow.task_events
                     WHERE actor = 'SYSTEM' AND detail->>'action' IN ('retry', 'fail')";
    let pages = "SELECT count(*) FROM psa.pncp_pages";
    let failed = "SELECT count(*) FROM psa.pncp_raw_responses WHERE outcome = 'failed'";
    let [again, takeovers, pages, failed] = [again, takeovers, pages, failed]
        .map(|sql| postgres.sql(database, sql))
        .map(|count| count.unwrap_or_else(|_| "?".to_owned()));
    let Amounts { days, extractions, missions, ads, records } = amounts;
    format!(
        "promised: {days} days of missions, {extractions} extractions; there: {pages} pages with \
         {records} records after {failed} answers that failed, {missions} missions with {ads} ads; \
         {takeovers} tasks taken over, {again} retries of missions"
    )
}
