//! What a person does with a schedule.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use lavra_tasks::{Error, Tasks};
use serde::Deserialize;
use serde_json::json;

use super::HERE;
use super::list::{Order, form};
use crate::access::Form;
use crate::app::App;
use crate::problem::Problem;
use crate::ui::confirm::ConfirmPage;
use crate::ui::page::{Section, Shell, back_to, show};
use crate::ui::texts::{Schedules as Words, Tasks as TaskWords};
use crate::ui::visitor::Visitor;

pub(super) async fn save(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Form(order): Form<Order>,
) -> Result<Response, Problem> {
    let payload = match order.payload.trim() {
        "" => Ok(json!({})),
        text => serde_json::from_str(text),
    };
    let payload = match payload {
        Ok(payload) => payload,
        Err(error) => {
            let wrong = format!("{}: {error}", TaskWords::of(visitor.language).new_not_json);
            return form(&app, visitor, order, Some(wrong)).await;
        }
    };
    let (name, kind, cron) = (order.name.trim(), order.kind.trim(), order.cron.trim());
    let is_enabled = order.enabled.is_some();
    match app.tasks.schedule_as(name, kind, cron, payload, is_enabled).await {
        Ok(_) => Ok(back_to(HERE, Words::of(visitor.language).done_saved)),
        Err(error @ (Error::Invalid(_) | Error::UnknownType { .. })) => {
            form(&app, visitor, order, Some(error.to_string())).await
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Enable,
    Disable,
    Run,
    Remove,
}

#[derive(Debug, Deserialize)]
pub(super) struct Wish {
    #[serde(rename = "do")]
    verb: Verb,
    name: String,
    confirmed: Option<String>,
}

pub(super) async fn act(
    State(tasks): State<Tasks>,
    visitor: Visitor,
    Form(wish): Form<Wish>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let schedule = tasks.schedule_of(&wish.name).await?;
    match wish.verb {
        Verb::Enable => {
            tasks.enable_schedule(&schedule.name, true).await?;
            Ok(back_to(HERE, t.done_enabled))
        }
        Verb::Disable => {
            tasks.enable_schedule(&schedule.name, false).await?;
            Ok(back_to(HERE, t.done_disabled))
        }
        Verb::Run => {
            let created = tasks.run_schedule(&schedule.name).await?;
            Ok(back_to(&format!("/ui/tasks/{}", created.id), t.done_run))
        }
        Verb::Remove if wish.confirmed.is_some() => {
            tasks.store().remove_schedule(schedule.name).await?;
            Ok(back_to(HERE, t.done_removed))
        }
        Verb::Remove => {
            let fields = [("do", "remove"), ("name", schedule.name.as_str()), ("confirmed", "yes")];
            let page = ConfirmPage {
                shell: Shell::new(visitor, Section::Tasks, t.schedules),
                says: t.confirm_remove.into(),
                fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
                count: schedule.name,
                how_many: "",
                action: "/ui/schedules/act".into(),
                back: HERE.into(),
            };
            Ok(show(&page))
        }
    }
}
