//! All routes, and what every request passes on its way to them.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

use crate::app::{App, Site};
use crate::problem::{Code, Problem};
use crate::verbs::Split;
use crate::{
    access, dead_letters, deadline, docs, events, extractions, fleet, guard, health, metrics, once,
    openapi, schedules, secure, sql, tasks, types, ui, webhooks, workers,
};

/// The interface as a service: behind a socket by [`serve`](crate::serve()), or called in process.
/// Behind any other socket it would take its callers for the process itself.
pub fn router(app: App) -> Router {
    metrics::recorder();
    let site = Site::new(app);
    // The layers from the inside out.
    let routes = openapi::described(routes())
        .merge(access::pages())
        .merge(ui::routes())
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_that_way)
        .layer(from_fn_with_state(site.clone(), once::keep))
        .layer(from_fn_with_state(site.clone(), access::check))
        .layer(from_fn(deadline::keep))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(site.clone(), guard::check))
        .layer(from_fn(ui::explain))
        .layer(from_fn(secure::headers))
        .layer(from_fn(metrics::count))
        .with_state(site);
    Router::new().fallback_service(Split(routes))
}

fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::with_openapi(openapi::empty())
        .merge(tasks::routes())
        .merge(events::routes())
        .merge(workers::routes())
        .merge(dead_letters::routes())
        .merge(schedules::routes())
        .merge(extractions::routes())
        .merge(fleet::routes())
        .merge(webhooks::routes())
        .merge(types::routes())
        .merge(access::routes())
        .merge(sql::routes())
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(docs::routes())
}

async fn nothing_here(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    Problem::new(Code::NoSuchRoute, format!("there is no {method} {path}"))
}

async fn not_that_way(request: Request) -> Problem {
    let path = crate::verbs::documented(request.uri().path()).into_owned();
    Problem::new(Code::MethodNotAllowed, format!("{path} has no method {}", request.method()))
}

#[expect(clippy::needless_pass_by_value, reason = "the layer hands it over like this")]
fn panicked(reason: Box<dyn std::any::Any + Send>) -> Response {
    let text = reason.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| reason.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    tracing::error!(reason = text, "a request panicked");
    Problem::new(Code::InternalError, "something is wrong in lavra; the log has more")
        .into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::verbs::documented;

    #[test]
    fn every_route_that_is_served_is_described() {
        let described: BTreeSet<String> = routes().into_openapi().paths.paths.into_keys().collect();
        // Its debug form is the only place where axum tells its routes.
        let shown = format!("{:?}", openapi::described(routes()));
        let quoted = shown.split('"').filter(|text| text.starts_with('/'));
        let served: BTreeSet<String> = quoted
            .filter(|path| *path != "/" && !path.contains("__private"))
            .map(|path| documented(path).into_owned())
            .collect();
        assert_eq!(served, described);
    }

    #[test]
    fn every_route_has_exactly_one_line_in_the_table_of_roles() {
        let operations =
            routes().into_openapi().paths.paths.into_iter().flat_map(|(path, item)| {
                let methods = [
                    ("GET", item.get),
                    ("PUT", item.put),
                    ("POST", item.post),
                    ("DELETE", item.delete),
                    ("PATCH", item.patch),
                    ("HEAD", item.head),
                    ("OPTIONS", item.options),
                ];
                let methods = methods.into_iter().filter(|(_, operation)| operation.is_some());
                methods
                    .map(move |(method, _)| (method.to_owned(), path.clone()))
                    .collect::<Vec<_>>()
            });
        let lines = access::roles::ROUTES.iter();
        let lines = lines.map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()));
        assert_eq!(lines.collect::<BTreeSet<_>>(), operations.collect::<BTreeSet<_>>());
    }
}
