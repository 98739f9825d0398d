//! What kinds of tasks there are.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Site};
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(list))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskTypes)]
pub(crate) struct Types {
    items: Vec<Type>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskType, example = json!({
    "type": "http",
    "description": "Fetches a URL and keeps the answer",
    "waiting": 12,
    "oldest_waiting": "2026-11-15T20:30:00Z",
}))]
pub(crate) struct Type {
    #[serde(rename = "type")]
    kind: String,
    /// Only for types that come with the program.
    description: Option<String>,
    /// How many may be claimed now.
    waiting: i64,
    /// When the oldest of these was created.
    oldest_waiting: Option<Timestamp>,
}

/// List the task types that are known, and how many of each wait
#[utoipa::path(
    get,
    path = "/types",
    tag = "tasks",
    operation_id = "list_types",
    responses((status = 200, description = "By name", body = Types)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<Types>, Problem> {
    let store = app.tasks.store();
    let mut declared = store.declared().await?;
    declared.sort();
    let waiting = store.waiting().await?;
    let mut waiting: HashMap<_, _> =
        waiting.into_iter().map(|waiting| (waiting.kind.clone(), waiting)).collect();
    let items = declared.into_iter().map(|kind| {
        let backlog = waiting.remove(&kind);
        Type {
            description: app.types.get(&kind).cloned(),
            waiting: backlog.as_ref().map_or(0, |backlog| backlog.ready),
            oldest_waiting: backlog.and_then(|backlog| backlog.oldest),
            kind,
        }
    });
    Ok(Json(Types { items: items.collect() }))
}
