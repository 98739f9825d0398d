//! What every answer tells a browser: do not guess the type, do not keep it, show it in no frame, run
//! nothing in it but what our own pages bring.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::access::is_page;

const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
];
const NOTHING_RUNS: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
/// For pages: their own scripts, styles and pictures, from files; nothing that stands in the page.
const ONLY_OURS: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
);
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");
/// The names of such files change with what is in them.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

pub(crate) async fn headers(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let (is_page, is_asset) = (is_page(path), path.starts_with("/assets/"));
    let mut response = next.run(request).await;
    let is_html = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let policy = if is_page && is_html { ONLY_OURS } else { NOTHING_RUNS };
    let keeping = if is_asset && response.status().is_success() { KEPT } else { NOT_KEPT };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, value);
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::CACHE_CONTROL, keeping);
    response
}
