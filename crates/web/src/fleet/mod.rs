//! The fleet over HTTP: missions, what they are run with, and how it runs.

mod control;
mod log;
mod missions;
mod things;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .merge(missions::routes())
        .merge(things::routes())
        .merge(control::routes())
        .merge(log::routes())
}
