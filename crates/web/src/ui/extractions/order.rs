//! What can be done with a source that is there already: take up what is missing, fetch a month
//! again, audit, export. Each makes a task.
//!
//! It goes where the last run of the source went, and a source that somebody has defined is what it
//! was then.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_extract::export::Format;
use lavra_extract::forecast::forecast;
use lavra_extract::source::Source;
use lavra_extract::task::{
    AuditOrder, ExportOrder, Exports, Extract, ExtractAudit, ExtractExport, Order, scope_of,
};
use lavra_extract::{Error, Month};
use lavra_tasks::model::TaskId;
use lavra_tasks::{Handler, NewTask};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::extracted;
use super::running::last_order;
use crate::access::Form;
use crate::app::App;
use crate::path::Id;
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::confirm::ConfirmPage;
use crate::ui::page::{Said, Section, Shell, back_to, local, show};
use crate::ui::texts::Extractions as Words;
use crate::ui::visitor::Visitor;

#[derive(Template)]
#[template(path = "order.html")]
struct OrderPage {
    shell: Shell,
    t: &'static Words,
    name: String,
}

/// The forms of an audit and an export. They are no part of a page that is made anew all the time.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Id(name): Id<String>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    extracted(&app, &name).await?;
    let t = Words::of(visitor.language);
    let shell = Shell::new(visitor, Section::Extractions, format!("{}: {name}", t.more));
    Ok(show(&OrderPage { shell: shell.saying(said.text()), t, name }))
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Retry,
    Refresh,
    Audit,
    Export,
}

#[derive(Debug, Deserialize)]
pub(super) struct Wish {
    #[serde(rename = "do")]
    verb: Verb,
    #[serde(default)]
    endpoint: Vec<String>,
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    against_source: Option<String>,
    repair: Option<String>,
    format: Option<Format>,
    #[serde(default)]
    out: String,
    partial: Option<String>,
    confirmed: Option<String>,
    /// Where to go afterwards.
    back: Option<String>,
}

pub(super) async fn act(
    State(app): State<Arc<App>>,
    Id(source): Id<String>,
    visitor: Visitor,
    Form(wish): Form<Wish>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    extracted(&app, &source).await?;
    let here = format!("/ui/extractions/{source}");
    let back = wish.back.as_deref().and_then(local).unwrap_or(&here).to_owned();
    if wish.verb == Verb::Refresh && wish.confirmed.is_none() {
        return Ok(sure(visitor, &here, back, &wish, t));
    }
    match carry_out(&app, source, &wish, t).await {
        Ok((_, said)) if wish.verb == Verb::Retry || wish.verb == Verb::Refresh => {
            Ok(back_to(&back, said))
        }
        Ok((task, said)) => Ok(back_to(&format!("/ui/tasks/{task}"), said)),
        Err(Error::Invalid(wrong)) => Ok(back_to(&back, &wrong)),
        Err(error) => Err(error.into()),
    }
}

fn sure(visitor: Visitor, here: &str, back: String, wish: &Wish, t: &'static Words) -> Response {
    let mut fields = vec![
        ("do".to_owned(), "refresh".to_owned()),
        ("from".into(), wish.from.clone()),
        ("to".into(), wish.to.clone()),
        ("confirmed".into(), "yes".into()),
        ("back".into(), back.clone()),
    ];
    fields.extend(wish.endpoint.iter().map(|name| ("endpoint".to_owned(), name.clone())));
    let page = ConfirmPage {
        shell: Shell::new(visitor, Section::Extractions, t.refresh_this),
        says: t.confirm_refresh.into(),
        count: format!("{} {}", wish.endpoint.join(", "), wish.from),
        how_many: "",
        action: format!("{here}/order"),
        fields,
        back,
    };
    show(&page)
}

/// Makes the task of what is wished for, if it makes sense.
async fn carry_out(
    app: &App,
    source: String,
    wish: &Wish,
    t: &'static Words,
) -> Result<(TaskId, &'static str), Error> {
    let last = last_order(&app.tasks, &source).await?;
    let (definition, base_url) = last.map_or((None, None), |it| (it.definition, it.base_url));
    let (from, to) = (month(&wish.from)?, month(&wish.to)?);
    let endpoints = wish.endpoint.clone();
    match wish.verb {
        Verb::Retry | Verb::Refresh => {
            let is_refresh = wish.verb == Verb::Refresh;
            let order = Order {
                source,
                definition,
                from: from.unwrap_or(Month::FIRST),
                to: to.unwrap_or(Month::LAST),
                endpoints,
                refresh: is_refresh,
                retry: !is_refresh,
                base_url,
            };
            check(&order.source()?, from, to, &order.endpoints)?;
            if is_refresh && forecast(&app.database, &order).await?.tasks.is_empty() {
                let wrong = "a snapshot of the past cannot be fetched again";
                return Err(Error::Invalid(wrong.into()));
            }
            Ok((make::<Extract>(app, &order).await?, t.done_started))
        }
        Verb::Audit => {
            let order = AuditOrder {
                source,
                definition,
                from,
                to,
                endpoints,
                against_source: wish.against_source.is_some(),
                repair: wish.repair.is_some(),
                base_url,
            };
            check(&order.source()?, from, to, &order.endpoints)?;
            Ok((make::<ExtractAudit>(app, &order).await?, t.done_audit))
        }
        Verb::Export => {
            let order = ExportOrder {
                source,
                definition,
                from,
                to,
                endpoints,
                format: wish.format.unwrap_or(Format::Parquet),
                out: wish.out.trim().to_owned(),
                partial: wish.partial.is_some(),
            };
            check(&order.source()?, from, to, &order.endpoints)?;
            Exports::check_name(&order.out)?;
            Ok((make::<ExtractExport>(app, &order).await?, t.done_export))
        }
    }
}

fn check(
    source: &Source,
    from: Option<Month>,
    to: Option<Month>,
    endpoints: &[String],
) -> Result<(), Error> {
    scope_of(source, from, to, endpoints).map(|_| ())
}

/// A month, or nothing where nothing was typed.
pub(super) fn month(text: &str) -> Result<Option<Month>, Error> {
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|error| Error::Invalid(format!("{error}"))),
    }
}

pub(super) async fn make<H: Handler>(
    app: &App,
    order: &(impl Serialize + Sync),
) -> Result<TaskId, Error> {
    let task = NewTask { kind: H::KIND.into(), payload: json!(order), ..NewTask::default() };
    match app.tasks.create(task).await {
        Ok(created) => Ok(created.id),
        Err(error @ (lavra_tasks::Error::Invalid(_) | lavra_tasks::Error::UnknownType { .. })) => {
            Err(Error::Invalid(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
