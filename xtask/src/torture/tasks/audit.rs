//! The auditor: what must hold in the tables whatever was killed.

use std::collections::HashSet;

use anyhow::Result;

use super::load::Sent;
use crate::servers::Postgres;
use crate::torture::rules::{self, Rule};

/// Of every table of tasks.
pub(in crate::torture) const RULES: &[Rule] = &[
    (
        "tasks neither ended nor live by any state",
        "SELECT count(*) FROM kodus_workflow.tasks
         WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')",
    ),
    (
        "tasks whose version is not the number of their events, without gaps",
        "SELECT count(*) FROM kodus_workflow.tasks t LEFT JOIN (
             SELECT task_id, count(*) AS events, count(DISTINCT version) AS versions,
                    min(version) AS first, max(version) AS last
             FROM kodus_workflow.task_events GROUP BY task_id) e ON e.task_id = t.id
         WHERE e.task_id IS NULL OR e.events <> t.version + 1 OR e.versions <> e.events
            OR e.first <> 0 OR e.last <> t.version",
    ),
    (
        "tasks with more or fewer than one end between creation or a person's retry and now",
        "SELECT count(*) FROM (
             SELECT task_id, chain, count(*) FILTER (
                 WHERE detail->>'action' IN ('complete', 'fail', 'cancel')) AS ends
             FROM (SELECT *, count(*) FILTER (
                       WHERE actor = 'API' AND detail->>'action' = 'retry')
                       OVER (PARTITION BY task_id ORDER BY version) AS chain
                   FROM kodus_workflow.task_events) e
             GROUP BY task_id, chain) c WHERE ends <> 1",
    ),
    (
        "events whose time does not grow with their version",
        "SELECT count(*) FROM (
             SELECT created_at, lag(created_at) OVER (PARTITION BY task_id ORDER BY version) AS before
             FROM kodus_workflow.task_events) e WHERE before >= created_at",
    ),
    ("rows left in the outbox", "SELECT count(*) FROM kodus_workflow.task_outbox"),
    (
        "completed tasks without a result",
        "SELECT count(*) FROM kodus_workflow.tasks t WHERE status = 'COMPLETED'
         AND NOT EXISTS (SELECT 1 FROM kodus_workflow.task_results r WHERE r.task_id = t.id)",
    ),
    (
        "failed tasks without a dead letter, or letters of tasks that did not fail",
        "SELECT count(*) FROM kodus_workflow.tasks t FULL JOIN (
             SELECT DISTINCT task_id FROM kodus_workflow.task_dead_letters
             WHERE task_id IS NOT NULL) d ON d.task_id = t.id
         WHERE (t.status = 'FAILED') IS DISTINCT FROM (d.task_id IS NOT NULL)",
    ),
    (
        "stops that nobody confirmed or gave up",
        "SELECT count(*) FROM kodus_workflow.tasks WHERE stop_by IS NOT NULL",
    ),
    (
        "tasks without their input, or inputs of no task",
        "SELECT count(*) FROM kodus_workflow.tasks t
         FULL JOIN kodus_workflow.task_inputs i ON i.task_id = t.id
         WHERE t.id IS NULL OR i.task_id IS NULL",
    ),
    (
        "keys that belong to no task",
        "SELECT count(*) FROM kodus_workflow.task_keys k
         WHERE NOT EXISTS (SELECT 1 FROM kodus_workflow.tasks t WHERE t.id = k.task_id)",
    ),
    (
        "attempts that were not counted",
        "SELECT count(*) FROM kodus_workflow.tasks t WHERE attempts <> (
             SELECT count(*) FROM kodus_workflow.task_events e
             WHERE e.task_id = t.id AND e.detail->>'action' = 'start')",
    ),
];

pub(super) fn findings(postgres: &Postgres, database: &str, sent: &Sent) -> Result<Vec<String>> {
    let mut findings = rules::broken(RULES, postgres, database);
    let ids = postgres.sql(database, "SELECT id FROM kodus_workflow.tasks")?;
    let stored: HashSet<&str> = ids.lines().collect();
    let promised: HashSet<&str> = sent.created.iter().map(String::as_str).collect();
    if promised.len() != sent.created.len() {
        findings.push("two keys were answered with one task".to_owned());
    }
    let lost = promised.iter().filter(|id| !stored.contains(**id)).count();
    if lost > 0 {
        findings.push(format!("{lost} tasks were promised and are not there"));
    }
    Ok(findings)
}

pub(super) fn summary(postgres: &Postgres, database: &str, sent: &Sent) -> Result<String> {
    let by_status = postgres.sql(
        database,
        "SELECT string_agg(status || ' ' || count, ', ' ORDER BY status) FROM (
             SELECT status, count(*) AS count FROM kodus_workflow.tasks GROUP BY status) s",
    )?;
    let events = postgres.sql(database, "SELECT count(*) FROM kodus_workflow.task_events")?;
    let takeovers = postgres.sql(
        database,
        "SELECT count(*) FROM kodus_workflow.task_events
         WHERE actor = 'SYSTEM' AND detail->>'action' IN ('retry', 'fail')",
    )?;
    Ok(format!(
        "{} tasks created ({by_status}), {} cancelled and {} retried by hand, {takeovers} takeovers, {events} events",
        sent.created.len(),
        sent.cancels,
        sent.retries
    ))
}
