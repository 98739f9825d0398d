//! Proxies: what sessions go through.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lavra_fleet::Fleet;
use lavra_fleet::model::ProxyId;
use lavra_fleet::service::{Changes, ProxyOrder};
use lavra_fleet::store::Thing;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::made;
use super::wire::{Proxy, Tested};
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
        .verb(routes!(reactivate))
}

/// The one that is meant by an id or a name.
async fn find(fleet: &Fleet, text: &str) -> Result<ProxyId, Problem> {
    match fleet.find("proxy", text).await? {
        Thing::Proxy(id) => Ok(id),
        other => Err(lavra_fleet::Error::NotFound { what: "proxy", id: other.id().into() }.into()),
    }
}

async fn shown(fleet: &Fleet, id: &ProxyId) -> Result<Json<Proxy>, Problem> {
    Ok(Json(fleet.proxy(id).await?.into()))
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProxyList {
    items: Vec<Proxy>,
}

/// List proxies, oldest first
#[utoipa::path(
    get,
    path = "/fleet/proxies",
    tag = "fleet",
    operation_id = "list_proxies",
    responses((status = 200, description = "All of them", body = ProxyList)),
)]
pub(crate) async fn list(State(fleet): State<Fleet>) -> Result<Json<ProxyList>, Problem> {
    let items = fleet.store.proxies().await?.into_iter().map(Proxy::from).collect();
    Ok(Json(ProxyList { items }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "proxy-br-1", "host": "10.0.0.7", "port": 3128, "username": "lavra",
    "password": "correct horse",
}))]
pub(crate) struct NewProxy {
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// With a scheme (`socks5://`) where it is no HTTP proxy; port and credentials stand apart.
    #[schema(min_length = 1, max_length = 200)]
    host: String,
    #[schema(minimum = 1, maximum = 65535)]
    port: Option<i32>,
    #[schema(max_length = 100)]
    username: Option<String>,
    /// Sealed at once, and never shown.
    #[schema(value_type = Option<String>, write_only)]
    password: Option<SecretString>,
}

/// Add a proxy
#[utoipa::path(
    post,
    path = "/fleet/proxies",
    tag = "fleet",
    operation_id = "add_proxy",
    params(KeyHeader),
    request_body = NewProxy,
    responses(
        (status = 201, description = "As it is now", body = Proxy, headers(
            ("Location" = String, description = "Its path"),
        )),
        (status = 200, description = "As it was made by an earlier request with this key", body = Proxy),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn add(
    State(fleet): State<Fleet>,
    Given(given): Given,
    JsonBody(new): JsonBody<NewProxy>,
) -> Result<Response, Problem> {
    let id = given.map_or_else(|| ProxyId::new(fleet.store.clock()), ProxyId::of);
    let order = ProxyOrder {
        name: new.name,
        host: new.host,
        port: new.port,
        username: new.username,
        password: new.password,
    };
    let id = fleet.add_proxy_as(id, order).await?;
    let added = Proxy::from(fleet.proxy(&id).await?);
    Ok(made(&format!("/fleet/proxies/{}", added.id), added))
}

/// Show a proxy
#[utoipa::path(
    get,
    path = "/fleet/proxies/{id}",
    tag = "fleet",
    operation_id = "show_proxy",
    params(("id" = String, Path, description = "Its id or its name", example = "proxy-br-1")),
    responses((status = 200, description = "As it is now", body = Proxy), (status = 404, response = Refused)),
)]
pub(crate) async fn show(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Proxy>, Problem> {
    shown(&fleet, &find(&fleet, &id).await?).await
}

/// What is to be changed; the rest stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "port": 3129 }))]
pub(crate) struct ProxyChanges {
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    host: Option<String>,
    #[schema(minimum = 1, maximum = 65535)]
    port: Option<i32>,
    #[schema(max_length = 100)]
    username: Option<String>,
    #[schema(value_type = Option<String>, write_only)]
    password: Option<SecretString>,
    /// One that is made active starts with no failure.
    active: Option<bool>,
}

/// Change a proxy; what is not named stays as it is
#[utoipa::path(
    put,
    path = "/fleet/proxies/{id}",
    tag = "fleet",
    operation_id = "change_proxy",
    params(("id" = String, Path, description = "Its id or its name", example = "proxy-br-1")),
    request_body = ProxyChanges,
    responses(
        (status = 200, description = "As it is now", body = Proxy),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn change(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
    JsonBody(changes): JsonBody<ProxyChanges>,
) -> Result<Json<Proxy>, Problem> {
    let changes = Changes {
        name: changes.name,
        host: changes.host,
        port: changes.port,
        username: changes.username,
        password: changes.password,
        active: changes.active,
        ..Changes::default()
    };
    set(&fleet, &id, changes).await
}

async fn set(fleet: &Fleet, id: &str, changes: Changes) -> Result<Json<Proxy>, Problem> {
    let id = find(fleet, id).await?;
    fleet.change(&Thing::Proxy(id.clone()), changes).await?;
    shown(fleet, &id).await
}

/// Remove a proxy, if nothing needs it
#[utoipa::path(
    delete,
    path = "/fleet/proxies/{id}",
    tag = "fleet",
    operation_id = "remove_proxy",
    params(("id" = String, Path, description = "Its id or its name", example = "proxy-br-1")),
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
    fleet.remove(&Thing::Proxy(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ask for something through the proxy
///
/// It has ten seconds.
#[utoipa::path(
    post,
    path = "/fleet/proxies/{id}:test",
    tag = "fleet",
    operation_id = "test_proxy",
    params(("id" = String, Path, description = "Its id or its name", example = "proxy-br-1")),
    responses((status = 200, description = "What it said", body = Tested), (status = 404, response = Refused)),
)]
pub(crate) async fn test(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Tested>, Problem> {
    let id = find(&fleet, &id).await?;
    Ok(Json(fleet.test(&Thing::Proxy(id)).await?.into()))
}

/// Use a proxy again; its failures are forgotten
#[utoipa::path(
    post,
    path = "/fleet/proxies/{id}:activate",
    tag = "fleet",
    operation_id = "activate_proxy",
    params(("id" = String, Path, description = "Its id or its name", example = "proxy-br-1")),
    responses(
        (status = 200, description = "As it is now", body = Proxy),
        (status = 404, response = Refused),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn activate(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Proxy>, Problem> {
    set(&fleet, &id, Changes { active: Some(true), ..Changes::default() }).await
}

/// Use a proxy for nothing new
#[utoipa::path(
    post,
    path = "/fleet/proxies/{id}:deactivate",
    tag = "fleet",
    operation_id = "deactivate_proxy",
    params(("id" = String, Path, description = "Its id or its name", example = "proxy-br-1")),
    responses((status = 200, description = "As it is now", body = Proxy), (status = 404, response = Refused)),
)]
pub(crate) async fn deactivate(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Proxy>, Problem> {
    set(&fleet, &id, Changes { active: Some(false), ..Changes::default() }).await
}

/// Use a proxy again that was deactivated by its failures, which are forgotten
#[utoipa::path(
    post,
    path = "/fleet/proxies/{id}:reactivate",
    tag = "fleet",
    operation_id = "reactivate_proxy",
    params(("id" = String, Path, description = "Its id or its name", example = "proxy-br-1")),
    responses((status = 200, description = "As it is now", body = Proxy), (status = 404, response = Refused)),
)]
pub(crate) async fn reactivate(
    State(fleet): State<Fleet>,
    Id(id): Id<String>,
) -> Result<Json<Proxy>, Problem> {
    set(&fleet, &id, Changes { active: Some(true), ..Changes::default() }).await
}
