//! Writers: those that store what was scraped.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::model::WriterId;
use lavra_fleet::service::{Changes, Service};
use lavra_fleet::store::Thing;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::made;
use super::wire::{Tested, Writer};
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
async fn find(fleet: &Fleet, text: &str) -> Result<WriterId, Problem> {
    match fleet.find("writer", text).await? {
        Thing::Writer(id) => Ok(id),
        other => Err(lavra_fleet::Error::NotFound { what: "writer", id: other.id().into() }.into()),
    }
}

async fn shown(fleet: &Fleet, id: &WriterId) -> Result<Json<Writer>, Problem> {
    Ok(Json(fleet.writer(id).await?.into()))
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WriterList {
    items: Vec<Writer>,
}

/// List writers, oldest first
#[utoipa::path(
    get,
    path = "/fleet/writers",
    tag = "fleet",
    operation_id = "list_writers",
    responses((status = 200, description = "All of them", body = WriterList)),
)]
pub(crate) async fn list(State(fleet): State<Fleet>) -> Result<Json<WriterList>, Problem> {
    let items = fleet.store.writers().await?.into_iter().map(Writer::from).collect();
    Ok(Json(WriterList { items }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "writer-1", "url": "https://writer.example.com", "api_key": "k-93c1",
}))]
pub(crate) struct NewWriter {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Its base, without credentials and query.
    #[schema(max_length = 500, example = "https://writer.example.com")]
    url: String,
    /// Sealed at once, and never shown.
    #[schema(value_type = String, write_only, pattern = "^[!-~]{1,200}$")]
    api_key: SecretString,
}

/// Add a writer
#[utoipa::path(
    post,
    path = "/fleet/writers",
    tag = "fleet",
    operation_id = "add_writer",
    params(KeyHeader),
    request_body = NewWriter,
    responses(
        (status = 201, description = "As it is now", body = Writer, headers(
            ("Location" = String, description = "Its path"),
        )),
        (status = 200, description = "As it was made by an earlier request with this key", body = Writer),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn add(
    State(fleet): State<Fleet>,
    Given(given): Given,
    JsonBody(new): JsonBody<NewWriter>,
) -> Result<Response, Problem> {
    let id = given.map_or_else(|| WriterId::new(fleet.store.clock()), WriterId::of);
    let order =
        Service { name: new.name, url: new.url, api_key: new.api_key, storage_domain: None };
    let id = fleet.add_writer_as(id, order).await?;
    let added = Writer::from(fleet.writer(&id).await?);
    Ok(made(&format!("/fleet/writers/{}", added.id), added))
}

/// Show a writer
#[utoipa::path(
    get,
    path = "/fleet/writers/{id}",
    tag = "fleet",
    operation_id = "show_writer",
    params(("id" = String, Path, description = "Its id or its name", example = "writer-1")),
    responses((status = 200, description = "As it is now", body = Writer), (status = 404, response = Refused)),
)]
pub(crate) async fn show(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Writer>, Problem> {
    shown(&fleet, &find(&fleet, &id).await?).await
}

/// What is to be changed; the rest stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "active": false }))]
pub(crate) struct WriterChanges {
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    #[schema(max_length = 500, example = "https://writer.example.com")]
    url: Option<String>,
    #[schema(value_type = Option<String>, write_only, pattern = "^[!-~]{1,200}$")]
    api_key: Option<SecretString>,
    active: Option<bool>,
}

/// Change a writer; what is not named stays as it is
#[utoipa::path(
    put,
    path = "/fleet/writers/{id}",
    tag = "fleet",
    operation_id = "change_writer",
    params(("id" = String, Path, description = "Its id or its name", example = "writer-1")),
    request_body = WriterChanges,
    responses(
        (status = 200, description = "As it is now", body = Writer),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn change(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
    JsonBody(changes): JsonBody<WriterChanges>,
) -> Result<Json<Writer>, Problem> {
    let changes = Changes {
        name: changes.name,
        url: changes.url,
        api_key: changes.api_key,
        active: changes.active,
        ..Changes::default()
    };
    set(&fleet, &id, changes).await
}

async fn set(fleet: &Fleet, id: &str, changes: Changes) -> Result<Json<Writer>, Problem> {
    let id = find(fleet, id).await?;
    fleet.change(&Thing::Writer(id.clone()), changes).await?;
    shown(fleet, &id).await
}

/// Remove a writer, if nothing needs it
#[utoipa::path(
    delete,
    path = "/fleet/writers/{id}",
    tag = "fleet",
    operation_id = "remove_writer",
    params(("id" = String, Path, description = "Its id or its name", example = "writer-1")),
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
    fleet.remove(&Thing::Writer(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ask the writer whether it is there
///
/// It has ten seconds.
#[utoipa::path(
    post,
    path = "/fleet/writers/{id}:test",
    tag = "fleet",
    operation_id = "test_writer",
    params(("id" = String, Path, description = "Its id or its name", example = "writer-1")),
    responses((status = 200, description = "What it said", body = Tested), (status = 404, response = Refused)),
)]
pub(crate) async fn test(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Tested>, Problem> {
    let id = find(&fleet, &id).await?;
    Ok(Json(fleet.test(&Thing::Writer(id)).await?.into()))
}

/// Use a writer
#[utoipa::path(
    post,
    path = "/fleet/writers/{id}:activate",
    tag = "fleet",
    operation_id = "activate_writer",
    params(("id" = String, Path, description = "Its id or its name", example = "writer-1")),
    responses(
        (status = 200, description = "As it is now", body = Writer),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn activate(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Writer>, Problem> {
    set(&fleet, &id, Changes { active: Some(true), ..Changes::default() }).await
}

/// Use a writer for nothing new
#[utoipa::path(
    post,
    path = "/fleet/writers/{id}:deactivate",
    tag = "fleet",
    operation_id = "deactivate_writer",
    params(("id" = String, Path, description = "Its id or its name", example = "writer-1")),
    responses((status = 200, description = "As it is now", body = Writer), (status = 404, response = Refused)),
)]
pub(crate) async fn deactivate(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Writer>, Problem> {
    set(&fleet, &id, Changes { active: Some(false), ..Changes::default() }).await
}
