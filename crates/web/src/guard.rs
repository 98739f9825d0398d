//! That a browser is not made to speak for others.
//!
//! Callers on this machine may need no key, and a browser sends its cookies by itself. So a web page of
//! another site must not become a caller: by a name that was rebound to 127.0.0.1 (the Host header
//! gives it away), or by a form or script (Origin and Sec-Fetch-Site do). Who calls, and what they may
//! do, is the business of [`access`](crate::access).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::SEC_FETCH_SITE;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::serve::Served;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match refusal(&app.hosts, &request) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(names: &[String], request: &Request) -> Option<Problem> {
    let wrong = |detail: String| Some(Problem::new(Code::WrongHost, detail));
    if let Some(authority) = request.uri().authority()
        && !is_ours(names, authority.as_str())
    {
        return wrong(format!("{authority} is not a name of this server"));
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            if !host.to_str().is_ok_and(|host| is_ours(names, host)) {
                return wrong(format!("{host:?} is not a name of this server"));
            }
        }
        (Some(_), Some(_)) => return wrong("the header Host may stand only once".into()),
        // Only a caller within this process need not say whom it calls.
        (None, _) => {
            if request.extensions().get::<Served>().is_some() {
                return wrong("the header Host is missing".into());
            }
        }
    }
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    let mut sites = request.headers().get_all(SEC_FETCH_SITE).iter();
    let is_ours = origins.all(|origin| is_our_origin(names, origin))
        && sites.all(|site| site == "same-origin" || site == "none");
    if !reads(request.method()) && !is_ours {
        let detail = "a page of another site may not change anything here";
        return Some(Problem::new(Code::ForeignOrigin, detail));
    }
    None
}

/// Whether a method changes nothing.
pub(crate) fn reads(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Whether the caller calls this server by a name of this machine.
pub(crate) fn is_addressed_as_loopback(parts: &Parts) -> bool {
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = parts.uri.authority().map(Authority::as_str);
    host.is_some() && host.into_iter().chain(authority).all(|name| is_ours(&[], name))
}

fn is_our_origin(names: &[String], origin: &HeaderValue) -> bool {
    let text = origin.to_str().unwrap_or_default();
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    host.is_some_and(|host| is_ours(names, host))
}

/// Whether `text`, a host with or without a port, names this server.
fn is_ours(names: &[String], text: &str) -> bool {
    let Ok(authority) = text.parse::<Authority>() else { return false };
    let host = authority.host();
    let mut known = LOOPBACK.into_iter().chain(names.iter().map(String::as_str));
    !text.contains('@') && known.any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_with_any_port_are_ours() {
        let names = ["lavra.example".to_owned()];
        for host in ["localhost", "LocalHost:80", "127.0.0.1:1", "[::1]:9", "lavra.example:443"] {
            assert!(is_ours(&names, host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.2",
            "a@localhost",
            "localhost/",
            "localhost,evil",
            "::1",
            "[::2]",
            "0.0.0.0",
            "localhost:x y",
        ] {
            assert!(!is_ours(&names, host), "{host}");
        }
    }

    #[test]
    fn an_origin_needs_a_scheme_and_our_name() {
        for (origin, ours) in [
            ("http://localhost:8080", true),
            ("https://127.0.0.1", true),
            ("null", false),
            ("", false),
            ("localhost", false),
            ("file://localhost", false),
            ("http://localhost.evil.example", false),
            ("http://evil.example/?http://localhost", false),
        ] {
            assert_eq!(is_our_origin(&[], &HeaderValue::from_static(origin)), ours, "{origin}");
        }
    }
}
