//! Tasks: the list, one of them, and a new one.

mod act;
mod list;
mod new;
mod one;
mod say;

use axum::Router;
use axum::routing::{get, post};

use crate::app::Site;

pub(super) use say::{Badge, badge, step};

pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/ui/tasks", get(list::list))
        .route("/ui/tasks/new", get(new::page).post(new::make))
        .route("/ui/tasks/{id}", get(one::show))
        .route("/ui/tasks/{id}/act", post(act::act))
}
