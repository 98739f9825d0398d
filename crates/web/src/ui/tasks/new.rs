//! A new task of any type that is known.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lavra_tasks::{Error, NewTask};
use serde::Deserialize;

use crate::access::Form;
use crate::app::App;
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::page::{Section, Shell, back_to, show_with};
use crate::ui::texts::Tasks as Words;
use crate::ui::visitor::Visitor;

/// What was typed, so that a mistake costs nobody the rest of it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Order {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    payload: String,
    #[serde(default)]
    priority: String,
    #[serde(default)]
    max_retries: String,
    #[serde(default)]
    delay: String,
    idempotent: Option<String>,
}

impl Order {
    fn read(&self, t: &Words) -> Result<NewTask, String> {
        let payload = match self.payload.trim() {
            "" => serde_json::Value::Null,
            text => serde_json::from_str(text)
                .map_err(|error| format!("{}: {error}", t.new_not_json))?,
        };
        Ok(NewTask {
            kind: self.kind.trim().to_owned(),
            payload,
            priority: number(&self.priority, t.priority, t)?,
            max_retries: number(&self.max_retries, t.new_max_retries, t)?,
            delay_seconds: number(&self.delay, t.new_delay, t)?,
            idempotent: self.idempotent.is_some(),
            ..NewTask::default()
        })
    }

    fn has_more(&self) -> bool {
        let texts = [&self.priority, &self.max_retries, &self.delay];
        self.idempotent.is_some() || texts.iter().any(|text| !text.is_empty())
    }
}

/// A number, or nothing where nothing was typed.
fn number<N: std::str::FromStr>(text: &str, name: &str, t: &Words) -> Result<Option<N>, String> {
    match text.trim() {
        "" => Ok(None),
        text => {
            let wrong = |_| format!("{name}: {text:?} {}", t.new_not_number);
            text.parse().map(Some).map_err(wrong)
        }
    }
}

#[derive(Template)]
#[template(path = "new_task.html")]
struct NewPage {
    shell: Shell,
    t: &'static Words,
    /// Each type with what it does, where that is known.
    types: Vec<(String, String)>,
    order: Order,
    wrong: Option<String>,
}

async fn form(
    app: &App,
    visitor: Visitor,
    order: Order,
    wrong: Option<String>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let shell = Shell::new(visitor, Section::Tasks, t.new_task);
    let mut types = app.tasks.store().declared().await?;
    types.sort();
    let described = |kind: String| {
        let says = app.types.get(&kind).cloned().unwrap_or_default();
        (kind, says)
    };
    let types = types.into_iter().map(described).collect();
    let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(show_with(status, &NewPage { shell, t, types, order, wrong }))
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(order): Asked<Order>,
) -> Result<Response, Problem> {
    form(&app, visitor, order, None).await
}

pub(super) async fn make(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Form(order): Form<Order>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let task = match order.read(t) {
        Ok(task) => task,
        Err(wrong) => return form(&app, visitor, order, Some(wrong)).await,
    };
    match app.tasks.create(task).await {
        Ok(created) => {
            let said = if created.new { t.made } else { t.made_before };
            Ok(back_to(&format!("/ui/tasks/{}", created.id), said))
        }
        Err(error @ (Error::Invalid(_) | Error::UnknownType { .. })) => {
            form(&app, visitor, order, Some(error.to_string())).await
        }
        Err(error) => Err(error.into()),
    }
}
