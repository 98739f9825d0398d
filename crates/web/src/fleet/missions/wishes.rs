//! What people wish of missions, any number at once.

use axum::Json;
use axum::extract::State;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::model::{MissionId, WorkerId};
use lavra_fleet::{Fleet, service, store};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::{JsonBody, LARGE};
use crate::fleet::words::{Checkpoint, MediaType, MissionErrorCode, MissionStatus, Waiting};
use crate::openapi::Refused;
use crate::problem::Problem;
use crate::time::Day;

const LONGEST_SEARCH: usize = 200;

/// What is looked for; nothing where it is empty.
pub(super) fn search(text: Option<String>) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.chars().count() > LONGEST_SEARCH => {
            Err(Problem::field("q", format_args!("must have at most {LONGEST_SEARCH} characters")))
        }
        text => Ok(text.filter(|text| !text.is_empty())),
    }
}

/// Which missions; all conditions together.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MissionConditions, example = json!({ "status": "failed", "error_code": "ERROR304" }))]
pub(crate) struct Conditions {
    status: Option<MissionStatus>,
    /// Whether it is in the bank: never put into the queue.
    in_bank: Option<bool>,
    checkpoint: Option<Checkpoint>,
    error_code: Option<MissionErrorCode>,
    media_type: Option<MediaType>,
    /// One of its languages.
    language: Option<String>,
    /// The id of a worker.
    worker: Option<String>,
    waiting: Option<Waiting>,
    /// Its first day is not before this one.
    #[schema(value_type = Option<String>, format = Date)]
    from: Option<Day>,
    /// Its last day is not after this one.
    #[schema(value_type = Option<String>, format = Date)]
    to: Option<Day>,
    /// What its id or its error code begins with, or its error message contains.
    #[schema(max_length = 200)]
    q: Option<String>,
}

impl Conditions {
    fn filter(self, ids: Vec<MissionId>) -> Result<store::Filter, Problem> {
        Ok(store::Filter {
            ids,
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
            search: search(self.q)?,
        })
    }
}

/// By id, or all that fit the conditions
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MissionSelection, example = json!({
    "filter": { "status": "failed", "error_code": "ERROR304" },
}))]
pub(crate) struct Selection {
    #[serde(default)]
    ids: Vec<String>,
    #[serde(default)]
    filter: Conditions,
    /// All missions, where there is neither an id nor a condition.
    #[serde(default)]
    all: bool,
    /// Of a retry: scrape again, even where the data is there.
    #[serde(default)]
    from_scrape: bool,
}

/// What came of a wish.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WishGranted, example = json!({
    "done": ["mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1b"],
    "refused": [["mis_0193a1b27c3d7e4f8a5b6c7d8e9f0a1c", "is in the queue already"]],
}))]
pub(crate) struct Granted {
    done: Vec<String>,
    /// Those that were named and could not be had, each with the reason.
    refused: Vec<[String; 2]>,
}

impl From<service::Granted> for Granted {
    fn from(granted: service::Granted) -> Self {
        Self {
            done: granted.done.into_iter().map(|id| id.0).collect(),
            refused: granted.refused.into_iter().map(|(id, why)| [id.0, why]).collect(),
        }
    }
}

impl Selection {
    async fn wish(self, fleet: &Fleet, wish: Wish) -> Result<Json<Granted>, Problem> {
        let ids = self.ids.into_iter().map(MissionId).collect();
        let filter = self.filter.filter(ids)?;
        if filter == store::Filter::default() && !self.all {
            return Err(Problem::invalid("name missions by ids or filter, or say all"));
        }
        Ok(Json(fleet.wish(&filter, wish, "user").await?.into()))
    }
}

/// Put missions of the bank into the queue
#[utoipa::path(
    post,
    path = "/missions:queue",
    tag = "missions",
    operation_id = "queue_missions",
    request_body = Selection,
    responses(
        (status = 200, description = "Which were, and which were refused", body = Granted),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn queue(
    State(fleet): State<Fleet>,
    JsonBody(selection): JsonBody<Selection, LARGE>,
) -> Result<Json<Granted>, Problem> {
    selection.wish(&fleet, Wish::Queue).await
}

/// Cancel missions; the jobs of those that run are told to stop
#[utoipa::path(
    post,
    path = "/missions:cancel",
    tag = "missions",
    operation_id = "cancel_missions",
    request_body = Selection,
    responses(
        (status = 200, description = "Which were, and which were refused", body = Granted),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn cancel(
    State(fleet): State<Fleet>,
    JsonBody(selection): JsonBody<Selection, LARGE>,
) -> Result<Json<Granted>, Problem> {
    selection.wish(&fleet, Wish::Cancel).await
}

/// Try failed missions again: from the write where their data is there
#[utoipa::path(
    post,
    path = "/missions:retry",
    tag = "missions",
    operation_id = "retry_missions",
    request_body = Selection,
    responses(
        (status = 200, description = "Which were, and which were refused", body = Granted),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn retry(
    State(fleet): State<Fleet>,
    JsonBody(selection): JsonBody<Selection, LARGE>,
) -> Result<Json<Granted>, Problem> {
    let from_scrape = selection.from_scrape;
    selection.wish(&fleet, Wish::Retry { from_scrape }).await
}
