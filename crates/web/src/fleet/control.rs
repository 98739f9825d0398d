//! The run: start, drain, stop, and how it stands.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lavra_fleet::Fleet;
use lavra_fleet::model::Mode;
use lavra_fleet::service::Status;
use lavra_fleet::settings::Adjustable;
use lavra_tasks::Tasks;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::body::JsonBody;
use crate::openapi::Refused;
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(status))
        .routes(routes!(start))
        .routes(routes!(drain))
        .routes(routes!(stop))
        .routes(routes!(settings, set_settings))
}

/// The fleet at a glance: mode, counts, workers, proxies, writers, settings
#[utoipa::path(
    get,
    path = "/fleet",
    tag = "fleet",
    operation_id = "fleet_status",
    responses((status = 200, description = "All of it", body = Object)),
)]
pub(crate) async fn status(State(fleet): State<Fleet>) -> Result<Json<Status>, Problem> {
    Ok(Json(fleet.status().await?))
}

/// Start a run: the task that ends when nothing is queued or running
#[utoipa::path(
    post,
    path = "/fleet/start",
    tag = "fleet",
    operation_id = "start_fleet",
    responses(
        (status = 201, description = "The task of the run", body = Object),
        (status = 200, description = "The run that is there already", body = Object),
    ),
)]
pub(crate) async fn start(
    State(fleet): State<Fleet>,
    State(tasks): State<Tasks>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let (id, is_new) = fleet.start(&tasks).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(json!({ "task_id": id, "new": is_new }))))
}

async fn set(fleet: &Fleet, mode: Mode) -> Result<Json<Value>, Problem> {
    let control = fleet.steer(mode).await?;
    Ok(Json(json!({ "mode": mode, "task_id": control.task_id })))
}

/// Finish what runs, take nothing new, then end the run
#[utoipa::path(
    post,
    path = "/fleet/drain",
    tag = "fleet",
    operation_id = "drain_fleet",
    responses((status = 200, description = "It drains", body = Object), (status = 409, response = Refused)),
)]
pub(crate) async fn drain(State(fleet): State<Fleet>) -> Result<Json<Value>, Problem> {
    set(&fleet, Mode::Drain).await
}

/// Cancel jobs, put their missions back into the queue, close sessions, then end the run
#[utoipa::path(
    post,
    path = "/fleet/stop",
    tag = "fleet",
    operation_id = "stop_fleet",
    responses((status = 200, description = "It stops", body = Object), (status = 409, response = Refused)),
)]
pub(crate) async fn stop(State(fleet): State<Fleet>) -> Result<Json<Value>, Problem> {
    set(&fleet, Mode::Stop).await
}

/// The settings that can be changed while it runs
#[utoipa::path(
    get,
    path = "/fleet/settings",
    tag = "fleet",
    operation_id = "fleet_settings",
    responses((status = 200, description = "All of them", body = Object)),
)]
pub(crate) async fn settings(State(fleet): State<Fleet>) -> Result<Json<Adjustable>, Problem> {
    Ok(Json(fleet.store.settings().await?))
}

/// What is to be changed; the rest stays as it is.
#[derive(ToSchema)]
#[schema(example = json!({ "session_limit": 5, "max_retries": 2 }))]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct NewSettings {
    /// Missions per session, after which the proxy is changed.
    session_limit: Option<i32>,
    /// Retries of a phase before a mission fails for good.
    max_retries: Option<i32>,
    /// Which failures deactivate a proxy: total or consecutive.
    proxy_failures: Option<String>,
}

/// Change settings; what is not named stays as it is
#[utoipa::path(
    put,
    path = "/fleet/settings",
    tag = "fleet",
    operation_id = "set_fleet_settings",
    request_body = NewSettings,
    responses((status = 200, description = "As they are now", body = Object), (status = 422, response = Refused)),
)]
pub(crate) async fn set_settings(
    State(fleet): State<Fleet>,
    JsonBody(changes): JsonBody<Value>,
) -> Result<Json<Adjustable>, Problem> {
    let mut all = json!(fleet.store.settings().await?);
    if let (Some(all), Some(changes)) = (all.as_object_mut(), changes.as_object()) {
        all.extend(changes.clone());
    }
    let settings: Adjustable =
        serde_json::from_value(all).map_err(|error| Problem::invalid(error.to_string()))?;
    fleet.set_settings(settings).await?;
    Ok(Json(settings))
}
