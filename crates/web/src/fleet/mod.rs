//! The fleet over HTTP: missions, what they are run with, and how it runs.

mod control;
mod log;
mod missions;
mod proxies;
mod reports;
mod settings;
mod wire;
mod words;
mod workers;
mod writers;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .merge(missions::routes())
        .merge(workers::routes())
        .merge(proxies::routes())
        .merge(writers::routes())
        .merge(control::routes())
        .merge(settings::routes())
        .merge(log::routes())
        .merge(reports::routes())
}

/// Something that was made, with its place.
fn made(path: &str, body: impl Serialize) -> Response {
    let location = HeaderValue::try_from(path).ok().map(|path| (header::LOCATION, path));
    let mut response = (StatusCode::CREATED, Json(body)).into_response();
    response.headers_mut().extend(location);
    response
}
