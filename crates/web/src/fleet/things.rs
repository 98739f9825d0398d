//! Workers, proxies and writers.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use lavra_fleet::Fleet;
use lavra_fleet::service::{Changes, ProxyOrder, Service, Tested};
use lavra_fleet::store::Thing;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::body::JsonBody;
use crate::openapi::Refused;
use crate::problem::{Code, Problem};

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(add))
        .routes(routes!(change, remove))
        .routes(routes!(test))
}

/// `workers`, `proxies` or `writers`, as the singular.
fn kind(text: &str) -> Result<&'static str, Problem> {
    match text {
        "workers" => Ok("worker"),
        "proxies" => Ok("proxy"),
        "writers" => Ok("writer"),
        other => {
            let detail = format!("there are workers, proxies and writers, not {other:?}");
            Err(Problem::new(Code::FleetNotFound, detail))
        }
    }
}

async fn one(fleet: &Fleet, kinds: &str, id: &str) -> Result<Thing, Problem> {
    Ok(fleet.find(kind(kinds)?, id).await?)
}

/// List workers, proxies or writers, oldest first; never their secrets
#[utoipa::path(
    get,
    path = "/fleet/{kind}",
    tag = "fleet",
    operation_id = "list_fleet",
    params(("kind" = String, Path, description = "workers, proxies or writers", example = "workers")),
    responses((status = 200, description = "All of them", body = Object), (status = 404, response = Refused)),
)]
pub(crate) async fn list(
    State(fleet): State<Fleet>,
    Path(kinds): Path<String>,
) -> Result<Json<Value>, Problem> {
    let items = match kind(&kinds)? {
        "worker" => json!(fleet.store.workers().await?),
        "proxy" => json!(fleet.store.proxies().await?),
        _ => json!(fleet.store.writers().await?),
    };
    Ok(Json(json!({ "items": items })))
}

/// A worker or a writer has a URL and an API key, a worker a storage domain, a proxy a host.
#[derive(ToSchema)]
#[schema(example = json!({
    "name": "worker-1", "url": "https://worker-1.example.com", "api_key": "k-93c1",
    "storage_domain": "storage.example.com",
}))]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct Addition {
    name: String,
    url: Option<String>,
    api_key: Option<String>,
    storage_domain: Option<String>,
    host: Option<String>,
    port: Option<i32>,
    username: Option<String>,
    password: Option<String>,
}

/// What is to be changed; the rest stays as it is.
#[derive(ToSchema)]
#[schema(example = json!({ "active": true }))]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct Alteration {
    name: Option<String>,
    url: Option<String>,
    api_key: Option<String>,
    storage_domain: Option<String>,
    host: Option<String>,
    port: Option<i32>,
    username: Option<String>,
    password: Option<String>,
    active: Option<bool>,
}

/// Add a worker, a proxy or a writer
#[utoipa::path(
    post,
    path = "/fleet/{kind}",
    tag = "fleet",
    operation_id = "add_to_fleet",
    params(("kind" = String, Path, description = "workers, proxies or writers", example = "workers")),
    request_body = Addition,
    responses(
        (status = 201, description = "Its id", body = Object),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn add(
    State(fleet): State<Fleet>,
    Path(kinds): Path<String>,
    JsonBody(order): JsonBody<Value>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let id = match kind(&kinds)? {
        "worker" => fleet.add_worker(read::<Service>(order)?).await?.0,
        "proxy" => fleet.add_proxy(read::<ProxyOrder>(order)?).await?.0,
        _ => fleet.add_writer(read::<Service>(order)?).await?.0,
    };
    Ok((StatusCode::CREATED, Json(json!({ "id": id }))))
}

fn read<T: serde::de::DeserializeOwned>(order: Value) -> Result<T, Problem> {
    serde_json::from_value(order).map_err(|error| Problem::invalid(error.to_string()))
}

/// Change, activate or deactivate it; a proxy that is activated starts with no failure
#[utoipa::path(
    put,
    path = "/fleet/{kind}/{id}",
    tag = "fleet",
    operation_id = "change_fleet",
    params(
        ("kind" = String, Path, example = "proxies"),
        ("id" = String, Path, description = "The id or the name"),
    ),
    request_body = Alteration,
    responses((status = 204, description = "Done"), (status = 404, response = Refused), (status = 409, response = Refused)),
)]
pub(crate) async fn change(
    State(fleet): State<Fleet>,
    Path((kinds, id)): Path<(String, String)>,
    JsonBody(changes): JsonBody<Changes>,
) -> Result<StatusCode, Problem> {
    let thing = one(&fleet, &kinds, &id).await?;
    fleet.change(&thing, changes).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove it, if nothing needs it
#[utoipa::path(
    delete,
    path = "/fleet/{kind}/{id}",
    tag = "fleet",
    operation_id = "remove_from_fleet",
    params(
        ("kind" = String, Path, example = "proxies"),
        ("id" = String, Path, description = "The id or the name"),
    ),
    responses((status = 204, description = "It is gone"), (status = 404, response = Refused), (status = 409, response = Refused)),
)]
pub(crate) async fn remove(
    State(fleet): State<Fleet>,
    Path((kinds, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let thing = one(&fleet, &kinds, &id).await?;
    fleet.remove(&thing).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ask it whether it is there
#[utoipa::path(
    post,
    path = "/fleet/{kind}/{id}/test",
    tag = "fleet",
    operation_id = "test_fleet",
    params(
        ("kind" = String, Path, example = "workers"),
        ("id" = String, Path, description = "The id or the name"),
    ),
    responses((status = 200, description = "What it said", body = Object), (status = 404, response = Refused)),
)]
pub(crate) async fn test(
    State(fleet): State<Fleet>,
    Path((kinds, id)): Path<(String, String)>,
) -> Result<Json<Tested>, Problem> {
    let thing = one(&fleet, &kinds, &id).await?;
    Ok(Json(fleet.test(&thing).await?))
}
