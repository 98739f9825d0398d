//! Which sources there are.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use lavra_extract::Known;
use serde::Serialize;
use utoipa::ToSchema;

use super::wire::Status;
use crate::app::App;
use crate::problem::Problem;

#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"items": [{
    "name": "pncp",
    "title": "Portal Nacional de Contratações Públicas",
    "is_built_in": true,
    "endpoints": ["contratos_publicacao"],
    "tasks": [{"status": "COMPLETE", "count": 31}],
}]}))]
pub(crate) struct Sources {
    items: Vec<Source>,
}

/// A source that can be named here.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "pncp",
    "title": "Portal Nacional de Contratações Públicas",
    "is_built_in": true,
    "endpoints": ["contratos_publicacao"],
    "tasks": [{"status": "COMPLETE", "count": 31}],
}))]
pub(crate) struct Source {
    name: String,
    /// Of those that come with the program.
    title: Option<String>,
    /// Others need their definition with each order.
    is_built_in: bool,
    /// The names that the plan has for its endpoints, where they are known.
    endpoints: Vec<String>,
    /// How its plan stands; null where nothing of it was ever extracted here.
    tasks: Option<Vec<StatusCount>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"status": "COMPLETE", "count": 31}))]
pub(crate) struct StatusCount {
    status: Status,
    count: i64,
}

impl From<Known> for Source {
    fn from(known: Known) -> Self {
        let (title, endpoints) = match &known.built_in {
            Some(built_in) => (Some(built_in.title.clone()), built_in.endpoints.clone()),
            None => (None, Vec::new()),
        };
        let tasks = known.tasks.map(|tasks| {
            let count = |(status, count): (lavra_extract::model::Status, i64)| StatusCount {
                status: status.into(),
                count,
            };
            tasks.into_iter().map(count).collect()
        });
        Self { name: known.name, title, is_built_in: known.built_in.is_some(), endpoints, tasks }
    }
}

/// List the sources: those that come with the program, and those that have tables here
#[utoipa::path(
    get,
    path = "/sources",
    tag = "extractions",
    operation_id = "list_sources",
    responses((status = 200, description = "By name", body = Sources)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<Sources>, Problem> {
    let known = lavra_extract::sources(&app.database).await?;
    Ok(Json(Sources { items: known.into_iter().map(Source::from).collect() }))
}
