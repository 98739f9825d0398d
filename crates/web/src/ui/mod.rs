//! Mission Control: the pages where people run it.
//!
//! Every page is made here, whole, from the same services that the API has; it works without a
//! script. A page is a URL: filters stand in it, and what changes something is a form. With a
//! script the page stays as it is and what has changed in it is exchanged: [`live`] says that
//! something has happened, the script asks for the same page again and takes over what is new.
//!
//! A page is a handler that reads, a view that has all that is shown as plain data, and a template
//! that shows it. Handlers hold no SQL; templates decide nothing but how it looks.

mod asked;
mod assets;
mod chart;
mod confirm;
mod entry;
mod extractions;
mod format;
mod json;
mod letters;
mod live;
mod missions;
mod overview;
mod page;
mod preferences;
mod schedules;
mod tasks;
mod texts;
mod visitor;
mod words;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;

use crate::app::Site;

pub(crate) use live::Live;
pub(crate) use page::explain;

pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/", get(async || Redirect::to("/ui")))
        .merge(assets::routes())
        .merge(extractions::routes())
        .merge(letters::routes())
        .merge(live::routes())
        .merge(missions::routes())
        .merge(overview::routes())
        .merge(preferences::routes())
        .merge(schedules::routes())
        .merge(tasks::routes())
        .nest("/ui", Router::new().fallback(page::not_found))
}
