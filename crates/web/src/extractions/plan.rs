//! What a run would do.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use lavra_extract::forecast::{Expected, forecast};
use serde::Serialize;
use utoipa::ToSchema;

use super::orders::{Run, check};
use super::wire::Status;
use crate::app::App;
use crate::body::JsonBody;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;

/// Tasks of a plan that an answer names; all of them are counted.
const NAMED: usize = 1000;

/// What a run would plan, and what that costs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExtractionPlan, example = json!({
    "source": "pncp", "total": 1, "new": 1, "requests_at_least": 1, "requests_at_once": 4,
    "tasks": [{
        "task_id": "contratos_publicacao_2024-01-01", "endpoint_name": "contratos_publicacao",
        "data_date": "2024-01-01", "page_size": 500, "status": null, "requests_at_least": 1,
    }],
}))]
pub(crate) struct Plan {
    source: String,
    /// How many tasks it has.
    total: usize,
    /// How many of them are not in the table yet.
    new: usize,
    /// Where totals are not known, the request that asks for them.
    requests_at_least: i64,
    requests_at_once: usize,
    /// The first thousand, by date and name.
    tasks: Vec<PlannedTask>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "task_id": "contratos_publicacao_2024-01-01", "endpoint_name": "contratos_publicacao",
    "data_date": "2024-01-01", "page_size": 500, "status": null, "requests_at_least": 1,
}))]
pub(crate) struct PlannedTask {
    task_id: String,
    endpoint_name: String,
    #[schema(format = Date)]
    data_date: String,
    page_size: i64,
    /// What it is now; null where it is not in the table yet.
    status: Option<Status>,
    /// None of what is complete.
    requests_at_least: i64,
}

impl From<Expected> for PlannedTask {
    fn from(expected: Expected) -> Self {
        Self {
            task_id: expected.planned.task_id.0,
            endpoint_name: expected.planned.endpoint_name,
            data_date: expected.planned.data_date.to_string(),
            page_size: expected.page_size,
            status: expected.status.map(Status::from),
            requests_at_least: expected.requests,
        }
    }
}

/// What a run would do: nothing is written, and the source is asked for nothing
#[utoipa::path(
    post,
    path = "/extractions/{source}:plan",
    tag = "extractions",
    operation_id = "plan_extraction",
    params(("source" = String, Path, example = "pncp")),
    request_body = Run,
    responses(
        (status = 200, description = "What it would be", body = Plan),
        (status = 404, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn plan(
    State(app): State<Arc<App>>,
    Id(source): Id<String>,
    JsonBody(run): JsonBody<Run>,
) -> Result<Json<Plan>, Problem> {
    check(&app, &source, run.definition.as_deref()).await?;
    let order = run.order(source);
    let forecast = forecast(&app.database, &order).await?;
    Ok(Json(Plan {
        source: order.source,
        total: forecast.tasks.len(),
        new: forecast.new_tasks(),
        requests_at_least: forecast.requests(),
        requests_at_once: forecast.in_flight,
        tasks: forecast.tasks.into_iter().take(NAMED).map(PlannedTask::from).collect(),
    }))
}
