//! What a person does to a task: another go, or its end.

use axum::extract::State;
use axum::response::Response;
use lavra_tasks::model::TaskId;
use lavra_tasks::{Error, Tasks};
use serde::Deserialize;

use crate::access::Form;
use crate::path::Id;
use crate::problem::Problem;
use crate::ui::confirm::ConfirmPage;
use crate::ui::page::{Section, Shell, back_to, show};
use crate::ui::texts::Tasks as Words;
use crate::ui::visitor::Visitor;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Retry,
    Cancel,
}

#[derive(Debug, Deserialize)]
pub(super) struct Wish {
    #[serde(rename = "do")]
    verb: Verb,
    confirmed: Option<String>,
}

pub(super) async fn act(
    State(tasks): State<Tasks>,
    Id(id): Id<TaskId>,
    visitor: Visitor,
    Form(wish): Form<Wish>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let back = format!("/ui/tasks/{id}");
    let done = match wish.verb {
        Verb::Retry => tasks.retry(id, None).await.map(|_| t.done_retried),
        Verb::Cancel if wish.confirmed.is_some() => {
            tasks.cancel(id, None).await.map(|_| t.done_cancelled)
        }
        Verb::Cancel => {
            let task = tasks.task(id).await?;
            let page = ConfirmPage {
                shell: Shell::new(visitor, Section::Tasks, t.task),
                says: t.confirm_cancel.into(),
                count: task.kind,
                how_many: "",
                action: format!("{back}/act"),
                fields: [("do", "cancel"), ("confirmed", "yes")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                back,
            };
            return Ok(show(&page));
        }
    };
    match done {
        Ok(said) => Ok(back_to(&back, said)),
        // It has moved on since the page was made, and the page says where to.
        Err(Error::Illegal(illegal)) => Ok(back_to(&back, &illegal.to_string())),
        Err(error) => Err(error.into()),
    }
}
