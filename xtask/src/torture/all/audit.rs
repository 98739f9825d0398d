//! Every table against the world, and against what must be free at the end.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::parts::Parts;
use crate::servers::Postgres;
use crate::torture::extract::truth;
use crate::torture::tasks::audit as tasks;
use crate::{exec, http};

pub(super) struct Audited {
    pub(super) summary: String,
    pub(super) findings: Vec<String>,
}

/// Each counts what must not be there.
const RULES: &[(&str, &str)] = &[
    (
        "missions that are not completed",
        "SELECT count(*) FROM public.missions WHERE status <> 'completed'",
    ),
    (
        "missions that were made twice",
        "SELECT count(*) - count(DISTINCT (date_start, date_end, media_type, languages))
         FROM public.missions",
    ),
    (
        "missions whose log does not say once that they were completed",
        "SELECT count(*) FROM public.missions m WHERE 1 <> (
             SELECT count(*) FROM public.mission_logs l
             WHERE l.mission_id = m.id AND l.event = 'mission_completed')",
    ),
    (
        "missions whose log goes on after their end",
        "SELECT count(*) FROM public.missions m JOIN public.mission_logs e
             ON e.mission_id = m.id AND e.event = 'mission_completed'
         WHERE EXISTS (SELECT 1 FROM public.mission_logs l WHERE l.mission_id = m.id
             AND l.timestamp > e.timestamp AND l.event::text NOT LIKE 'session%')",
    ),
    (
        "missions with two entries of the log at one time",
        "SELECT count(*) FROM (SELECT mission_id FROM public.mission_logs
             WHERE mission_id IS NOT NULL GROUP BY mission_id
             HAVING count(*) <> count(DISTINCT timestamp)) l",
    ),
    (
        "missions that someone holds",
        "SELECT count(*) FROM public.missions WHERE held_by IS NOT NULL",
    ),
    (
        "workers that are not free",
        "SELECT count(*) FROM public.workers
         WHERE status <> 'idle' OR current_mission_id IS NOT NULL OR held_by IS NOT NULL",
    ),
    (
        "proxies that are not free",
        "SELECT count(*) FROM public.proxies WHERE in_use_by_worker_id IS NOT NULL",
    ),
    (
        "jobs of the writer that are open",
        "SELECT count(*) FROM kodus_workflow.writer_jobs WHERE completed_at IS NULL",
    ),
    ("items that could not be written", "SELECT count(*) FROM kodus_workflow.writer_failed_items"),
    (
        "lists of a month that are not complete, or that someone holds",
        "SELECT count(*) FROM psa.pncp_extraction_tasks
         WHERE status <> 'COMPLETE' OR process IS NOT NULL",
    ),
    (
        "pages that are there twice",
        "SELECT count(*) - count(DISTINCT (task_id, page)) FROM psa.pncp_pages",
    ),
    (
        "lists of a month whose sums are not those of their pages",
        "SELECT count(*) FROM psa.pncp_extraction_tasks t
         WHERE (t.stored_pages, t.stored_records, t.stored_bytes) IS DISTINCT FROM
               (SELECT (count(*), coalesce(sum(records), 0), coalesce(sum(bytes), 0))
                FROM psa.pncp_pages p WHERE p.task_id = t.task_id)",
    ),
    (
        "pages whose answer is not there",
        "SELECT count(*) FROM psa.pncp_pages p WHERE NOT EXISTS (
             SELECT 1 FROM psa.pncp_raw_responses r
             WHERE r.id = p.response_id AND (r.task_id, r.page) = (p.task_id, p.page))",
    ),
    (
        "windows of no list, or without their total",
        "SELECT count(*) FROM psa.pncp_extraction_windows w WHERE total_records IS NULL OR NOT EXISTS (
             SELECT 1 FROM psa.pncp_extraction_tasks t WHERE t.task_id = w.task_id)",
    ),
    (
        "writers that are there twice, or not at all",
        "SELECT count(*) - 1 FROM public.writers",
    ),
    (
        "workers, writers and proxies without their secret, or secrets of none of them",
        "SELECT count(*) FROM (
             SELECT 'workers/' || id || '/api_key' AS name FROM public.workers
             UNION ALL SELECT 'writers/' || id || '/api_key' FROM public.writers
             UNION ALL SELECT 'proxies/' || id || '/password' FROM public.proxies) t
         FULL JOIN (SELECT name FROM lavra.secrets WHERE name NOT LIKE 'writer/%') s USING (name)
         WHERE t.name IS NULL OR s.name IS NULL",
    ),
    (
        "rows where nobody here wrote any",
        "SELECT (SELECT count(*) FROM lavra.api_keys) + (SELECT count(*) FROM lavra.sessions)
              + (SELECT count(*) FROM lavra.webhooks) + (SELECT count(*) FROM lavra.webhook_told)",
    ),
];

/// Who is there now, what was set, and what was answered to whom: no work is in these.
const NO_WORK: &[&str] = &[
    "kodus_workflow.leases",
    "kodus_workflow.processes",
    "kodus_workflow.schema_migrations",
    "kodus_workflow.task_schedules",
    "kodus_workflow.task_types",
    "kodus_workflow.writer_processes",
    "lavra.idempotency_keys",
    "lavra.webhook_position",
    "public.fleet_processes",
    "public.fleet_settings",
];

/// How many workers and missions are somebody's.
pub(super) fn held(postgres: &Postgres, database: &str) -> Result<u64> {
    let count = postgres.sql(
        database,
        "SELECT (SELECT count(*) FROM public.workers WHERE status <> 'idle' OR held_by IS NOT NULL)
              + (SELECT count(*) FROM public.missions WHERE held_by IS NOT NULL)",
    )?;
    count.trim().parse().context("a count is no number")
}

pub(super) fn audit(postgres: &Postgres, database: &str, parts: &Parts) -> Result<Audited> {
    let mut findings = tasks::broken_rules(postgres, database)?;
    for (what, sql) in RULES {
        let count = postgres.sql(database, sql)?;
        if count != "0" {
            findings.push(format!("{count} {what}"));
        }
    }
    findings.extend(unlooked(postgres, database)?);
    let records = records(postgres, database, parts, &mut findings)?;
    let (missions, ads) = ads(postgres, database, parts, &mut findings)?;
    let again = postgres.sql(
        database,
        "SELECT count(*) FROM public.mission_logs WHERE event = 'retry_triggered'",
    )?;
    let takeovers = postgres.sql(
        database,
        "SELECT count(*) FROM kodus_workflow.task_events
         WHERE actor = 'SYSTEM' AND detail->>'action' IN ('retry', 'fail')",
    )?;
    let pages = postgres.sql(database, "SELECT count(*) FROM psa.pncp_pages")?;
    let summary = format!(
        "{pages} pages with {records} records; {missions} missions with {ads} ads; {takeovers} \
         tasks taken over, {again} retries of missions"
    );
    Ok(Audited { summary, findings })
}

/// Tables that nothing here is about: a new one has to be thought of.
fn unlooked(postgres: &Postgres, database: &str) -> Result<Vec<String>> {
    let tables = postgres.sql(
        database,
        "SELECT schemaname || '.' || tablename FROM pg_tables
         WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
    )?;
    let is_looked_at = |table: &str| {
        let in_rules = RULES.iter().any(|(_, sql)| sql.contains(table));
        in_rules || tasks::looks_at(table) || table == "public.ads" || NO_WORK.contains(&table)
    };
    let unlooked = tables.lines().filter(|table| !is_looked_at(table));
    Ok(unlooked.map(|table| format!("no rule is about {table}")).collect())
}

/// The records of the extraction, by key and hash; and the program's own audit.
fn records(
    postgres: &Postgres,
    database: &str,
    parts: &Parts,
    findings: &mut Vec<String>,
) -> Result<usize> {
    let mut audit = parts.lavra();
    let audited = exec::capture(audit.args(["--json", "extract", "audit", "pncp"]))?;
    let audited: Value = serde_json::from_str(&audited).context("the audit printed no JSON")?;
    if audited["problems"] != serde_json::json!({}) {
        findings.push(format!("the program's own audit found {}", audited["problems"]));
    }
    let out = parts.path().join("export");
    let mut export = parts.lavra();
    export.args(["extract", "export", "pncp", "--format", "jsonl", "--out"]).arg(&out);
    exec::capture(&mut export)?;
    let months = postgres.sql(
        database,
        "SELECT DISTINCT to_char(data_date, 'YYYY-MM') FROM psa.pncp_extraction_tasks ORDER BY 1",
    )?;
    let mut compared = 0;
    for month in months.lines() {
        let mut wanted = truth::of_the_world(parts.world(), month, 1..=14)?;
        let mut stored = truth::of_an_export(&out, "contratacoes_publicacao", month)?;
        wanted.sort_unstable();
        stored.sort_unstable();
        if stored != wanted {
            findings.push(format!(
                "{month}: {} records are stored, the world has {}, and they are not the same",
                stored.len(),
                wanted.len()
            ));
        }
        compared += stored.len();
    }
    Ok(compared)
}

/// The ads that the library has for all missions, against the table that the writer filled.
fn ads(
    postgres: &Postgres,
    database: &str,
    parts: &Parts,
    findings: &mut Vec<String>,
) -> Result<(usize, usize)> {
    let missions = postgres.sql(
        database,
        "SELECT json_build_object('day', date_start, 'media', media_type, 'ads', ads_count,
             'languages', array_to_string(languages, ',')) FROM public.missions",
    )?;
    let mut wanted: BTreeMap<String, Value> = BTreeMap::new();
    for line in missions.lines() {
        let mission: Value = serde_json::from_str(line).context("a mission is no JSON")?;
        let text = |name: &str| mission[name].as_str().unwrap_or_default();
        let path = format!(
            "/_world/ads?date_start={day}&date_end={day}&media_type={}&languages={}",
            text("media"),
            text("languages"),
            day = text("day")
        );
        let (status, body) = http::send(parts.ads, "GET", &path, &[], "")?;
        if status != 200 {
            bail!("{path}: {status} {body}");
        }
        let truth: Value = serde_json::from_str(&body).context("the library's truth")?;
        let truth = truth["ads"].as_array().cloned().unwrap_or_default();
        if mission["ads"].as_u64() != Some(truth.len() as u64) {
            findings.push(format!("{line}: the library has {} ads", truth.len()));
        }
        let by_id = |ad: Value| Some((ad["id"].as_str()?.to_owned(), ad));
        wanted.extend(truth.into_iter().filter_map(by_id));
    }
    let rows = postgres
        .sql(database, "SELECT json_build_object('id', id, 'data', data) FROM public.ads")?;
    let mut stored: BTreeMap<String, Value> = BTreeMap::new();
    for line in rows.lines() {
        let mut row: Value = serde_json::from_str(line).context("an ad is no JSON")?;
        let id = row["id"].as_str().unwrap_or_default().to_owned();
        stored.insert(id, row["data"].take());
    }
    let ids = |ads: &BTreeMap<String, Value>| ads.keys().cloned().collect::<BTreeSet<_>>();
    let (have, want) = (ids(&stored), ids(&wanted));
    for (what, count) in [
        ("ads are lost", want.difference(&have).count()),
        ("ads are there that no mission found", have.difference(&want).count()),
        (
            "ads are not as the library has them",
            stored.iter().filter(|(id, ad)| wanted.get(*id).is_some_and(|it| it != *ad)).count(),
        ),
    ] {
        if count > 0 {
            findings.push(format!("{count} {what}"));
        }
    }
    Ok((missions.lines().count(), stored.len()))
}
