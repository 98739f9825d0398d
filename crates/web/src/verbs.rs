//! Paths like `/tasks/{id}:retry`.
//!
//! The router of axum matches whole segments only. So the last segment is split before routing,
//! and `/tasks/{id}:retry` is routed as `/tasks/{id}/~retry`; documents, metrics and clients know
//! only the former, and the latter is no path that a client may ask for.

use std::borrow::Cow;
use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::routing::future::RouteFuture;
use tower::Service;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

const MARK: &str = "/~";
/// The collections whose members have verbs.
const COLLECTIONS: [&str; 9] = [
    "/tasks/",
    "/workers/",
    "/dead-letters/",
    "/extractions/",
    "/webhooks/",
    "/missions/",
    "/fleet/workers/",
    "/fleet/proxies/",
    "/fleet/writers/",
];

/// Adds a route whose documented path ends in a verb.
pub(crate) trait Verbs<S> {
    fn verb(self, route: UtoipaMethodRouter<S>) -> Self;
}

impl<S: Clone + Send + Sync + 'static> Verbs<S> for OpenApiRouter<S> {
    fn verb(mut self, (schemas, paths, methods): UtoipaMethodRouter<S>) -> Self {
        for (path, item) in paths.paths {
            let (member, verb) = path.rsplit_once(':').unwrap_or((&path, ""));
            let routed = format!("{member}{MARK}{verb}");
            self = self.route(&routed, methods.clone());
            self.get_openapi_mut().paths.paths.insert(path, item);
        }
        let components = self.get_openapi_mut().components.get_or_insert_default();
        components.schemas.extend(schemas);
        self
    }
}

/// The path as it is documented.
pub(crate) fn documented(routed: &str) -> Cow<'_, str> {
    if routed.contains(MARK) { routed.replace(MARK, ":").into() } else { routed.into() }
}

/// The path as it is routed, where that differs.
fn routed(path: &str) -> Option<String> {
    if path.contains(MARK) {
        return Some("/~".into());
    }
    let collection = COLLECTIONS.into_iter().find(|collection| path.starts_with(collection))?;
    let member = &path[collection.len()..];
    let colons = ["%3A", "%3a", ":"].into_iter().filter_map(|colon| member.rsplit_once(colon));
    // The last one: a name may have some of its own.
    let (id, verb) = colons.max_by_key(|(id, _)| id.len())?;
    let plain = !member.contains('/') && !verb.is_empty();
    plain.then(|| format!("{collection}{id}{MARK}{verb}"))
}

/// Splits verbs off before the router sees the path.
#[derive(Clone, Debug)]
pub(crate) struct Split(pub(crate) Router);

impl Service<Request> for Split {
    type Response = axum::response::Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        if let Some(path) = routed(request.uri().path())
            && let Some(uri) = replace_path(request.uri(), path)
        {
            *request.uri_mut() = uri;
        }
        self.0.call(request)
    }
}

fn replace_path(uri: &Uri, mut path: String) -> Option<Uri> {
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_split_off_its_member() {
        assert_eq!(routed("/tasks/1:retry").as_deref(), Some("/tasks/1/~retry"));
        assert_eq!(routed("/tasks/1%3Aretry").as_deref(), Some("/tasks/1/~retry"));
        assert_eq!(
            routed("/fleet/workers/a%3Ab:test").as_deref(),
            Some("/fleet/workers/a%3Ab/~test")
        );
        assert_eq!(routed("/workers/1:retire").as_deref(), Some("/workers/1/~retire"));
        for path in ["/tasks", "/tasks:claim", "/tasks/1", "/tasks/1:", "/tasks/1:a/b", "/x/1:y"] {
            assert_eq!(routed(path), None, "{path}");
        }
    }

    #[test]
    fn the_routed_form_is_nothing_to_ask_for() {
        assert_eq!(routed("/tasks/1/~retry").as_deref(), Some("/~"));
    }

    #[test]
    fn the_documented_form_comes_back() {
        assert_eq!(documented("/tasks/{id}/~retry"), "/tasks/{id}:retry");
        assert_eq!(documented("/tasks/{id}"), "/tasks/{id}");
    }
}
