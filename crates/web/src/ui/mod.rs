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
mod audit;
mod chart;
mod confirm;
mod entry;
mod extractions;
mod fleet;
mod format;
mod help;
mod json;
mod keys;
mod letters;
mod live;
mod login;
mod missions;
mod once;
mod overview;
mod page;
mod preferences;
mod schedules;
mod settings;
mod tasks;
mod texts;
mod visitor;
mod webhooks;
mod words;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;

use crate::app::Site;

pub(crate) use chart::escape;
pub(crate) use live::Live;
pub(crate) use login::login_page;
pub(crate) use page::explain;
pub(crate) use visitor::Visitor;

pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/", get(async || Redirect::to("/ui")))
        .merge(assets::routes())
        .merge(audit::routes())
        .merge(extractions::routes())
        .merge(fleet::routes())
        .merge(help::routes())
        .merge(keys::routes())
        .merge(letters::routes())
        .merge(live::routes())
        .merge(missions::routes())
        .merge(overview::routes())
        .merge(preferences::routes())
        .merge(schedules::routes())
        .merge(settings::routes())
        .merge(tasks::routes())
        .merge(webhooks::routes())
        .nest("/ui", Router::new().fallback(page::not_found))
}
