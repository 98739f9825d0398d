//! Theme and language, kept in cookies that nobody else needs to know.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use serde::Deserialize;

use super::page::local;
use super::texts::Language;
use super::visitor::Theme;
use crate::access::Form;
use crate::app::Site;

pub(crate) fn routes() -> Router<Site> {
    Router::new().route("/ui/preferences", post(set))
}

#[derive(Debug, Deserialize)]
struct Wish {
    theme: Option<String>,
    language: Option<String>,
    back: Option<String>,
}

async fn set(Form(wish): Form<Wish>) -> Response {
    let back = wish.back.as_deref().and_then(local).unwrap_or("/ui");
    let mut response = Redirect::to(back).into_response();
    let theme = wish.theme.as_deref().and_then(Theme::parse).map(Theme::as_str);
    let language = wish.language.as_deref().and_then(Language::parse).map(Language::tag);
    for (name, value) in [("lavra_theme", theme), ("lavra_language", language)] {
        let Some(value) = value else { continue };
        let cookie = format!("{name}={value}; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    response
}
