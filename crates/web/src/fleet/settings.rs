//! What can be changed while the fleet runs.

use axum::Json;
use axum::extract::State;
use lavra_fleet::Fleet;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::wire::Settings;
use super::words::ProxyFailures;
use crate::app::Site;
use crate::body::JsonBody;
use crate::openapi::Refused;
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(show, change))
}

/// The settings that can be changed while it runs
#[utoipa::path(
    get,
    path = "/fleet/settings",
    tag = "fleet",
    operation_id = "fleet_settings",
    responses((status = 200, description = "All of them", body = Settings)),
)]
pub(crate) async fn show(State(fleet): State<Fleet>) -> Result<Json<Settings>, Problem> {
    Ok(Json(fleet.store.settings().await?.into()))
}

/// What is to be changed; the rest stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "session_limit": 5, "max_retries": 2 }))]
pub(crate) struct NewSettings {
    /// Missions per session, after which the proxy is changed.
    #[schema(minimum = 1, maximum = 1000)]
    session_limit: Option<i32>,
    /// Retries of a phase before a mission fails for good.
    #[schema(minimum = 0, maximum = 20)]
    max_retries: Option<i32>,
    proxy_failures: Option<ProxyFailures>,
}

/// Change settings; what is not named stays as it is
#[utoipa::path(
    put,
    path = "/fleet/settings",
    tag = "fleet",
    operation_id = "set_fleet_settings",
    request_body = NewSettings,
    responses(
        (status = 200, description = "As they are now", body = Settings),
        (status = 422, response = Refused),
    ),
)]
pub(crate) async fn change(
    State(fleet): State<Fleet>,
    JsonBody(changes): JsonBody<NewSettings>,
) -> Result<Json<Settings>, Problem> {
    let mut settings = fleet.store.settings().await?;
    settings.session_limit = changes.session_limit.unwrap_or(settings.session_limit);
    settings.max_retries = changes.max_retries.unwrap_or(settings.max_retries);
    settings.proxy_failures = changes
        .proxy_failures
        .map_or(settings.proxy_failures, lavra_fleet::settings::ProxyFailures::from);
    fleet.set_settings(settings).await?;
    Ok(Json(settings.into()))
}
