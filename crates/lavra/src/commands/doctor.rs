//! `lavra doctor`: what is not as it should be, and what to do about it. It looks, and changes nothing of the
//! database; of RabbitMQ it makes the queues that are not there, as every process does that talks to it.

use std::time::Duration;

use lavra_db::{Database, DuckOptions, Pg, Target};
use lavra_tasks::Broker;
use serde_json::json;

use crate::exit::Exit;
use crate::migrations;
use crate::node::{broker, open};
use crate::printer::Printer;
use crate::settings::Settings;

/// How long a server that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

struct Finding {
    what: &'static str,
    good: bool,
    text: String,
}

/// What is worth having, and nothing is wrong without.
const HINTS: &[&str] = &["pg_stat_statements"];

impl Finding {
    fn grade(&self) -> &'static str {
        match (self.good, HINTS.contains(&self.what)) {
            (true, _) => "ok",
            (false, true) => "hint",
            (false, false) => "look",
        }
    }
}

pub(crate) async fn run(settings: &Settings, printer: &Printer) -> anyhow::Result<Exit> {
    let findings = match &settings.target {
        // Whoever opens a file makes it.
        Target::File(path) if !path.exists() => vec![Finding {
            what: "database",
            good: false,
            text: format!("{} is not there yet: `lavra serve` makes it", settings.target),
        }],
        Target::File(_) | Target::Postgres(_) => look(settings).await?,
    };
    let value = json!(
        findings
            .iter()
            .map(|f| json!({ "what": f.what, "good": f.good, "grade": f.grade(), "text": f.text }))
            .collect::<Vec<_>>()
    );
    let bad = findings.iter().filter(|finding| finding.grade() == "look").count();
    let rows = findings.into_iter().map(|f| vec![f.grade().into(), f.what.into(), f.text]);
    printer.table(&value, &["", "WHAT", "FINDING"], rows.collect());
    Ok(if bad == 0 { Exit::Done } else { Exit::WorkRemains(format!("{bad} to look at")) })
}

async fn look(settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    let database = open(settings, PATIENCE, DuckOptions::default()).await?;
    let missing = migrations::missing(&database).await?;
    let up_to_date = missing.is_empty();
    let mut findings = vec![Finding {
        what: "database",
        good: up_to_date,
        text: if up_to_date {
            format!("{} answers and its schema is up to date", settings.target)
        } else {
            format!(
                "{} answers, but its schema is not up to date: `lavra migrate` applies {}",
                settings.target,
                missing.join(", ")
            )
        },
    }];
    match &database {
        Database::Postgres(pg) => postgres(pg, &mut findings).await?,
        Database::Duck(duck) => findings.push(match duck.set_aside() {
            None => Finding { what: "log", good: true, text: "the file's log is whole".into() },
            Some(path) => Finding {
                what: "log",
                good: false,
                text: format!("a log that could not be replayed was set aside: {}", path.display()),
            },
        }),
    }
    if let Some(broker) = broker(settings) {
        findings.push(broker_finding(&broker).await);
    }
    Ok(findings)
}

async fn postgres(pg: &Pg, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let one = async |sql: &str| -> anyhow::Result<bool> {
        let rows = pg.query("look at the server", sql, &[]).await?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
    };
    let statements =
        one("SELECT count(*) > 0 FROM pg_extension WHERE extname = 'pg_stat_statements'").await?;
    findings.push(Finding {
        what: "pg_stat_statements",
        good: statements,
        text: if statements {
            "the server keeps statistics of statements".into()
        } else {
            "CREATE EXTENSION pg_stat_statements (and shared_preload_libraries) shows slow statements".into()
        },
    });
    let vacuum = one("SELECT current_setting('autovacuum')::bool").await?;
    findings.push(Finding {
        what: "autovacuum",
        good: vacuum,
        text: if vacuum {
            "on; tasks and outbox have settings of their own".into()
        } else {
            "off: tables that change this often will grow without bound; turn it on".into()
        },
    });
    let bloated =
        one("SELECT coalesce(max(n_dead_tup::float8 / greatest(n_live_tup, 1000)), 0) > 1
         FROM pg_stat_user_tables WHERE schemaname = 'kodus_workflow'")
        .await?;
    findings.push(Finding {
        what: "dead rows",
        good: !bloated,
        text: if bloated {
            "a table has more dead rows than live ones: look for old transactions in pg_stat_activity".into()
        } else {
            "vacuum keeps up".into()
        },
    });
    Ok(())
}

async fn broker_finding(broker: &Broker) -> Finding {
    let health = broker.look(PATIENCE).await;
    let text = match (&health.trouble, health.connected) {
        (_, true) if !health.foreign_queues.is_empty() => format!(
            "queues with other arguments than ours are used as they are: {}",
            health.foreign_queues.join(", ")
        ),
        (_, true) => "RabbitMQ answers".into(),
        (Some(trouble), false) => format!("RabbitMQ is away: {trouble}"),
        (None, false) => "RabbitMQ did not answer in time".into(),
    };
    let good = health.connected && health.foreign_queues.is_empty();
    Finding { what: "broker", good, text }
}
