//! Tasks that are made by the clock.

mod act;
mod cron;
mod list;

use axum::Router;
use axum::routing::{get, post};

use crate::app::Site;

const HERE: &str = "/ui/schedules";

pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route(HERE, get(list::list))
        .route("/ui/schedules/edit", get(list::edit).post(act::save))
        .route("/ui/schedules/act", post(act::act))
}
