//! The form in which a worker, a proxy or a writer is added or changed. What was typed stays in it
//! when something is wrong, but for secrets: those are written and never shown.

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use lavra_fleet::service::{Changes, ProxyOrder, Service};
use lavra_fleet::store::Thing;
use lavra_fleet::{Error, Fleet};
use serde::Deserialize;

use super::kind::Kind;
use crate::access::Form;
use crate::problem::Problem;
use crate::ui::page::{Shell, back_to, show_with};
use crate::ui::texts::{Common, Things};
use crate::ui::visitor::Visitor;

/// All that a form of any kind has.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fields {
    name: String,
    url: String,
    storage_domain: String,
    host: String,
    port: String,
    username: String,
    api_key: String,
    password: String,
}

#[derive(Template)]
#[template(path = "thing_form.html")]
struct FormPage {
    shell: Shell,
    t: &'static Things,
    heading: String,
    list: &'static str,
    list_name: &'static str,
    action: String,
    submit: &'static str,
    inputs: Vec<Input>,
    wrong: Option<String>,
}

#[derive(Debug)]
struct Input {
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    value: String,
    hint: &'static str,
    is_required: bool,
    longest: u16,
}

fn inputs(kind: Kind, fields: &Fields, is_new: bool, t: &Things, c: &Common) -> Vec<Input> {
    let text = |name, label, value: &str, hint, is_required, longest| {
        let value = value.to_owned();
        Input { name, label, kind: "text", value, hint, is_required, longest }
    };
    // A secret's value never comes back.
    let secret = |name, label, is_required| Input {
        name,
        label,
        kind: "password",
        value: String::new(),
        hint: if is_new { t.field_key_hint } else { t.field_keep_hint },
        is_required,
        longest: 200,
    };
    let url = || text("url", t.field_url, &fields.url, t.field_url_hint, true, 500);
    match kind {
        Kind::Worker => vec![
            text("name", c.name, &fields.name, "", true, 100),
            url(),
            text(
                "storage_domain",
                t.storage_domain,
                &fields.storage_domain,
                t.field_domain_hint,
                false,
                255,
            ),
            secret("api_key", t.field_key, is_new),
        ],
        Kind::Proxy => {
            let port = text("port", t.field_port, &fields.port, t.field_port_hint, false, 5);
            vec![
                text("name", c.name, &fields.name, "", true, 200),
                text("host", t.field_host, &fields.host, t.field_host_hint, true, 200),
                Input { kind: "number", ..port },
                text("username", t.user, &fields.username, "", false, 100),
                secret("password", t.field_password, false),
            ]
        }
        Kind::Writer => vec![
            text("name", c.name, &fields.name, "", true, 100),
            url(),
            secret("api_key", t.field_key, is_new),
        ],
    }
}

/// The form of a new one, or of the one with an id.
fn page(
    visitor: Visitor,
    kind: Kind,
    of: Option<&str>,
    fields: &Fields,
    wrong: Option<String>,
) -> Response {
    let (t, c) = (Things::of(visitor.language), Common::of(visitor.language));
    let heading = if of.is_none() { kind.add(t) } else { kind.edit(t) };
    let shell = Shell::new(visitor, kind.section(), heading);
    let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let path = kind.path();
    let page = FormPage {
        heading: heading.to_owned(),
        list: path,
        list_name: match kind {
            Kind::Worker => c.nav_workers,
            Kind::Proxy => c.nav_proxies,
            Kind::Writer => c.nav_writers,
        },
        action: of.map_or_else(|| format!("{path}/new"), |id| format!("{path}/{id}/edit")),
        submit: if of.is_none() { c.add } else { c.save },
        inputs: inputs(kind, fields, of.is_none(), t, c),
        wrong,
        shell,
        t,
    };
    show_with(status, &page)
}

fn filled(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

impl Fields {
    fn port(&self, t: &Things) -> Result<Option<i32>, Error> {
        let read = |text: String| text.parse().map_err(|_| Error::Invalid(t.wrong_port.into()));
        filled(&self.port).map(read).transpose()
    }

    fn service(&self) -> Service {
        Service {
            name: self.name.clone(),
            url: self.url.clone(),
            api_key: self.api_key.clone().into(),
            storage_domain: filled(&self.storage_domain),
        }
    }

    /// What differs from how it is.
    fn changes(&self, before: &Self, t: &Things) -> Result<Changes, Error> {
        let changed = |now: &str, before: &str| (now != before).then(|| now.to_owned());
        let optional = |now: &str, before: &str, label: &str| match filled(now) {
            None if before.is_empty() => Ok(None),
            None => Err(Error::Invalid(format!("{label} {}", t.wrong_empty))),
            Some(now) => Ok(changed(&now, before)),
        };
        optional(&self.port, &before.port, t.field_port)?;
        Ok(Changes {
            name: changed(&self.name, &before.name),
            url: changed(&self.url, &before.url),
            storage_domain: optional(
                &self.storage_domain,
                &before.storage_domain,
                t.storage_domain,
            )?,
            host: changed(&self.host, &before.host),
            port: self.port(t)?.filter(|_| self.port != before.port),
            username: optional(&self.username, &before.username, t.user)?,
            api_key: (!self.api_key.is_empty()).then(|| self.api_key.clone().into()),
            password: (!self.password.is_empty()).then(|| self.password.clone().into()),
            active: None,
        })
    }
}

/// How a thing is now, without its secret.
async fn current(fleet: &Fleet, thing: &Thing) -> Result<Fields, Error> {
    let store = &fleet.store;
    let not_found = || Error::NotFound { what: thing.kind(), id: thing.id().to_owned() };
    match thing {
        Thing::Worker(id) => {
            let worker = fleet.worker(id).await?;
            Ok(Fields {
                name: worker.name,
                url: worker.url,
                storage_domain: worker.storage_domain.unwrap_or_default(),
                ..Fields::default()
            })
        }
        Thing::Proxy(id) => {
            let found = store.proxies().await?.into_iter().find(|proxy| proxy.id == *id);
            let proxy = found.ok_or_else(not_found)?;
            Ok(Fields {
                name: proxy.name.unwrap_or_default(),
                host: proxy.host,
                port: proxy.port.map(|port| port.to_string()).unwrap_or_default(),
                username: proxy.username.unwrap_or_default(),
                ..Fields::default()
            })
        }
        Thing::Writer(id) => {
            let found = store.writers().await?.into_iter().find(|writer| writer.id == *id);
            let writer = found.ok_or_else(not_found)?;
            Ok(Fields { name: writer.name, url: writer.url, ..Fields::default() })
        }
    }
}

/// What the person can put right in the form; anything else is somebody else's.
fn mistake(error: Error) -> Result<String, Problem> {
    match error {
        Error::Invalid(_) | Error::NameTaken { .. } | Error::Conflict(_) => Ok(error.to_string()),
        other => Err(other.into()),
    }
}

pub(super) async fn new(Extension(kind): Extension<Kind>, visitor: Visitor) -> Response {
    page(visitor, kind, None, &Fields::default(), None)
}

pub(super) async fn add(
    State(fleet): State<Fleet>,
    Extension(kind): Extension<Kind>,
    visitor: Visitor,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    let t = Things::of(visitor.language);
    let added = match kind {
        Kind::Worker => fleet.add_worker(fields.service()).await.map(|_| ()),
        Kind::Proxy => add_proxy(&fleet, &fields, t).await,
        Kind::Writer => fleet.add_writer(fields.service()).await.map(|_| ()),
    };
    match added {
        Ok(()) => Ok(back_to(kind.path(), &format!("{} {}", t.did_add, fields.name.trim()))),
        Err(error) => Ok(page(visitor, kind, None, &fields, Some(mistake(error)?))),
    }
}

async fn add_proxy(fleet: &Fleet, fields: &Fields, t: &Things) -> Result<(), Error> {
    let password = (!fields.password.is_empty()).then(|| fields.password.clone().into());
    let order = ProxyOrder {
        name: fields.name.clone(),
        host: fields.host.clone(),
        port: fields.port(t)?,
        username: filled(&fields.username),
        password,
    };
    fleet.add_proxy(order).await.map(|_| ())
}

pub(super) async fn edit(
    State(fleet): State<Fleet>,
    Extension(kind): Extension<Kind>,
    Path(id): Path<String>,
    visitor: Visitor,
) -> Result<Response, Problem> {
    let (thing, _) = kind.find(&fleet, &id).await?;
    let fields = current(&fleet, &thing).await?;
    Ok(page(visitor, kind, Some(thing.id()), &fields, None))
}

pub(super) async fn save(
    State(fleet): State<Fleet>,
    Extension(kind): Extension<Kind>,
    Path(id): Path<String>,
    visitor: Visitor,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    let t = Things::of(visitor.language);
    let (thing, _) = kind.find(&fleet, &id).await?;
    let before = current(&fleet, &thing).await?;
    let saved = match fields.changes(&before, t) {
        Ok(changes) => fleet.change(&thing, changes).await,
        Err(error) => Err(error),
    };
    match saved {
        Ok(()) => Ok(back_to(kind.path(), &format!("{} {}", t.did_save, fields.name.trim()))),
        Err(error) => Ok(page(visitor, kind, Some(thing.id()), &fields, Some(mistake(error)?))),
    }
}
