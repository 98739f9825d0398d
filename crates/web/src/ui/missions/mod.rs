//! Missions: the bank, the queue, what became of them, and one.

mod act;
mod list;
mod new;
mod one;
mod timeline;

use axum::Router;
use axum::routing::{get, post};

use crate::app::Site;

pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/ui/missions", get(list::list))
        .route("/ui/missions/act", post(act::act))
        .route("/ui/missions/new", get(new::page).post(new::make))
        .route("/ui/missions/import", post(new::import))
        .route("/ui/missions/{id}", get(one::show))
        .route("/ui/missions/{id}/copy", post(one::copy))
}
