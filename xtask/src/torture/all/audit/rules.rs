//! The rules of the tables, and whether there is a table without any.

use anyhow::Result;

use crate::servers::Postgres;
use crate::torture::all::furnish::MAX_RETRIES;
use crate::torture::all::parts::{PROXIES, WORKERS};
use crate::torture::rules::{self, Rule};
use crate::torture::tasks::audit as tasks;

/// The writer removes the secrets of a job when it has ended; where it was killed before it could, its next
/// process does, at its start.
pub(super) const SECRETS_OF_ENDED_JOBS: &str =
    "SELECT count(*) FROM lavra.secrets s JOIN kodus_workflow.writer_jobs j
         ON s.name LIKE 'writer/%' AND split_part(s.name, '/', 2) = j.job_id
     WHERE j.completed_at IS NOT NULL";

/// Of all tables but those of tasks, which have rules of their own, and of the ads.
pub(super) const RULES: &[Rule] = &[
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
        "pages whose answer is not there, or is another one",
        "SELECT count(*) FROM psa.pncp_pages p WHERE NOT EXISTS (
             SELECT 1 FROM psa.pncp_raw_responses r
             WHERE r.id = p.response_id AND (r.task_id, r.page) = (p.task_id, p.page)
               AND r.outcome = CASE WHEN p.records > 0 THEN 'data' ELSE 'empty' END)",
    ),
    (
        // An answer is stored with the page that points to it, in one transaction, and gives way only to
        // another content of that page. This world never changes, so none has given way.
        "answers that did not fail, and that no page points to",
        "SELECT count(*) FROM psa.pncp_raw_responses r WHERE outcome <> 'failed' AND NOT EXISTS (
             SELECT 1 FROM psa.pncp_pages p WHERE p.response_id = r.id)",
    ),
    (
        "answers that failed and do not say why",
        "SELECT count(*) FROM psa.pncp_raw_responses
         WHERE (outcome = 'failed') IS DISTINCT FROM (error IS NOT NULL)",
    ),
    (
        "pages and answers of no list",
        "SELECT count(*) FROM (
             SELECT task_id FROM psa.pncp_pages
             UNION ALL SELECT task_id FROM psa.pncp_raw_responses) o
         WHERE NOT EXISTS (
             SELECT 1 FROM psa.pncp_extraction_tasks t WHERE t.task_id = o.task_id)",
    ),
    (
        "windows of no list, or without their total",
        "SELECT count(*) FROM psa.pncp_extraction_windows w WHERE total_records IS NULL OR NOT EXISTS (
             SELECT 1 FROM psa.pncp_extraction_tasks t WHERE t.task_id = w.task_id)",
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
        // Those of orders that were never taken stay for an hour: they may be of one that is being taken.
        "secrets of jobs of the writer that have ended",
        SECRETS_OF_ENDED_JOBS,
    ),
    (
        "rows where nobody here wrote any",
        "SELECT (SELECT count(*) FROM lavra.api_keys) + (SELECT count(*) FROM lavra.sessions)
              + (SELECT count(*) FROM lavra.webhooks) + (SELECT count(*) FROM lavra.webhook_told)",
    ),
];

/// Who is there now, what can be done, and what was answered to whom: no work is in these.
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
];

/// Tables that are held against what was made instead.
const COMPARED: &[&str] = &["public.ads", "public.fleet_settings", "public.writers"];

/// What was made and set before anything was killed, and nobody has changed since.
pub(super) fn furniture(postgres: &Postgres, database: &str) -> Result<Vec<String>> {
    let sql = "SELECT (SELECT count(*) FROM public.workers), (SELECT count(*) FROM public.proxies),
                      (SELECT count(*) FROM public.writers),
                      (SELECT string_agg(adjustable->>'max_retries', ',') FROM public.fleet_settings)";
    let found = postgres.sql(database, sql)?;
    let made = format!("{WORKERS}|{PROXIES}|1|{MAX_RETRIES}");
    let names = "workers, proxies, writers and retries of a mission";
    Ok(if found == made { Vec::new() } else { vec![format!("{names}: {found}, not {made}")] })
}

/// Tables that nothing here is about: a new one has to be thought of.
pub(super) fn unlooked(postgres: &Postgres, database: &str) -> Result<Vec<String>> {
    let tables = postgres.sql(
        database,
        "SELECT schemaname || '.' || tablename FROM pg_tables
         WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
    )?;
    let unlooked = tables.lines().filter(|table| !is_looked_at(table));
    Ok(unlooked.map(|table| format!("no rule is about {table}")).collect())
}

fn is_looked_at(table: &str) -> bool {
    rules::look_at(RULES, table)
        || rules::look_at(tasks::RULES, table)
        || [COMPARED, NO_WORK].iter().any(|tables| tables.contains(&table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_new_is_looked_at_by_no_rule() {
        let old = ["psa.pncp_raw_responses", "lavra.secrets", "public.ads", "kodus_workflow.tasks"];
        for table in old {
            assert!(is_looked_at(table), "{table}");
        }
        let new =
            ["public.mission", "public.ads_of_missions", "psa.pncp_raw", "kodus_workflow.task"];
        for table in new {
            assert!(!is_looked_at(table), "{table}");
        }
    }
}
