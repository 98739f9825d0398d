//! Whether the process lives, and whether it can work.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use lavra_db::Database;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, Site};
use crate::openapi::Refused;
use crate::problem::{Code, Problem};

const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(alive)).routes(routes!(ready))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Liveness, example = json!({"status": "alive"}))]
pub(crate) struct Alive {
    status: &'static str,
}

/// Whether the process lives
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operations",
    operation_id = "healthz",
    responses((status = 200, description = "It does", body = Alive)),
)]
pub(crate) async fn alive() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Readiness, example = json!({
    "status": "degraded",
    "reasons": ["RabbitMQ: connection refused"],
    "database": "postgres",
    "broker": {"connected": false, "trouble": "connection refused", "foreign_queues": []},
    "outbox": 3,
}))]
pub(crate) struct Ready {
    /// `ready`, or `degraded`: it works, but somebody should look at the reasons.
    status: &'static str,
    /// This and all that follows is told to those who are known: by a key, or on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<String>>,
    /// `duckdb` or `postgres`.
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<&'static str>,
    /// Absent where none is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<BrokerHealth>,
    /// Messages that wait for the broker.
    #[serde(skip_serializing_if = "Option::is_none")]
    outbox: Option<i64>,
    /// Where a log of the DuckDB file that could not be replayed was set aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_aside: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BrokerHealth {
    connected: bool,
    trouble: Option<String>,
    /// Queues that exist with other arguments than ours and are used as they are.
    foreign_queues: Vec<String>,
}

impl From<lavra_tasks::BrokerHealth> for BrokerHealth {
    fn from(health: lavra_tasks::BrokerHealth) -> Self {
        let lavra_tasks::BrokerHealth { connected, trouble, foreign_queues } = health;
        Self { connected, trouble, foreign_queues }
    }
}

/// Whether it can work
///
/// Without the broker it can: tasks are made and run, messages wait in the outbox.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operations",
    operation_id = "readyz",
    responses(
        (status = 200, description = "It can", body = Ready),
        (status = 503, response = Refused),
    ),
)]
pub(crate) async fn ready(
    State(app): State<Arc<App>>,
    caller: Option<Caller>,
) -> Result<Json<Ready>, Problem> {
    let silent = || {
        let detail = format!("the database did not answer within {PATIENCE:?}");
        Problem::new(Code::DatabaseUnreachable, detail)
    };
    let asked = tokio::time::timeout(PATIENCE, app.tasks.store().outbox_depth()).await;
    let outbox = asked.map_err(|_| silent())??;
    let (database, set_aside) = match &app.database {
        Database::Duck(duck) => ("duckdb", duck.set_aside()),
        Database::Postgres(_) => ("postgres", None),
    };
    let set_aside = set_aside.map(|path| path.display().to_string());
    let broker = app.tasks.broker().map(|broker| BrokerHealth::from(broker.health()));
    let mut reasons = Vec::new();
    if let Some(broker) = broker.as_ref().filter(|broker| !broker.connected) {
        let trouble = broker.trouble.as_deref().unwrap_or("not connected yet");
        reasons.push(format!("RabbitMQ: {trouble}"));
    }
    if let Some(path) = &set_aside {
        reasons.push(format!("a log could not be replayed and was set aside as {path}"));
    }
    let status = if reasons.is_empty() { "ready" } else { "degraded" };
    // The reasons name hosts and files, and whoever reaches this need not have shown a key.
    if caller.is_none() {
        return Ok(Json(Ready { status, ..Ready::default() }));
    }
    Ok(Json(Ready {
        status,
        reasons: Some(reasons),
        database: Some(database),
        broker,
        outbox: Some(outbox),
        set_aside,
    }))
}
