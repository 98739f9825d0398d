//! Tasks for people and programs that want something done.

mod create;
mod list;
mod look;
mod stream;
mod verbs;

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use lavra_tasks::model;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use create::{LONGEST_KEY, created};

use crate::app::Site;
use crate::headers::etag;
use crate::verbs::Verbs;
use crate::wire::Task;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(create::one, list::page))
        .routes(routes!(create::batch))
        .routes(routes!(look::task))
        .routes(routes!(look::input))
        .routes(routes!(look::events))
        .routes(routes!(look::result))
        .routes(routes!(stream::follow))
        .verb(routes!(verbs::retry))
        .verb(routes!(verbs::cancel))
}

/// A task with its version as the tag.
pub(crate) fn tagged(task: model::Task) -> Response {
    let tag = etag(task.version);
    ([(header::ETAG, tag)], Json(Task::from(task))).into_response()
}
