//! The page that the `type` of every problem points to.

use std::fmt::Write;

use axum::response::Html;
use lavra_fleet::code::ErrorCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Site;
use crate::problem::Code;

pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::default().routes(routes!(errors))
}

/// What each error code means, and what to do
#[utoipa::path(
    get,
    path = "/docs/errors",
    tag = "operations",
    operation_id = "error_codes",
    responses((status = 200, description = "For people", content_type = "text/html", body = String)),
)]
pub(crate) async fn errors() -> Html<String> {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Lavra: error codes</title>\
         <h1>Error codes</h1><dl>",
    );
    for code in Code::ALL {
        let (name, status) = (code.as_str(), code.status().as_u16());
        let _infallible = write!(
            page,
            "<dt id=\"{name}\"><code>{name}</code> ({status}) {}</dt><dd>{}</dd>",
            code.title(),
            code.advice()
        );
    }
    page.push_str("</dl><h1>Error codes of missions</h1><dl>");
    for code in ErrorCode::ALL {
        let _infallible = write!(
            page,
            "<dt id=\"{code}\"><code>{code}</code></dt><dd>{}. Whose fault, as a rule: {}.</dd>",
            code.says(),
            code.blame()
        );
    }
    page.push_str("</dl></html>");
    Html(page)
}
