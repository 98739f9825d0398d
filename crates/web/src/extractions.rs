//! How extractions stand: the rows of a source's plan, with what is stored of each.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use lavra_extract::Month;
use lavra_extract::store::{Progress, Scope};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Site};
use crate::openapi::Refused;
use crate::problem::{Code, Problem};
use crate::query::Params;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(list))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// The first month, as 2024-01.
    #[param(value_type = Option<String>, example = "2024-01")]
    from: Option<Month>,
    /// The last month.
    #[param(value_type = Option<String>, example = "2024-03")]
    to: Option<Month>,
    /// One endpoint, by its whole name.
    endpoint: Option<String>,
}

/// The plan of a source, by date and name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Extractions {
    items: Vec<Extraction>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "task_id": "contratos_publicacao_2024-01-01",
    "endpoint_name": "contratos_publicacao",
    "data_date": "2024-01-01",
    "status": "PARTIAL",
    "total_pages": 216,
    "total_records": 107_709,
    "pages": 120,
    "records": 60_000,
    "bytes": 90_120_000,
    "is_final": true,
    "verdict": null,
    "last_error": null,
    "next_attempt_at": null,
    "updated_at": "2026-11-15T20:31:00Z",
}))]
pub(crate) struct Extraction {
    task_id: String,
    endpoint_name: String,
    data_date: String,
    /// PENDING, DISCOVERING, FETCHING, PARTIAL, COMPLETE or FAILED.
    status: &'static str,
    /// What the source announced last.
    total_pages: Option<i64>,
    total_records: Option<i64>,
    /// What is stored.
    pages: i64,
    records: i64,
    bytes: i64,
    /// Whether the month was over when it was fetched.
    is_final: bool,
    /// `exact`, `short by 3`, `drifted by 2`.
    verdict: Option<String>,
    last_error: Option<String>,
    /// When it is tried again by itself.
    next_attempt_at: Option<Timestamp>,
    updated_at: Timestamp,
}

impl From<Progress> for Extraction {
    fn from(progress: Progress) -> Self {
        let task = progress.task;
        Self {
            task_id: task.task_id.0,
            endpoint_name: task.endpoint_name,
            data_date: task.data_date.to_string(),
            status: task.status.as_str(),
            total_pages: task.total_pages,
            total_records: task.total_records,
            pages: progress.pages,
            records: progress.records,
            bytes: progress.bytes,
            is_final: task.is_final,
            verdict: task.verdict,
            last_error: task.last_error,
            next_attempt_at: task.next_attempt_at,
            updated_at: task.updated_at,
        }
    }
}

/// List the plan of a source, with what is stored of each task
#[utoipa::path(
    get,
    path = "/extractions/{source}",
    tag = "extractions",
    operation_id = "list_extractions",
    params(("source" = String, Path, example = "pncp"), Filter),
    responses(
        (status = 200, description = "By date and name", body = Extractions),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Path(source): Path<String>,
    Params(filter): Params<Filter>,
) -> Result<Json<Extractions>, Problem> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !source.chars().all(is_name) || !lavra_extract::has_tables(&app.database, &source).await? {
        let detail = format!("nothing of {source:?} was extracted here");
        return Err(Problem::new(Code::SourceNotFound, detail));
    }
    let scope = Scope {
        endpoints: filter.endpoint.into_iter().collect(),
        from: filter.from.unwrap_or(Month::FIRST).first(),
        to: filter.to.unwrap_or(Month::LAST).last(),
    };
    let found = lavra_extract::store_of(&app.database, &source).progress(&scope).await?;
    Ok(Json(Extractions { items: found.into_iter().map(Extraction::from).collect() }))
}
