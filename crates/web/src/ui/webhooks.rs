//! Webhooks: who is told of what, and how the last notice went.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use lavra_notify::model::{Topic, Webhook};
use lavra_notify::{Changes, Error, NewWebhook, Sent};
use serde::Deserialize;

use super::asked::Asked;
use super::confirm::ConfirmPage;
use super::once::OncePage;
use super::page::{Said, Section, Shell, back_to, show, show_with};
use super::texts::Webhooks;
use super::visitor::Visitor;
use crate::access::{self, Form};
use crate::app::Site;
use crate::problem::Problem;

const LIST: &str = "/ui/webhooks";

pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route(LIST, get(list))
        .route("/ui/webhooks/new", get(new).post(add))
        .route("/ui/webhooks/{id}/edit", get(edit).post(save))
        .route("/ui/webhooks/{id}/act", post(act))
}

#[derive(Template)]
#[template(path = "webhooks.html")]
struct ListPage {
    shell: Shell,
    t: &'static Webhooks,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    id: String,
    name: String,
    url: String,
    active: bool,
    events: Vec<(&'static str, &'static str)>,
    last_ok: Option<(String, String)>,
    last_error: Option<String>,
}

fn says(topic: Topic, t: &Webhooks) -> &'static str {
    match topic {
        Topic::MissionFailed => t.topic_mission_failed,
        Topic::PoolExhausted => t.topic_pool_exhausted,
        Topic::ExtractionComplete => t.topic_extraction_complete,
        Topic::ExtractionShort => t.topic_extraction_short,
        Topic::TaskDeadLettered => t.topic_task_dead_lettered,
    }
}

async fn list(
    State(webhooks): State<lavra_notify::Webhooks>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    let t = Webhooks::of(visitor.language);
    let shell = Shell::new(visitor, Section::Settings, t.title);
    let shell = shell.follows("missions tasks").saying(said.text());
    let row = |webhook: Webhook| Row {
        id: webhook.id.to_string(),
        events: webhook.events.iter().map(|topic| (topic.as_str(), says(*topic, t))).collect(),
        last_ok: webhook.last_ok_at.map(|at| (shell.f.iso(at), shell.f.ago(at))),
        last_error: webhook.last_error,
        name: webhook.name,
        url: webhook.url,
        active: webhook.active,
    };
    let rows = webhooks.list().await?.into_iter().map(row).collect();
    Ok(show(&ListPage { shell, t, rows }))
}

/// What was typed. It comes back where something is wrong, but for the secret.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Fields {
    name: String,
    url: String,
    secret: String,
    event: Vec<String>,
}

impl Fields {
    fn events(&self) -> Result<Option<Vec<Topic>>, Error> {
        if self.event.is_empty() {
            return Ok(None);
        }
        let read = |event: &String| event.parse().map_err(|error| invalid(&error));
        self.event.iter().map(read).collect::<Result<Vec<Topic>, Error>>().map(Some)
    }

    fn wants(&self, topic: &str) -> bool {
        self.event.iter().any(|event| event == topic)
    }
}

fn invalid(error: &impl ToString) -> Error {
    Error::Invalid(error.to_string())
}

#[derive(Template)]
#[template(path = "webhook_form.html")]
struct FormPage {
    shell: Shell,
    t: &'static Webhooks,
    heading: &'static str,
    action: String,
    is_new: bool,
    fields: Fields,
    topics: Vec<(&'static str, &'static str)>,
    wrong: Option<String>,
}

/// The form of a new one, or of the one with an id.
fn form(visitor: Visitor, of: Option<&str>, fields: Fields, wrong: Option<String>) -> Response {
    let t = Webhooks::of(visitor.language);
    let heading = if of.is_none() { t.add } else { t.edit };
    let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let page = FormPage {
        shell: Shell::new(visitor, Section::Settings, heading),
        heading,
        action: of.map_or_else(|| format!("{LIST}/new"), |id| format!("{LIST}/{id}/edit")),
        is_new: of.is_none(),
        topics: Topic::ALL.iter().map(|topic| (topic.as_str(), says(*topic, t))).collect(),
        fields,
        wrong,
        t,
    };
    show_with(status, &page)
}

/// What the person can put right in the form; anything else is somebody else's.
fn mistake(error: Error) -> Result<String, Problem> {
    match error {
        Error::Invalid(_) | Error::NameTaken(_) => Ok(error.to_string()),
        other => Err(other.into()),
    }
}

async fn new(visitor: Visitor) -> Response {
    form(visitor, None, Fields::default(), None)
}

async fn add(
    State(webhooks): State<lavra_notify::Webhooks>,
    visitor: Visitor,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    let t = Webhooks::of(visitor.language);
    let made = fields.secret.is_empty().then(access::secret);
    let secret = made.clone().unwrap_or_else(|| fields.secret.clone());
    let added = match fields.events() {
        Ok(events) => {
            let (name, url) = (fields.name.clone(), fields.url.trim().to_owned());
            webhooks.add(NewWebhook { name, url: url.into(), secret: secret.into(), events }).await
        }
        Err(error) => Err(error),
    };
    match (added, made) {
        (Err(error), _) => Ok(form(visitor, None, fields, Some(mistake(error)?))),
        (Ok(webhook), None) => Ok(back_to(LIST, &format!("{} {}", t.did_add, webhook.name))),
        (Ok(_), Some(secret)) => Ok(show(&OncePage {
            shell: Shell::new(visitor, Section::Settings, t.made_heading),
            heading: t.made_heading,
            says: t.made_says,
            label: t.secret,
            secret,
            list: LIST,
            list_name: t.title,
            done: t.done,
        })),
    }
}

async fn edit(
    State(webhooks): State<lavra_notify::Webhooks>,
    Path(id): Path<String>,
    visitor: Visitor,
) -> Result<Response, Problem> {
    let webhook = webhooks.find(&id).await?;
    let fields = Fields {
        event: webhook.events.iter().map(|topic| topic.as_str().to_owned()).collect(),
        name: webhook.name,
        ..Fields::default()
    };
    Ok(form(visitor, Some(&webhook.id.to_string()), fields, None))
}

async fn save(
    State(webhooks): State<lavra_notify::Webhooks>,
    Path(id): Path<String>,
    visitor: Visitor,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    let t = Webhooks::of(visitor.language);
    let webhook = webhooks.find(&id).await?;
    let url = fields.url.trim().to_owned();
    let saved = match fields.events() {
        Ok(events) => {
            let changes = Changes {
                name: Some(fields.name.clone()),
                url: (!url.is_empty()).then(|| url.into()),
                secret: (!fields.secret.is_empty()).then(|| fields.secret.clone().into()),
                events: Some(events.unwrap_or_else(|| Topic::ALL.to_vec())),
                active: None,
            };
            webhooks.change(&webhook, changes).await
        }
        Err(error) => Err(error),
    };
    match saved {
        Ok(webhook) => Ok(back_to(LIST, &format!("{} {}", t.did_save, webhook.name))),
        Err(error) => {
            let id = webhook.id.to_string();
            Ok(form(visitor, Some(&id), fields, Some(mistake(error)?)))
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Test,
    Activate,
    Deactivate,
    Remove,
}

#[derive(Debug, Deserialize)]
struct Wish {
    #[serde(rename = "do")]
    verb: Verb,
    confirmed: Option<String>,
}

async fn act(
    State(webhooks): State<lavra_notify::Webhooks>,
    Path(id): Path<String>,
    visitor: Visitor,
    Form(wish): Form<Wish>,
) -> Result<Response, Problem> {
    let t = Webhooks::of(visitor.language);
    let webhook = webhooks.find(&id).await?;
    let set = async |active| {
        let changes = Changes { active: Some(active), ..Changes::default() };
        webhooks.change(&webhook, changes).await
    };
    let name = &webhook.name;
    let said = match wish.verb {
        Verb::Test => {
            let Sent { ok, said } = webhooks.test(&webhook).await?;
            let how = if ok { t.did_take } else { t.did_not_take };
            format!("{name} {how}: {said}")
        }
        Verb::Activate => {
            set(true).await?;
            format!("{} {name}", t.did_activate)
        }
        Verb::Deactivate => {
            set(false).await?;
            format!("{} {name}", t.did_deactivate)
        }
        Verb::Remove if wish.confirmed.is_none() => {
            return Ok(show(&ConfirmPage {
                shell: Shell::new(visitor, Section::Settings, t.title),
                says: t.confirm_remove.into(),
                count: name.clone(),
                how_many: "",
                action: format!("{LIST}/{}/act", webhook.id),
                fields: [("do", "remove"), ("confirmed", "yes")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                back: LIST.into(),
            }));
        }
        Verb::Remove => {
            webhooks.remove(&webhook).await?;
            format!("{} {name}", t.did_remove)
        }
    };
    Ok(back_to(LIST, &said))
}
