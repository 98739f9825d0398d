//! Extractions: which sources there are, how far each is, and what can be done with it.

mod after;
mod orders;
mod pages;
mod plan;
mod rows;
mod sources;
mod wire;

use std::sync::Arc;

use lavra_extract::store::Store;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Site};
use crate::problem::Problem;
use crate::verbs::Verbs;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default()
        .routes(routes!(sources::list))
        .routes(routes!(rows::list))
        .routes(routes!(rows::grid))
        .routes(routes!(pages::task))
        .routes(routes!(pages::pages))
        .verb(routes!(plan::plan))
        .verb(routes!(orders::run))
        .verb(routes!(orders::retry))
        .verb(routes!(after::audit))
        .verb(routes!(after::export))
}

/// The tables of a source, where something of it was extracted.
async fn extracted(app: &App, source: &str) -> Result<Arc<dyn Store>, Problem> {
    if lavra_extract::has_tables(&app.database, source).await? {
        return Ok(lavra_extract::store_of(&app.database, source));
    }
    Err(lavra_extract::Error::NothingExtracted(source.to_owned()).into())
}
