//! What a browser meets at the gate: the way to the login page, and a second start for visits that
//! another site has sent.

use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};

use super::gate::Known;
use super::roles::is_below;
use crate::problem::{Code, Problem};

const LOGIN: &str = "/ui/login";
/// Where people go who have logged in and wanted nothing else.
pub(super) const HOME: &str = "/ui";
pub(crate) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Whether a path is one of the pages.
pub(crate) fn is_page(path: &str) -> bool {
    is_below(path, HOME)
}

/// A person who is not known is shown where to log in; anyone else gets the problem.
pub(super) fn refuse(problem: Problem, parts: &Parts) -> Response {
    let by_cookie = !parts.headers.contains_key(header::AUTHORIZATION)
        && !parts.headers.contains_key("x-api-key");
    if problem.code() != Code::Unauthenticated || !by_cookie || !is_visit(parts) {
        return problem.into_response();
    }
    if parts.method != Method::GET {
        return Redirect::to(LOGIN).into_response();
    }
    if is_from_elsewhere(parts) {
        return start_again(&parts.uri);
    }
    Redirect::to(&login_for(&parts.uri)).into_response()
}

/// The login page, from which one comes back.
fn login_for(uri: &Uri) -> String {
    let path = uri.path_and_query().map_or(HOME, |path| path.as_str());
    let next: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
    format!("{LOGIN}?next={next}")
}

/// Where to go after the login: to a page of ours, and nowhere else.
pub(super) fn local(next: Option<&str>) -> &str {
    let is_ours = |path: &&str| {
        is_page(path.split(['?', '#']).next().unwrap_or_default())
            && !is_below(path, LOGIN)
            && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    next.filter(is_ours).unwrap_or(HOME)
}

/// Whether a page is being opened, rather than asked for by a script.
fn is_visit(parts: &Parts) -> bool {
    let accepts = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let by_script = parts.headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode != "navigate");
    is_page(parts.uri.path())
        && accepts.is_some_and(|accepts| accepts.contains("text/html"))
        && !by_script
}

fn is_from_elsewhere(parts: &Parts) -> bool {
    parts.headers.get(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site")
}

/// Whether a visitor came by a link of another site: then the browser has kept our cookies to itself,
/// and a new one would make the forms of pages that are open worthless.
pub(super) fn needs_own_start(parts: &Parts, known: Option<&Known>) -> bool {
    known.is_none_or(Known::is_visitor)
        && parts.method == Method::GET
        && is_visit(parts)
        && is_from_elsewhere(parts)
}

/// The same page once more, now asked for by us, with the cookies.
pub(super) fn start_again(uri: &Uri) -> Response {
    let path = uri.path_and_query().map_or(HOME, |path| path.as_str());
    let path = crate::ui::escape(path);
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Lavra</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={path}\"><p><a href=\"{path}\">Lavra</a></html>"
    );
    (StatusCode::OK, Html(page)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comes_back_only_to_pages_of_ours() {
        for next in ["/ui", "/ui/missions?status=failed&a=b#x", "/ui/workers/1"] {
            assert_eq!(local(Some(next)), next);
        }
        for next in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example/ui",
            "/uix",
            "/ui/\\x",
            "/ui/\r\nSet-Cookie: a=b",
            "/ui/login",
            "/tasks",
            "javascript:alert(1)",
        ] {
            assert_eq!(local(Some(next)), HOME, "{next}");
        }
        assert_eq!(local(None), HOME);
    }

    #[test]
    fn the_way_to_the_login_page_says_where_one_wanted_to_go() {
        let uri = "/ui/missions?status=failed&page=2".parse().unwrap();
        assert_eq!(login_for(&uri), "/ui/login?next=%2Fui%2Fmissions%3Fstatus%3Dfailed%26page%3D2");
    }
}
