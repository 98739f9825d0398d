//! The interface, described by the code that serves it.

use std::sync::Arc;

use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{OpenApi, PathItem, Ref, RefOr, Schema};
use utoipa::{OpenApi as _, ToResponse};
use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;
use crate::problem::Document;
use crate::sheet::Format;

/// Any refusal.
#[derive(ToResponse)]
#[response(
    description = "What went wrong, with a stable code",
    content_type = "application/problem+json"
)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct Refused(Document);

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Lavra",
        description = "Durable tasks: submit, watch, cancel, retry, and work on them.\n\nErrors are `application/problem+json` with a stable `code`; `/docs/errors` explains each."
    ),
    tags(
        (name = "tasks", description = "What is to be done, and what became of it"),
        (name = "events", description = "What happens, as it happens"),
        (name = "workers", description = "For workers in any language"),
        (name = "dead letters", description = "What failed for good"),
        (name = "schedules", description = "Tasks made by the clock"),
        (name = "extractions", description = "What is read from paged APIs, and how far it is"),
        (name = "missions", description = "What is to be scraped, and how far it is"),
        (name = "fleet", description = "Workers, proxies and writers, and the run that uses them"),
        (name = "operations", description = "For those who keep it running"),
    ),
    components(schemas(Document, Format), responses(Refused)),
    paths(document),
)]
struct Api;

pub(crate) fn empty() -> OpenApi {
    let mut api = Api::openapi();
    api.info.contact = None;
    api
}

/// This document
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "operations",
    operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object)),
)]
#[expect(dead_code, reason = "only its description is used")]
fn document() {}

/// Serves the description of everything that `router` has.
pub(crate) fn described(mut router: OpenApiRouter<Site>) -> axum::Router<Site> {
    for item in router.get_openapi_mut().paths.paths.values_mut() {
        for operation in operations(item) {
            let refused = RefOr::Ref(Ref::from_response_name("Refused"));
            operation.responses.responses.entry("default".into()).or_insert(refused);
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter {
                    parameter.schema.iter_mut().for_each(never_null);
                }
            }
        }
    }
    let (router, api) = router.split_for_parts();
    let text: Arc<str> = api.to_pretty_json().unwrap_or_default().into();
    let serve = move || {
        let text = text.to_string();
        async move { ([(header::CONTENT_TYPE, "application/json")], text).into_response() }
    };
    router.route("/openapi.json", get(serve))
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}

/// What is not in a query or a header is absent: there is no other nothing there.
fn never_null(schema: &mut RefOr<Schema>) {
    let plain = |kind: &mut SchemaType| {
        if let SchemaType::Array(kinds) = kind {
            kinds.retain(|kind| *kind != Type::Null);
            if let [only] = kinds.as_slice() {
                *kind = SchemaType::Type(only.clone());
            }
        }
    };
    let RefOr::T(inner) = schema else { return };
    match inner {
        Schema::Object(object) => plain(&mut object.schema_type),
        Schema::Array(array) => plain(&mut array.schema_type),
        Schema::OneOf(choice) => {
            let is_null = |item: &RefOr<Schema>| match item {
                RefOr::T(Schema::Object(object)) => {
                    object.schema_type == SchemaType::Type(Type::Null)
                }
                RefOr::T(_) | RefOr::Ref(_) => false,
            };
            choice.items.retain(|item| !is_null(item));
            if let [only] = choice.items.as_slice() {
                *schema = only.clone();
            }
        }
        _ => {}
    }
}
