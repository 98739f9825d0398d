//! Missions: the bank, the queue, and what became of them.

mod list;
mod make;
mod one;
mod wishes;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::verbs::Verbs;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(list::list, make::create))
        .routes(routes!(make::import))
        .routes(routes!(wishes::queue))
        .routes(routes!(wishes::cancel))
        .routes(routes!(wishes::retry))
        .routes(routes!(one::show))
        .routes(routes!(one::log))
        .verb(routes!(one::queue))
        .verb(routes!(one::cancel))
        .verb(routes!(one::retry))
        .verb(routes!(one::copy))
}
