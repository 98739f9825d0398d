//! One task of a plan, and its pages.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use lavra_extract::look::{self, Which};
use lavra_extract::model::ExtractionId;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extracted;
use super::wire::{ExtractionPage, ExtractionTask};
use crate::app::App;
use crate::limit::Limit;
use crate::openapi::Refused;
use crate::path::Ids;
use crate::problem::{Code, Problem};
use crate::query::{Page, Params};

/// The last page that there can be.
const LAST: usize = i32::MAX as usize;

fn no_such_task(id: &str) -> Problem {
    Problem::new(Code::ExtractionNotFound, format!("the plan has no task {id:?}"))
}

/// One task of the plan, with what is missing of it
#[utoipa::path(
    get,
    path = "/extractions/{source}/tasks/{task_id}",
    tag = "extractions",
    operation_id = "extraction_task",
    params(
        ("source" = String, Path, example = "pncp"),
        ("task_id" = String, Path, example = "contratos_publicacao_2024-01-01"),
    ),
    responses(
        (status = 200, description = "All of it", body = ExtractionTask),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn task(
    State(app): State<Arc<App>>,
    Ids(path): Ids<2>,
) -> Result<Json<ExtractionTask>, Problem> {
    let [source, id] = path;
    let store = extracted(&app, &source).await?;
    let shown = look::task(&*store, &ExtractionId(id.clone())).await?;
    Ok(Json(shown.ok_or_else(|| no_such_task(&id))?.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Only pages that are promised and not stored as promised.
    #[serde(default)]
    #[param(value_type = bool, required = false, default = false)]
    missing: bool,
    #[serde(default)]
    #[param(value_type = usize, required = false, minimum = 1, maximum = 1000, default = 100)]
    limit: Limit<100, 1000>,
    /// The `next_cursor` of the page before: a page number.
    #[param(value_type = Option<usize>, minimum = 1, maximum = 2_147_483_647, example = 100)]
    cursor: Option<Limit<1, LAST>>,
}

/// The pages of a task, by number; those that are missing stand among them
#[utoipa::path(
    get,
    path = "/extractions/{source}/tasks/{task_id}/pages",
    tag = "extractions",
    operation_id = "extraction_pages",
    params(
        ("source" = String, Path, example = "pncp"),
        ("task_id" = String, Path, example = "contratos_publicacao_2024-01-01"),
        Part,
    ),
    responses(
        (status = 200, description = "By number", body = Page<ExtractionPage>),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn pages(
    State(app): State<Arc<App>>,
    Ids(path): Ids<2>,
    Params(part): Params<Part>,
) -> Result<Json<Page<ExtractionPage>>, Problem> {
    let [source, id] = path;
    let store = extracted(&app, &source).await?;
    let id = ExtractionId(id);
    if store.task(&id).await?.is_none() {
        return Err(no_such_task(&id.0));
    }
    let which = if part.missing { Which::Missing } else { Which::All };
    let after = part.cursor.map_or(0, |page| page.0 as i64);
    let pages = look::pages(&*store, &id, which, after, part.limit.0).await?;
    let last = pages.lines.last().filter(|_| pages.has_more);
    let next_cursor = last.map(|line| line.page.to_string());
    let items = pages.lines.into_iter().map(ExtractionPage::from).collect();
    Ok(Json(Page { items, next_cursor }))
}
