//! Questions in SQL, also while this process holds the file.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use lavra_db::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Site};
use crate::body::JsonBody;
use crate::problem::Problem;

const USUAL: usize = 1000;
const MOST: usize = 100_000;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(ask))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SqlQuestion, example = json!({
    "query": "SELECT status, count(*) AS tasks FROM kodus_workflow.tasks GROUP BY status",
    "limit": 100,
}))]
pub(crate) struct Question {
    /// One SELECT.
    query: String,
    #[schema(minimum = 1, maximum = 100_000, default = 1000)]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SqlAnswer, example = json!({"columns": ["status", "tasks"], "rows": [["PENDING", 3]], "truncated": false}))]
pub(crate) struct Answer {
    columns: Vec<String>,
    #[schema(value_type = Vec<Vec<Value>>)]
    rows: Vec<Vec<Value>>,
    /// Whether there were more rows than asked for.
    truncated: bool,
}

/// Ask the database
///
/// It can change nothing.
#[utoipa::path(
    post,
    path = "/sql",
    tag = "operations",
    operation_id = "ask",
    request_body = Question,
    responses(
        (status = 200, description = "Columns and rows", body = Answer),
        (status = 422, response = crate::openapi::Refused),
    ),
)]
pub(crate) async fn ask(
    State(app): State<Arc<App>>,
    JsonBody(question): JsonBody<Question>,
) -> Result<Json<Answer>, Problem> {
    let limit = question.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::invalid(format!("limit must be between 1 and {MOST}")));
    }
    let answer = app.database.ask(&question.query, limit).await.map_err(refuse)?;
    let lavra_db::Answer { columns, rows, truncated } = answer;
    Ok(Json(Answer { columns, rows, truncated }))
}

/// What the database says of the query is for the one who wrote it.
fn refuse(error: Error) -> Problem {
    match error {
        Error::Config(reason) => Problem::invalid(reason),
        Error::Postgres { .. } | Error::Duck { .. } if !error.is_transient() => {
            Problem::invalid(error.to_string())
        }
        other => other.into(),
    }
}
