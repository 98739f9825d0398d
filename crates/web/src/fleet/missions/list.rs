//! The list of missions, page by page. Ids grow with time, so the id of the last one shown is the
//! place where the next page begins.

use axum::Json;
use axum::extract::State;
use lavra_fleet::Fleet;
use lavra_fleet::model::{MissionId, WorkerId};
use lavra_fleet::store;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::fleet::wire::Mission;
use crate::fleet::words::{Checkpoint, MediaType, MissionErrorCode, MissionStatus, Waiting};
use crate::limit::Limit;
use crate::problem::Problem;
use crate::query::{Page, Params};
use crate::time::Day;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    status: Option<MissionStatus>,
    /// Whether it is in the bank: never put into the queue.
    in_bank: Option<bool>,
    checkpoint: Option<Checkpoint>,
    #[param(example = "ERROR203")]
    error_code: Option<MissionErrorCode>,
    media_type: Option<MediaType>,
    /// One of its languages.
    #[param(example = "pt")]
    language: Option<String>,
    /// The id of a worker.
    worker: Option<String>,
    waiting: Option<Waiting>,
    /// Its first day is not before this one.
    #[param(value_type = Option<String>, format = Date, example = "2025-01-01")]
    from: Option<Day>,
    /// Its last day is not after this one.
    #[param(value_type = Option<String>, format = Date, example = "2025-01-31")]
    to: Option<Day>,
    /// What its id or its error code begins with, or its error message contains.
    #[param(example = "timeout", max_length = 200)]
    q: Option<String>,
    #[serde(default)]
    #[param(value_type = usize, required = false, minimum = 1, maximum = 500, default = 50)]
    limit: Limit<50, 500>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

impl Filter {
    fn conditions(self) -> Result<store::Filter, Problem> {
        Ok(store::Filter {
            ids: Vec::new(),
            status: self.status.map(Into::into),
            in_bank: self.in_bank,
            checkpoint: self.checkpoint.map(Into::into),
            error_code: self.error_code.map(Into::into),
            media_type: self.media_type.map(Into::into),
            language: self.language,
            worker: self.worker.map(WorkerId),
            from: self.from.map(|day| day.0),
            to: self.to.map(|day| day.0),
            waiting: self.waiting.map(Into::into),
            search: super::wishes::search(self.q)?,
        })
    }
}

/// List missions, newest first
#[utoipa::path(
    get,
    path = "/missions",
    tag = "missions",
    operation_id = "list_missions",
    params(Filter),
    responses((status = 200, description = "A page", body = Page<Mission>)),
)]
pub(crate) async fn list(
    State(fleet): State<Fleet>,
    Params(mut filter): Params<Filter>,
) -> Result<Json<Page<Mission>>, Problem> {
    let (limit, before) = (filter.limit.0, filter.cursor.take());
    let before = before.filter(|id| !id.is_empty()).map(MissionId);
    let found = fleet.missions(&filter.conditions()?, before, limit + 1).await?;
    Ok(Json(Page::cut(found, limit, |mission| mission.id.0.clone())))
}
