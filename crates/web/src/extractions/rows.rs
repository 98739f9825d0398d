//! How extractions stand: the rows of a source's plan, and the same as a grid.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::ToSpan;
use jiff::civil::Date;
use lavra_extract::Month;
use lavra_extract::store::{Scope, Slice};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extracted;
use super::wire::{Extraction, GridMonth, Status};
use crate::app::App;
use crate::limit::Limit;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::{Code, Problem};
use crate::query::{Page, Params};
use crate::time::YearMonth;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// The first month, as 2024-01.
    #[param(example = "2024-01")]
    from: Option<YearMonth>,
    /// The last month.
    #[param(example = "2024-03")]
    to: Option<YearMonth>,
    /// One endpoint, by its whole name.
    #[param(example = "contratos_publicacao")]
    endpoint: Option<String>,
    /// Only tasks that are so.
    status: Option<Status>,
    #[serde(default)]
    #[param(value_type = usize, required = false, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit<100, 1000>,
    /// The `next_cursor` of the page before.
    #[param(pattern = r"^\d{1,6}-\w{1,200}$", example = "19723-contratos_publicacao")]
    cursor: Option<String>,
}

/// Days are counted from here in a cursor: any number of them is one.
const EPOCH: Date = jiff::civil::date(1970, 1, 1);

fn scope(from: Option<YearMonth>, to: Option<YearMonth>, endpoint: Option<String>) -> Scope {
    Scope {
        endpoints: endpoint.into_iter().collect(),
        from: from.map_or(Month::FIRST, |month| month.0).first(),
        to: to.map_or(Month::LAST, |month| month.0).last(),
    }
}

fn place(cursor: &str) -> Result<(Date, String), Problem> {
    let place = cursor.split_once('-').and_then(|(days, name)| {
        let days = days.parse().ok().filter(|days: &i32| (0..1_000_000).contains(days))?;
        Some((EPOCH.checked_add(days.days()).ok()?, name.to_owned()))
    });
    place.ok_or_else(|| Problem::new(Code::BadQuery, "cursor is not one of this list"))
}

/// List the plan of a source, with what is stored of each task
#[utoipa::path(
    get,
    path = "/extractions/{source}",
    tag = "extractions",
    operation_id = "list_extractions",
    params(("source" = String, Path, example = "pncp"), Filter),
    responses(
        (status = 200, description = "By date and name", body = Page<Extraction>),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Id(source): Id<String>,
    Params(filter): Params<Filter>,
) -> Result<Json<Page<Extraction>>, Problem> {
    let store = extracted(&app, &source).await?;
    let limit = filter.limit.0;
    let slice = Slice {
        status: filter.status.map(Into::into),
        after: filter.cursor.as_deref().map(place).transpose()?,
        limit: limit + 1,
    };
    let scope = scope(filter.from, filter.to, filter.endpoint);
    let found = store.progress_slice(&scope, &slice).await?;
    let key = |row: &lavra_extract::store::Progress| {
        let days = row.task.data_date.duration_since(EPOCH).as_hours() / 24;
        format!("{}-{}", days.max(0), row.task.endpoint_name)
    };
    Ok(Json(Page::cut(found, limit, key)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// The first month, as 2024-01.
    #[param(example = "2024-01")]
    from: Option<YearMonth>,
    /// The last month.
    #[param(example = "2024-03")]
    to: Option<YearMonth>,
    /// One endpoint, by its whole name.
    #[param(example = "contratos_publicacao")]
    endpoint: Option<String>,
}

/// Endpoints down, months across.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExtractionGrid, example = json!({"rows": [{
    "endpoint": "contratos_publicacao",
    "months": [{
        "month": "2024-01", "task_id": "contratos_publicacao_2024-01-01", "status": "PARTIAL",
        "records": 60_000, "percent": 55,
    }],
}]}))]
pub(crate) struct Grid {
    rows: Vec<GridRow>,
}

/// The months of an endpoint that are planned.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"endpoint": "contratos_publicacao", "months": []}))]
pub(crate) struct GridRow {
    endpoint: String,
    months: Vec<GridMonth>,
}

/// The plan of a source as a grid: endpoint × month
#[utoipa::path(
    get,
    path = "/extractions/{source}/grid",
    tag = "extractions",
    operation_id = "extraction_grid",
    params(("source" = String, Path, example = "pncp"), Part),
    responses(
        (status = 200, description = "By name and month", body = Grid),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn grid(
    State(app): State<Arc<App>>,
    Id(source): Id<String>,
    Params(part): Params<Part>,
) -> Result<Json<Grid>, Problem> {
    let store = extracted(&app, &source).await?;
    let cells = store.grid(&scope(part.from, part.to, part.endpoint)).await?;
    let rows = cells.chunk_by(|one, other| one.endpoint_name == other.endpoint_name);
    let rows = rows.map(|row| GridRow {
        endpoint: row.first().map(|cell| cell.endpoint_name.clone()).unwrap_or_default(),
        months: row.iter().map(GridMonth::from).collect(),
    });
    Ok(Json(Grid { rows: rows.collect() }))
}
