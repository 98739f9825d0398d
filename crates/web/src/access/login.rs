//! A key for a cookie, and back.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Deserialize;

use super::cookie::Kind;
use super::credential::Hash;
use super::gate::{Peer, VisitToken};
use super::model::LONGEST;
use super::verify::Access;
use super::{Form, Role, door};
use crate::app::Site;
use crate::problem::{Code, Problem};
use crate::query::Params;
use crate::ui::{Visitor, login_page};

pub(crate) fn pages() -> Router<Site> {
    Router::new().route("/ui/login", get(show).post(enter)).route("/ui/logout", post(leave))
}

#[derive(Debug, Deserialize)]
struct Wanted {
    next: Option<String>,
}

/// Who has a session goes on; a cookie that is worth nothing is taken away.
async fn show(
    State(access): State<Arc<Access>>,
    Extension(VisitToken(csrf)): Extension<VisitToken>,
    Params(wanted): Params<Wanted>,
    visitor: Visitor,
    headers: HeaderMap,
) -> Response {
    let next = door::local(wanted.next.as_deref());
    let mut clear = None;
    if let Some(cookie) = access.cookies.read(Kind::Session, &headers) {
        match access.session(cookie).await {
            Ok(_) => return Redirect::to(next).into_response(),
            Err(problem) if problem.code() == Code::Unauthenticated => {
                clear = Some(access.cookies.clear(Kind::Session));
            }
            Err(_) => {}
        }
    }
    with_cookie(login_page(visitor, csrf, next, None), clear)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entrance {
    key: String,
    next: Option<String>,
}

async fn enter(
    State(access): State<Arc<Access>>,
    Extension(VisitToken(csrf)): Extension<VisitToken>,
    Peer(from): Peer,
    visitor: Visitor,
    Form(entrance): Form<Entrance>,
) -> Result<Response, Problem> {
    let next = door::local(entrance.next.as_deref());
    let again = |problem: &Problem| {
        let mut answer = login_page(visitor, csrf, next, Some(problem));
        problem.add_headers(&mut answer);
        answer
    };
    let key = match access.key(from, entrance.key.trim()).await {
        Ok(key) => key,
        Err(problem) if problem.status().is_server_error() => return Err(problem),
        Err(problem) => return Ok(again(&problem)),
    };
    if !key.role.includes(Role::Viewer) {
        let detail = format!("the key {} is for programs: its role is {}", key.name, key.role);
        return Ok(again(&Problem::new(Code::RoleNeeded, detail)));
    }
    let cookie = access.open_session(&key).await?;
    tracing::info!(key = %key.id, name = key.name, %from, "logged in");
    let cookie = access.cookies.set(Kind::Session, &cookie, Some(LONGEST.as_secs()));
    Ok(with_cookie(Redirect::to(next).into_response(), Some(cookie)))
}

async fn leave(State(access): State<Arc<Access>>, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some(cookie) = access.cookies.read(Kind::Session, &headers) {
        access.store.close_session(Hash::of(cookie)).await?;
    }
    let cookie = access.cookies.clear(Kind::Session);
    Ok(with_cookie(Redirect::to("/ui/login").into_response(), Some(cookie)))
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}
