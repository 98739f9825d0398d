//! What missions are run with: workers, proxies and writers.

mod act;
mod form;
mod kind;
mod proxies;
mod shown;
mod worker;
mod workers;
mod writers;

use axum::routing::{get, post};
use axum::{Extension, Router};

use crate::app::Site;
use kind::Kind;

pub(crate) use shown::status_name;

pub(crate) fn routes() -> Router<Site> {
    let changes = |kind: Kind| {
        let path = kind.path();
        Router::new()
            .route(&format!("{path}/new"), get(form::new).post(form::add))
            .route(&format!("{path}/{{id}}/edit"), get(form::edit).post(form::save))
            .route(&format!("{path}/{{id}}/act"), post(act::act))
            .layer(Extension(kind))
    };
    Router::new()
        .route("/ui/workers", get(workers::list))
        .route("/ui/workers/{id}", get(worker::show))
        .route("/ui/proxies", get(proxies::list))
        .route("/ui/writers", get(writers::list))
        .merge(changes(Kind::Worker))
        .merge(changes(Kind::Proxy))
        .merge(changes(Kind::Writer))
}
