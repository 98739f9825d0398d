//! API keys: listed, made, revoked. A key that was made stands on the answer to its form and nowhere
//! else.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Deserialize;

use super::asked::Asked;
use super::confirm::ConfirmPage;
use super::once::OncePage;
use super::page::{Said, Section, Shell, back_to, show, show_with};
use super::texts::Keys;
use super::visitor::Visitor;
use crate::access::{Access, Caller, Form, Key, KeyId, NewKey, Role, Standing, Who};
use crate::app::Site;
use crate::path::Id;
use crate::problem::{Code, Problem};

const LIST: &str = "/ui/keys";
const DAY: i64 = 24 * 3600;

pub(crate) fn routes() -> Router<Site> {
    Router::new().route(LIST, get(list).post(make)).route("/ui/keys/{id}/revoke", post(revoke))
}

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    shell: Shell,
    t: &'static Keys,
    rows: Vec<Row>,
    fields: Fields,
    wrong: Option<String>,
}

/// What was typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    name: String,
    role: String,
    /// Days; none until it is revoked.
    life: String,
}

impl Fields {
    fn read(&self, t: &Keys) -> Result<NewKey, String> {
        let name = self.name.trim().to_owned();
        if name.is_empty() || name.chars().count() > 100 || name.contains(char::is_control) {
            return Err(t.wrong_name.into());
        }
        let days: Option<i64> = self.life.parse().ok();
        Ok(NewKey {
            name,
            role: self.role.parse().map_err(|_| t.wrong_role)?,
            expires_in_seconds: days.map(|days| days.clamp(1, 3650) * DAY),
        })
    }

    fn lives(&self, t: &'static Keys) -> [(&'static str, &'static str, bool); 4] {
        [("", t.life_none), ("30", t.life_30), ("90", t.life_90), ("365", t.life_365)]
            .map(|(days, name)| (days, name, self.life == days))
    }

    fn roles(&self, t: &'static Keys) -> [(&'static str, &'static str, bool); 4] {
        let chosen = if self.role.is_empty() { Role::Viewer.as_str() } else { &self.role };
        Role::ALL.map(|role| {
            let says = match role {
                Role::Viewer => t.role_viewer,
                Role::Operator => t.role_operator,
                Role::Admin => t.role_admin,
                Role::Writer => t.role_writer,
            };
            (role.as_str(), says, role.as_str() == chosen)
        })
    }
}

#[derive(Debug)]
struct Row {
    id: String,
    name: String,
    role: &'static str,
    is_valid: bool,
    is_yours: bool,
    slug: &'static str,
    standing: &'static str,
    made: (String, String),
    used: Option<(String, String)>,
    expires: Option<(String, String)>,
    confirm: String,
}

/// The only key that may administer and is valid.
fn last_admin(keys: &[Key], now: Timestamp) -> Option<&KeyId> {
    let is_one = |key: &&Key| key.role == Role::Admin && key.standing(now) == Standing::Valid;
    let mut found = keys.iter().filter(is_one);
    found.next().filter(|_| found.next().is_none()).map(|key| &key.id)
}

/// What revoking one would mean.
fn warning(id: &KeyId, last: Option<&KeyId>, t: &Keys) -> String {
    if last == Some(id) {
        return format!("{} {}", t.confirm_revoke, t.confirm_revoke_last);
    }
    t.confirm_revoke.to_owned()
}

async fn page(
    access: &Access,
    caller: &Caller,
    shell: Shell,
    t: &'static Keys,
    fields: Fields,
    wrong: Option<String>,
) -> Result<Response, Problem> {
    let (keys, now) = (access.keys().await?, access.now());
    let last = last_admin(&keys, now);
    let yours = match caller.who() {
        Who::Session { id, .. } | Who::Key { id, .. } => Some(id),
        Who::Process | Who::Holder | Who::Visitor => None,
    };
    let row = |key: &Key| {
        let time = |at: Timestamp| (shell.f.iso(at), shell.f.ago(at));
        let (slug, standing) = match key.standing(now) {
            Standing::Valid => ("ok", t.valid),
            Standing::Expired => ("inactive", t.expired),
            Standing::Revoked => ("cancelled", t.revoked),
        };
        Row {
            id: key.id.0.clone(),
            name: key.name.clone(),
            role: key.role.as_str(),
            is_valid: key.standing(now) == Standing::Valid,
            is_yours: yours == Some(&key.id),
            slug,
            standing,
            made: time(key.created_at),
            used: key.last_used_at.map(time),
            expires: key.expires_at.map(|at| (shell.f.iso(at), shell.f.time(at))),
            confirm: format!("{}: {}", key.name, warning(&key.id, last, t)),
        }
    };
    let rows = keys.iter().map(row).collect();
    let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(show_with(status, &KeysPage { shell, t, rows, fields, wrong }))
}

async fn list(
    State(access): State<Arc<Access>>,
    caller: Caller,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    let t = Keys::of(visitor.language);
    let shell = Shell::new(visitor, Section::Settings, t.title).saying(said.text());
    page(&access, &caller, shell, t, Fields::default(), None).await
}

async fn make(
    State(access): State<Arc<Access>>,
    caller: Caller,
    visitor: Visitor,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    let t = Keys::of(visitor.language);
    let shell = Shell::new(visitor, Section::Settings, t.title);
    let made = match fields.read(t) {
        Err(wrong) => Err(wrong),
        Ok(order) => match access.make_key(&order, &caller).await {
            Ok((_, shown)) => Ok(shown),
            Err(problem) if problem.code() == Code::InvalidRequest => {
                Err(problem.detail().to_owned())
            }
            Err(problem) => return Err(problem),
        },
    };
    match made {
        Err(wrong) => page(&access, &caller, shell, t, fields, Some(wrong)).await,
        Ok(secret) => Ok(show(&OncePage {
            shell,
            heading: t.made_heading,
            says: t.made_says,
            label: t.one,
            secret,
            list: LIST,
            list_name: t.title,
            done: t.done,
        })),
    }
}

#[derive(Debug, Deserialize)]
struct Wish {
    confirmed: Option<String>,
}

async fn revoke(
    State(access): State<Arc<Access>>,
    Id(id): Id<String>,
    caller: Caller,
    visitor: Visitor,
    Form(wish): Form<Wish>,
) -> Result<Response, Problem> {
    let t = Keys::of(visitor.language);
    let id = KeyId(id);
    if wish.confirmed.is_some() {
        let key = access.revoke_key(id, &caller).await?;
        return Ok(back_to(LIST, &format!("{} {}", t.did_revoke, key.name)));
    }
    let keys = access.keys().await?;
    let Some(key) = keys.iter().find(|key| key.id == id) else {
        return Err(Problem::new(Code::KeyNotFound, format!("there is no key {id}")));
    };
    let last = last_admin(&keys, access.now());
    Ok(show(&ConfirmPage {
        shell: Shell::new(visitor, Section::Settings, t.title),
        says: warning(&id, last, t),
        count: key.name.clone(),
        how_many: "",
        action: format!("{LIST}/{id}/revoke"),
        fields: vec![("confirmed".into(), "yes".into())],
        back: LIST.into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_admin_is_the_only_one_that_is_valid() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let key = |id: &str, role, revoked_at| Key {
            id: KeyId(id.into()),
            name: id.into(),
            role,
            created_at: now,
            last_used_at: None,
            expires_at: None,
            revoked_at,
        };
        let (a, b) = (key("a", Role::Admin, None), key("b", Role::Operator, None));
        let gone = key("c", Role::Admin, Some(now));
        assert_eq!(last_admin(&[a.clone(), b.clone(), gone], now), Some(&KeyId("a".into())));
        assert_eq!(last_admin(&[a.clone(), key("d", Role::Admin, None)], now), None);
        assert_eq!(last_admin(&[b], now), None);
    }
}
