//! The run: start, drain, stop, and how it stands.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lavra_fleet::model::Mode;
use lavra_fleet::{Fleet, service};
use lavra_tasks::Tasks;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::wire::{Control, Counts, Proxy, Settings, Worker, Writer};
use crate::app::Site;
use crate::openapi::Refused;
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(status))
        .routes(routes!(start))
        .routes(routes!(drain))
        .routes(routes!(stop))
}

/// The fleet at a glance.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetStatus)]
pub(crate) struct Status {
    control: Control,
    counts: Counts,
    workers: Vec<Worker>,
    proxies: Vec<Proxy>,
    writers: Vec<Writer>,
    settings: Settings,
}

impl From<service::Status> for Status {
    fn from(status: service::Status) -> Self {
        Self {
            control: status.control.into(),
            counts: status.counts.into(),
            workers: status.workers.into_iter().map(Worker::from).collect(),
            proxies: status.proxies.into_iter().map(Proxy::from).collect(),
            writers: status.writers.into_iter().map(Writer::from).collect(),
            settings: status.settings.into(),
        }
    }
}

/// The fleet at a glance: mode, counts, workers, proxies, writers, settings
#[utoipa::path(
    get,
    path = "/fleet",
    tag = "fleet",
    operation_id = "fleet_status",
    responses((status = 200, description = "All of it", body = Status)),
)]
pub(crate) async fn status(State(fleet): State<Fleet>) -> Result<Json<Status>, Problem> {
    Ok(Json(fleet.status().await?.into()))
}

/// The task of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetRunTask, example = json!({
    "task_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b", "new": true,
}))]
pub(crate) struct Run {
    task_id: Uuid,
    /// False when it was there already.
    new: bool,
}

/// Start a run: the task that ends when nothing is queued or running
#[utoipa::path(
    post,
    path = "/fleet/start",
    tag = "fleet",
    operation_id = "start_fleet",
    responses(
        (status = 201, description = "The task of the run", body = Run),
        (status = 200, description = "The run that is there already", body = Run),
    ),
)]
pub(crate) async fn start(
    State(fleet): State<Fleet>,
    State(tasks): State<Tasks>,
) -> Result<(StatusCode, Json<Run>), Problem> {
    let (id, new) = fleet.start(&tasks).await?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Run { task_id: id.0, new })))
}

/// Finish what runs, take nothing new, then end the run
#[utoipa::path(
    post,
    path = "/fleet/drain",
    tag = "fleet",
    operation_id = "drain_fleet",
    responses(
        (status = 200, description = "It drains", body = Control),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn drain(State(fleet): State<Fleet>) -> Result<Json<Control>, Problem> {
    Ok(Json(fleet.steer(Mode::Drain).await?.into()))
}

/// Cancel jobs, put their missions back into the queue, close sessions, then end the run
#[utoipa::path(
    post,
    path = "/fleet/stop",
    tag = "fleet",
    operation_id = "stop_fleet",
    responses(
        (status = 200, description = "It stops", body = Control),
        (status = 409, response = Refused),
    ),
)]
pub(crate) async fn stop(State(fleet): State<Fleet>) -> Result<Json<Control>, Problem> {
    Ok(Json(fleet.steer(Mode::Stop).await?.into()))
}
