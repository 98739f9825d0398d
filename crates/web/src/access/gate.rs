//! The gate: who calls, and whether they may, before any handler runs.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use super::caller::{Caller, Who};
use super::cookie::Kind;
use super::credential::{PREFIX, secret};
use super::roles::{Need, Rule, rule};
use super::verify::Access;
use super::{Role, csrf, door};
use crate::guard;
use crate::problem::{Code, Problem};
use crate::serve::Served;
use crate::verbs::documented;

/// A stream ends after so long, so that who opened it is asked again; clients go on from where it was.
const LONGEST_STREAM: Duration = Duration::from_secs(300);

/// Anyone may ask; who is known is told more.
const READINESS: &str = "/readyz";
/// How long a caller is looked for who need not be known.
const SOON: Duration = Duration::from_secs(1);

/// The token of this visit's forms, also where nobody has logged in.
#[derive(Clone, Debug)]
pub(super) struct VisitToken(pub(super) String);

pub(crate) async fn check(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let matched = request.extensions().get::<MatchedPath>();
    let path = matched.map(|path| documented(path.as_str()).into_owned());
    let rule = rule(request.method(), path.as_deref());
    let (parts, body) = request.into_parts();
    let known = match rule {
        Rule::Need(Need::Open) if path.as_deref() == Some(READINESS) => {
            Ok(known_if_soon(&access, &parts).await)
        }
        // Answered even while the database does not.
        Rule::Need(Need::Open) => Ok(without_credentials(&access, &parts)),
        _ => known(&access, &parts).await.and_then(|known| allowed(&rule, known)),
    };
    let known = match known {
        Ok(known) => known,
        Err(problem) => return door::refuse(problem, &parts),
    };
    if door::needs_own_start(&parts, known.as_ref()) {
        return door::start_again(&parts.uri);
    }
    let mut request = Request::from_parts(parts, body);
    let entry = Entry::new(&access, known, &request);
    if entry.needs_token(&request) {
        request = match csrf::check(request, &entry.token).await {
            Ok(request) => request,
            Err(problem) => return problem.into_response(),
        };
    }
    let is_watched = entry.known.as_ref().is_some_and(Known::has_key);
    entry.leave_in(&mut request);
    let (new_visit, caller) = (entry.new_visit.clone(), entry.caller());
    let mut response = next.run(request).await;
    // For what is made of the answer further out: a page that explains it knows whom it speaks to.
    if let Some(caller) = caller {
        response.extensions_mut().insert(caller);
    }
    if let Some(cookie) = new_visit {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    if is_watched && is_stream(&response) { shortened(response) } else { response }
}

/// A caller, with the cookie that made them known.
#[derive(Debug)]
pub(super) struct Known {
    who: Who,
    role: Role,
    session: Option<String>,
}

impl Known {
    fn admin(who: Who) -> Self {
        Self { who, role: Role::Admin, session: None }
    }

    /// Whether what they show can be taken from them.
    fn has_key(&self) -> bool {
        matches!(self.who, Who::Key { .. } | Who::Session { .. })
    }

    pub(super) fn is_visitor(&self) -> bool {
        self.who == Who::Visitor
    }
}

/// Who calls. Nobody is `None`; what is shown and wrong is an error, from wherever it comes.
async fn known(access: &Access, parts: &Parts) -> Result<Option<Known>, Problem> {
    if parts.extensions.get::<Served>().is_none() {
        return Ok(Some(Known::admin(Who::Process)));
    }
    let (headers, from) = (&parts.headers, peer(parts));
    if let Some(shown) = headers.get(header::AUTHORIZATION) {
        let shown = bearer(shown).ok_or_else(|| {
            Problem::new(Code::Unauthenticated, "Authorization must be Bearer and a key")
        })?;
        if !shown.starts_with(PREFIX) {
            access.holder(from, shown).await?;
            return Ok(Some(Known::admin(Who::Holder)));
        }
        return by_key(access, from, shown).await;
    }
    if let Some(shown) = headers.get("x-api-key") {
        return by_key(access, from, shown.to_str().unwrap_or_default()).await;
    }
    if let Some(cookie) = access.cookies.read(Kind::Session, headers) {
        let key = access.session(cookie).await?;
        let who = Who::Session { id: key.id, name: key.name };
        return Ok(Some(Known { who, role: key.role, session: Some(cookie.to_owned()) }));
    }
    Ok(without_credentials(access, parts))
}

/// Who calls where anyone may: answered even while the database does not, and whatever is shown.
async fn known_if_soon(access: &Access, parts: &Parts) -> Option<Known> {
    match tokio::time::timeout(SOON, known(access, parts)).await {
        Ok(Ok(known)) => known,
        Ok(Err(_)) | Err(_) => without_credentials(access, parts),
    }
}

async fn by_key(access: &Access, from: IpAddr, text: &str) -> Result<Option<Known>, Problem> {
    let key = access.key(from, text).await?;
    let who = Who::Key { id: key.id, name: key.name };
    Ok(Some(Known { who, role: key.role, session: None }))
}

/// Who is known by where they are.
fn without_credentials(access: &Access, parts: &Parts) -> Option<Known> {
    if parts.extensions.get::<Served>().is_none() {
        return Some(Known::admin(Who::Process));
    }
    let is_visitor = !access.require_key
        && peer(parts).to_canonical().is_loopback()
        && guard::is_addressed_as_loopback(parts)
        && !is_forwarded(&parts.headers);
    is_visitor.then(|| Known::admin(Who::Visitor))
}

/// Whether a proxy on this machine speaks for someone elsewhere.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str();
        name.starts_with("x-forwarded-") || ["forwarded", "via", "x-real-ip"].contains(&name)
    })
}

/// An address that is not known is nobody's, and not this machine's.
fn peer(parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0.ip())
}

/// The address that a request comes from.
#[derive(Debug)]
pub(super) struct Peer(pub(super) IpAddr);

impl<S: Send + Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(peer(parts)))
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, text) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

fn allowed(rule: &Rule, known: Option<Known>) -> Result<Option<Known>, Problem> {
    let Some(known) = known else {
        let detail = "a key is needed: Authorization: Bearer lavra_…";
        return Err(Problem::new(Code::Unauthenticated, detail));
    };
    match rule {
        Rule::Need(Need::Open | Need::Known) => Ok(Some(known)),
        Rule::Need(Need::Least(least)) if known.role.includes(*least) => Ok(Some(known)),
        Rule::Need(Need::Least(least)) => {
            let detail = format!("it needs the role {least}, and the key has {}", known.role);
            let problem = Problem::new(Code::RoleNeeded, detail);
            Err(problem.with("needed", least.as_str()).with("role", known.role.as_str()))
        }
        Rule::OnlyBy(methods) => {
            let detail = format!("the path has no such method, only {methods}");
            Err(Problem::new(Code::MethodNotAllowed, detail).allowing(methods))
        }
        Rule::Closed => {
            let detail = "the route has no line in the table of roles, so nobody may call it";
            Err(Problem::new(Code::InternalError, detail))
        }
    }
}

/// A request that may go on, with the token that its cookie stands for.
struct Entry {
    known: Option<Known>,
    token: String,
    new_visit: Option<HeaderValue>,
}

impl Entry {
    fn new(access: &Access, known: Option<Known>, request: &Request) -> Self {
        let session = known.as_ref().and_then(|known| known.session.as_deref());
        if let Some(session) = session {
            return Self { token: csrf::token(session), known, new_visit: None };
        }
        let is_someone_else = known.as_ref().is_some_and(|known| !known.is_visitor());
        if is_someone_else || !door::is_page(request.uri().path()) {
            return Self { known, token: String::new(), new_visit: None };
        }
        match access.cookies.read(Kind::Visit, request.headers()) {
            Some(visit) => Self { known, token: csrf::token(visit), new_visit: None },
            None => {
                let visit = secret();
                let cookie = access.cookies.set(Kind::Visit, &visit, None);
                Self { known, token: csrf::token(&visit), new_visit: Some(cookie) }
            }
        }
    }

    /// Keys in headers are sent on purpose; cookies, and a place on this machine, are not.
    fn needs_token(&self, request: &Request) -> bool {
        !guard::reads(request.method()) && !self.token.is_empty()
    }

    fn leave_in(&self, request: &mut Request) {
        let extensions = request.extensions_mut();
        extensions.insert(VisitToken(self.token.clone()));
        if let Some(caller) = self.caller() {
            extensions.insert(caller);
        }
    }

    fn caller(&self) -> Option<Caller> {
        let Known { who, role, .. } = self.known.as_ref()?;
        Some(Caller::new(who.clone(), *role, self.token.clone()))
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn shortened(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let end = Box::pin(tokio::time::sleep(LONGEST_STREAM));
    let body = Body::from_stream(body.into_data_stream().take_until(end));
    Response::from_parts(parts, body)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::stream;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_in_time_to_ask_again_who_listens() {
        let endless = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(15)).await;
            Some((Ok::<_, Infallible>("event"), ()))
        });
        let response = shortened(Response::new(Body::from_stream(endless)));
        let begun = Instant::now();
        let heard = response.into_body().into_data_stream().count().await;
        assert!((19..=20).contains(&heard), "{heard}");
        assert_eq!(begun.elapsed(), LONGEST_STREAM);
    }
}
