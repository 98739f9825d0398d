//! What could not be run or delivered, and what to do with it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use lavra_tasks::model::DeadLetterId;
use lavra_tasks::{Error, Tasks, store};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::Site;
use crate::body::JsonBody;
use crate::limit::Limit;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;
use crate::query::{Page, Params};
use crate::tasks::tagged;
use crate::verbs::Verbs;
use crate::wire::Task;

const MOST: usize = 1000;
const READ: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(redrive_many))
        .routes(routes!(remove))
        .verb(routes!(redrive))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193a1b2-9000-7000-8000-00000000000b",
    "task_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "type": "http",
    "reason": "the source answered 404",
    "body": null,
    "created_at": "2026-11-15T20:31:00Z",
}))]
pub(crate) struct DeadLetter {
    id: Uuid,
    /// Absent for a message that names no task.
    task_id: Option<Uuid>,
    #[serde(rename = "type")]
    kind: Option<String>,
    reason: String,
    /// The body of a message that could not be read.
    body: Option<String>,
    created_at: Timestamp,
}

impl From<store::DeadLetter> for DeadLetter {
    fn from(letter: store::DeadLetter) -> Self {
        Self {
            id: letter.id.0,
            task_id: letter.task_id.map(|task| task.0),
            kind: letter.kind,
            reason: letter.reason,
            body: letter.body,
            created_at: letter.created_at,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    #[serde(default)]
    #[param(value_type = usize, required = false, minimum = 1, maximum = 500, default = 50)]
    limit: Limit<50, 500>,
    /// The `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// List dead letters, newest first
#[utoipa::path(
    get,
    path = "/dead-letters",
    tag = "dead letters",
    operation_id = "list_dead_letters",
    params(Filter),
    responses((status = 200, description = "One page", body = Page<DeadLetter>)),
)]
pub(crate) async fn list(
    State(tasks): State<Tasks>,
    Params(filter): Params<Filter>,
) -> Result<Json<Page<DeadLetter>>, Problem> {
    let limit = filter.limit.0;
    let before = filter.cursor.map(DeadLetterId);
    let found = tasks.store().dead_letters(before, limit + 1).await?;
    Ok(Json(Page::cut(found, limit, |letter| letter.id.to_string())))
}

/// Run the task of a dead letter again
#[utoipa::path(
    post,
    path = "/dead-letters/{id}:redrive",
    tag = "dead letters",
    operation_id = "redrive_dead_letter",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The task waits again; the letter is gone", body = Task),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn redrive(
    State(tasks): State<Tasks>,
    Id(id): Id<DeadLetterId>,
) -> Result<Response, Problem> {
    let letter = tasks.store().dead_letter(id).await?.ok_or(Error::NoSuchDeadLetter(id))?;
    Ok(tagged(tasks.redrive(&letter).await?))
}

/// Which dead letters: by `ids`, or the newest of a `type`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RedriveRequest, example = json!({"type": "http", "limit": 100}))]
pub(crate) struct Which {
    #[schema(max_items = 1000)]
    ids: Option<Vec<Uuid>>,
    #[serde(rename = "type")]
    kind: Option<String>,
    /// How many of the type.
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 1000, default = 100)]
    limit: Option<Limit<100, MOST>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RedriveAnswer)]
pub(crate) struct Redriven {
    items: Vec<Outcome>,
}

/// What became of one dead letter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RedriveOutcome, example = json!({
    "id": "0193a1b2-9000-7000-8000-00000000000b",
    "task_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
    "redriven": true,
}))]
pub(crate) struct Outcome {
    id: Uuid,
    task_id: Option<Uuid>,
    redriven: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Run the tasks of many dead letters again
///
/// Each by itself; the answer says what became of each.
#[utoipa::path(
    post,
    path = "/dead-letters:redrive",
    tag = "dead letters",
    operation_id = "redrive_dead_letters",
    request_body = Which,
    responses(
        (status = 200, description = "What became of each", body = Redriven),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn redrive_many(
    State(tasks): State<Tasks>,
    JsonBody(which): JsonBody<Which>,
) -> Result<Json<Redriven>, Problem> {
    let ids = match which {
        Which { ids: Some(ids), kind: None, limit: None } if (1..=MOST).contains(&ids.len()) => {
            ids.into_iter().map(DeadLetterId).collect()
        }
        Which { ids: None, kind: Some(kind), limit } => {
            newest_of(&tasks, &kind, limit.unwrap_or_default().0).await?
        }
        Which { .. } => {
            let detail = format!("name 1 to {MOST} ids, or a type, which may have a limit");
            return Err(Problem::invalid(detail));
        }
    };
    let mut items = Vec::with_capacity(ids.len());
    for id in ids {
        items.push(try_one(&tasks, id).await?);
    }
    Ok(Json(Redriven { items }))
}

/// The newest letters of a type that name a task.
async fn newest_of(tasks: &Tasks, kind: &str, limit: usize) -> Result<Vec<DeadLetterId>, Problem> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = tasks.store().dead_letters(before, READ).await?;
        let fits = |letter: &&store::DeadLetter| {
            letter.task_id.is_some() && letter.kind.as_deref() == Some(kind)
        };
        found.extend(page.iter().filter(fits).map(|letter| letter.id));
        before = page.last().map(|letter| letter.id);
        if found.len() >= limit || page.len() < READ {
            found.truncate(limit);
            return Ok(found);
        }
    }
}

/// Only trouble with the database ends the whole; a refusal is this letter's.
async fn try_one(tasks: &Tasks, id: DeadLetterId) -> Result<Outcome, Problem> {
    let letter = tasks.store().dead_letter(id).await?;
    let task_id = letter.as_ref().and_then(|letter| letter.task_id).map(|task| task.0);
    let done = match letter {
        Some(letter) => tasks.redrive(&letter).await,
        None => Err(Error::NoSuchDeadLetter(id)),
    };
    let refused = match done {
        Ok(_) => None,
        Err(Error::Database(error)) => return Err(error.into()),
        Err(refused) => Some(Problem::from(refused)),
    };
    let code = refused.as_ref().map(|problem| problem.code().as_str());
    let detail = refused.as_ref().map(|problem| problem.detail().to_owned());
    Ok(Outcome { id: id.0, task_id, redriven: refused.is_none(), code, detail })
}

/// Remove a dead letter
///
/// Its task, if it has one, stays as it is.
#[utoipa::path(
    delete,
    path = "/dead-letters/{id}",
    tag = "dead letters",
    operation_id = "remove_dead_letter",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, response = Refused),
    ),
)]
pub(crate) async fn remove(
    State(tasks): State<Tasks>,
    Id(id): Id<DeadLetterId>,
) -> Result<StatusCode, Problem> {
    if tasks.store().remove_dead_letter(id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Error::NoSuchDeadLetter(id).into())
    }
}
