//! The interface, described by the code that serves it.

use std::sync::Arc;

use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{OpenApi, PathItem, Ref, RefOr, Schema};
use utoipa::{OpenApi as _, ToResponse};
use utoipa_axum::router::OpenApiRouter;

use crate::access::roles::{Need, ROUTES};
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
        (name = "keys", description = "Who may call, and as what"),
        (name = "webhooks", description = "Who is told of what"),
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
    for (path, item) in &mut router.get_openapi_mut().paths.paths {
        for (_, operation) in operations(item) {
            let refused = RefOr::Ref(Ref::from_response_name("Refused"));
            operation.responses.responses.entry("default".into()).or_insert(refused);
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter {
                    parameter.schema.iter_mut().for_each(never_null);
                }
            }
        }
        every_operation_names_its_role(path, item);
    }
    let components = router.get_openapi_mut().components.get_or_insert_default();
    let schemes = credentials().map(|(name, scheme)| (name.to_owned(), RefOr::T(scheme)));
    components.security_schemes.extend(schemes);
    let (router, api) = router.split_for_parts();
    let text: Arc<str> = api.to_pretty_json().unwrap_or_default().into();
    let serve = move || {
        let text = text.to_string();
        async move { ([(header::CONTENT_TYPE, "application/json")], text).into_response() }
    };
    router.route("/openapi.json", get(serve))
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("GET", &mut item.get),
        ("PUT", &mut item.put),
        ("POST", &mut item.post),
        ("DELETE", &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
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

/// What callers may show; the names are those that operations refer to.
fn credentials() -> [(&'static str, SecurityScheme); 3] {
    let key =
        HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("lavra_{id}_{secret}");
    let in_header = ApiKeyValue::with_description("x-api-key", "The same key");
    let about =
        "What the login page gives for a key; what changes something also sends X-CSRF-Token";
    let cookie = ApiKeyValue::with_description("lavra_session", about);
    [
        ("key", SecurityScheme::Http(key.build())),
        ("key_header", SecurityScheme::ApiKey(ApiKey::Header(in_header))),
        ("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie))),
    ]
}

/// The table of roles, as far as it concerns the operation.
fn every_operation_names_its_role(path: &str, item: &mut PathItem) {
    for (method, operation) in operations(item) {
        let Some(need) = need(method, path) else { continue };
        let role = need.as_str();
        operation.extensions = Some(Extensions::builder().add("x-role", role).build());
        if need == Need::Open {
            continue;
        }
        let sentence = format!("Needs the role `{role}`.");
        operation.description = Some(match operation.description.take() {
            Some(text) => format!("{text}\n\n{sentence}"),
            None => sentence,
        });
        let schemes =
            credentials().map(|(name, _)| SecurityRequirement::new::<_, _, String>(name, []));
        // On the same machine nothing may be needed.
        let nothing = SecurityRequirement::default();
        operation.security = Some(schemes.into_iter().chain([nothing]).collect());
    }
}

fn need(method: &str, path: &str) -> Option<Need> {
    let line = ROUTES.iter().find(|(of, route, _)| *of == method && *route == path);
    line.map(|(.., need)| *need)
}
