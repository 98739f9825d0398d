//! Extractions: the sources, the heat map of one, a task of its plan with its pages, and new runs.

mod body;
mod grid;
mod new;
mod order;
mod running;
mod say;
mod source;
mod sources;
mod task;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use lavra_extract::store::Store;

use crate::app::{App, Site};
use crate::problem::Problem;

pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/ui/extractions", get(sources::list))
        .route("/ui/extractions/new", get(new::page).post(new::act))
        .route("/ui/extractions/{source}", get(source::show))
        .route("/ui/extractions/{source}/order", get(order::page).post(order::act))
        .route("/ui/extractions/{source}/{task}", get(task::show))
        .route("/ui/extractions/{source}/{task}/pages/{page}", get(body::show))
}

/// The tables of a source, where something of it was extracted.
async fn extracted(app: &App, source: &str) -> Result<Arc<dyn Store>, Problem> {
    if lavra_extract::has_tables(&app.database, source).await? {
        return Ok(lavra_extract::store_of(&app.database, source));
    }
    Err(lavra_extract::Error::NothingExtracted(source.to_owned()).into())
}
