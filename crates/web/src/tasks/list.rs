//! The list of tasks, page by page. Ids grow with time, so the id of the last task shown is the
//! place where the next page begins, however many tasks come in meanwhile.

use axum::Json;
use axum::extract::State;
use lavra_tasks::Tasks;
use lavra_tasks::model::TaskId;
use lavra_tasks::store::ListFilter;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::limit::Limit;
use crate::problem::Problem;
use crate::query::{Page, Params};
use crate::time::Moment;
use crate::wire::{Status, Task};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    #[serde(rename = "type")]
    kind: Option<String>,
    status: Option<Status>,
    /// From this time on (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime, example = "2026-11-15T00:00:00Z")]
    created_after: Option<Moment>,
    /// Before this time (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime, example = "2026-11-16T00:00:00Z")]
    created_before: Option<Moment>,
    #[serde(default)]
    #[param(value_type = usize, required = false, minimum = 1, maximum = 500, default = 50)]
    limit: Limit<50, 500>,
    /// The `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// List tasks, newest first
#[utoipa::path(
    get,
    path = "/tasks",
    tag = "tasks",
    operation_id = "list_tasks",
    params(Filter),
    responses((status = 200, description = "One page", body = Page<Task>)),
)]
pub(crate) async fn page(
    State(tasks): State<Tasks>,
    Params(filter): Params<Filter>,
) -> Result<Json<Page<Task>>, Problem> {
    let limit = filter.limit.0;
    let question = ListFilter {
        kind: filter.kind,
        status: filter.status.map(Into::into),
        created_after: filter.created_after.map(|moment| moment.0),
        created_before: filter.created_before.map(|moment| moment.0),
        before: filter.cursor.map(TaskId),
        limit: limit + 1,
    };
    let found = tasks.store().list(question).await?;
    Ok(Json(Page::cut(found, limit, |task| task.id.to_string())))
}
