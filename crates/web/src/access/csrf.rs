//! That a request which changes something was meant: by a page of ours, not by one of another site
//! that sends the browser here with its cookies.
//!
//! The token is a hash of the cookie. Whoever can read our page has it, nobody else can make it, and
//! nothing is stored. It goes along with the checks of `Origin` and `Sec-Fetch-Site` in `guard.rs`.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName};

use super::credential::Hash;
use super::form;
use crate::body;
use crate::problem::{Code, Problem};

/// The field of a form.
pub(super) const FIELD: &str = "csrf";
const HEADER: HeaderName = HeaderName::from_static("x-csrf-token");

/// The token that goes with a cookie.
pub(super) fn token(cookie: &str) -> String {
    Hash::of(&format!("lavra csrf {cookie}")).to_hex()
}

/// The request, if it carries the token: in the header, or in the form whose body it is.
pub(super) async fn check(request: Request, token: &str) -> Result<Request, Problem> {
    if let Some(shown) = of_header(request.headers()) {
        return if is_same(shown, token) { Ok(request) } else { Err(refused()) };
    }
    if !form::is_form(request.headers()) {
        return Err(refused());
    }
    let (parts, body) = request.into_parts();
    let bytes = body::read(body, form::LIMIT).await?;
    let mut shown = form_urlencoded::parse(&bytes).filter(|(name, _)| name == FIELD);
    match (shown.next(), shown.next()) {
        (Some((_, shown)), None) if is_same(&shown, token) => {
            Ok(Request::from_parts(parts, Body::from(bytes)))
        }
        _ => Err(refused()),
    }
}

fn of_header(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER).map(|value| value.to_str().unwrap_or_default())
}

fn is_same(shown: &str, token: &str) -> bool {
    Hash::of(shown).is_same(&Hash::of(token))
}

fn refused() -> Problem {
    let detail =
        "the page's token is missing or not this visit's: load the page again, then repeat it";
    Problem::new(Code::Csrf, detail)
}
