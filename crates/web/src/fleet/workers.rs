//! Workers: those that scrape.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::model::WorkerId;
use lavra_fleet::service::{Changes, Service};
use lavra_fleet::store::Thing;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::made;
use super::wire::{Tested, Worker};
use crate::app::Site;
use crate::body::JsonBody;
use crate::headers::KeyHeader;
use crate::once::Given;
use crate::openapi::Refused;
use crate::path::Id;
use crate::problem::Problem;
use crate::verbs::Verbs;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(list, add))
        .routes(routes!(show, change, remove))
        .verb(routes!(test))
        .verb(routes!(activate))
        .verb(routes!(deactivate))
}

/// The one that is meant by an id or a name.
async fn find(fleet: &Fleet, text: &str) -> Result<WorkerId, Problem> {
    match fleet.find("worker", text).await? {
        Thing::Worker(id) => Ok(id),
        other => Err(lavra_fleet::Error::NotFound { what: "worker", id: other.id().into() }.into()),
    }
}

async fn shown(fleet: &Fleet, id: &WorkerId) -> Result<Json<Worker>, Problem> {
    Ok(Json(fleet.worker(id).await?.into()))
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkerList {
    items: Vec<Worker>,
}

/// List workers, oldest first
#[utoipa::path(
    get,
    path = "/fleet/workers",
    tag = "fleet",
    operation_id = "list_workers",
    responses((status = 200, description = "All of them", body = WorkerList)),
)]
pub(crate) async fn list(State(fleet): State<Fleet>) -> Result<Json<WorkerList>, Problem> {
    let items = fleet.store.workers().await?.into_iter().map(Worker::from).collect();
    Ok(Json(WorkerList { items }))
}

/// Without a storage domain it is not active: nobody would know where its results are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "worker-1", "url": "https://worker-1.example.com", "api_key": "k-93c1",
    "storage_domain": "storage.example.com",
}))]
pub(crate) struct NewWorker {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Its base, without credentials and query.
    #[schema(max_length = 500, example = "https://worker-1.example.com")]
    url: String,
    /// Sealed at once, and never shown.
    #[schema(value_type = String, write_only, pattern = "^[!-~]{1,200}$")]
    api_key: SecretString,
    /// Where its results are: a host, with a scheme if it is not https.
    storage_domain: Option<String>,
}

/// Add a worker
#[utoipa::path(
    post,
    path = "/fleet/workers",
    tag = "fleet",
    operation_id = "add_worker",
    params(KeyHeader),
    request_body = NewWorker,
    responses(
        (status = 201, description = "As it is now", body = Worker, headers(
            ("Location" = String, description = "Its path"),
        )),
        (status = 200, description = "As it was made by an earlier request with this key", body = Worker),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn add(
    State(fleet): State<Fleet>,
    Given(given): Given,
    JsonBody(new): JsonBody<NewWorker>,
) -> Result<Response, Problem> {
    let id = given.map_or_else(|| WorkerId::new(fleet.store.clock()), WorkerId::of);
    let order = Service {
        name: new.name,
        url: new.url,
        api_key: new.api_key,
        storage_domain: new.storage_domain,
    };
    let id = fleet.add_worker_as(id, order).await?;
    let added = Worker::from(fleet.worker(&id).await?);
    Ok(made(&format!("/fleet/workers/{}", added.id), added))
}

/// Show a worker
#[utoipa::path(
    get,
    path = "/fleet/workers/{id}",
    tag = "fleet",
    operation_id = "show_worker",
    params(("id" = String, Path, description = "Its id or its name", example = "worker-1")),
    responses((status = 200, description = "As it is now", body = Worker), (status = 404, response = Refused)),
)]
pub(crate) async fn show(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Worker>, Problem> {
    shown(&fleet, &find(&fleet, &id).await?).await
}

/// What is to be changed; the rest stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "storage_domain": "storage.example.com" }))]
pub(crate) struct WorkerChanges {
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    #[schema(max_length = 500, example = "https://worker-1.example.com")]
    url: Option<String>,
    #[schema(value_type = Option<String>, write_only, pattern = "^[!-~]{1,200}$")]
    api_key: Option<SecretString>,
    storage_domain: Option<String>,
    active: Option<bool>,
}

/// Change a worker; what is not named stays as it is
#[utoipa::path(
    put,
    path = "/fleet/workers/{id}",
    tag = "fleet",
    operation_id = "change_worker",
    params(("id" = String, Path, description = "Its id or its name", example = "worker-1")),
    request_body = WorkerChanges,
    responses(
        (status = 200, description = "As it is now", body = Worker),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn change(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
    JsonBody(changes): JsonBody<WorkerChanges>,
) -> Result<Json<Worker>, Problem> {
    let changes = Changes {
        name: changes.name,
        url: changes.url,
        api_key: changes.api_key,
        storage_domain: changes.storage_domain,
        active: changes.active,
        ..Changes::default()
    };
    set(&fleet, &id, changes).await
}

async fn set(fleet: &Fleet, id: &str, changes: Changes) -> Result<Json<Worker>, Problem> {
    let id = find(fleet, id).await?;
    fleet.change(&Thing::Worker(id.clone()), changes).await?;
    shown(fleet, &id).await
}

/// Remove a worker, if nothing needs it
#[utoipa::path(
    delete,
    path = "/fleet/workers/{id}",
    tag = "fleet",
    operation_id = "remove_worker",
    params(("id" = String, Path, description = "Its id or its name", example = "worker-1")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn remove(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<StatusCode, Problem> {
    let id = find(&fleet, &id).await?;
    fleet.remove(&Thing::Worker(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ask the worker whether it is there
///
/// It has ten seconds.
#[utoipa::path(
    post,
    path = "/fleet/workers/{id}:test",
    tag = "fleet",
    operation_id = "test_worker",
    params(("id" = String, Path, description = "Its id or its name", example = "worker-1")),
    responses((status = 200, description = "What it said", body = Tested), (status = 404, response = Refused)),
)]
pub(crate) async fn test(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Tested>, Problem> {
    let id = find(&fleet, &id).await?;
    Ok(Json(fleet.test(&Thing::Worker(id)).await?.into()))
}

/// Use a worker
#[utoipa::path(
    post,
    path = "/fleet/workers/{id}:activate",
    tag = "fleet",
    operation_id = "activate_worker",
    params(("id" = String, Path, description = "Its id or its name", example = "worker-1")),
    responses(
        (status = 200, description = "As it is now", body = Worker),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn activate(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Worker>, Problem> {
    set(&fleet, &id, Changes { active: Some(true), ..Changes::default() }).await
}

/// Use a worker for nothing new
#[utoipa::path(
    post,
    path = "/fleet/workers/{id}:deactivate",
    tag = "fleet",
    operation_id = "deactivate_worker",
    params(("id" = String, Path, description = "Its id or its name", example = "worker-1")),
    responses((status = 200, description = "As it is now", body = Worker), (status = 404, response = Refused)),
)]
pub(crate) async fn deactivate(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Worker>, Problem> {
    set(&fleet, &id, Changes { active: Some(false), ..Changes::default() }).await
}
