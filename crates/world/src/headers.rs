//! The headers of the answers, as they were recorded. No ETag, no Last-Modified, no Retry-After.

use hyper::HeaderMap;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, EXPIRES, HeaderName,
    HeaderValue, PRAGMA, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    X_XSS_PROTECTION,
};

const RECORDED: [(HeaderName, HeaderValue); 11] = [
    (ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true")),
    (
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Content-Type,Authorization,X-Requested-With,Content-Length,Accept,Origin,",
        ),
    ),
    (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET,PUT,POST,DELETE,OPTIONS")),
    (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    (CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store, max-age=0, must-revalidate")),
    (EXPIRES, HeaderValue::from_static("0")),
    (PRAGMA, HeaderValue::from_static("no-cache")),
    (STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=15768000")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (X_XSS_PROTECTION, HeaderValue::from_static("1; mode=block")),
];

/// Those of the API itself, whatever the status.
pub(crate) fn of_api(status: u16) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    for (name, value) in RECORDED {
        headers.insert(name, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status == 204 {
        headers.insert(X_XSS_PROTECTION, HeaderValue::from_static("0"));
    }
    headers
}

/// Those of a gateway's page.
pub(crate) fn of_gateway(length: usize) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    with_length(&mut headers, length as u64);
    headers
}

pub(crate) fn with_length(headers: &mut HeaderMap, length: u64) {
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
}
