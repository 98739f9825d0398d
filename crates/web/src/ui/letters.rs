//! Dead letters: what failed for good, until somebody decides.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use lavra_tasks::model::DeadLetterId;
use lavra_tasks::store::DeadLetter;
use lavra_tasks::{Error, Tasks};
use serde::Deserialize;
use uuid::Uuid;

use super::asked::Asked;
use super::confirm::ConfirmPage;
use super::json::{self, shortened};
use super::page::{Said, Section, Shell, back_to, show};
use super::texts::Tasks as Words;
use super::visitor::Visitor;
use super::words::short;
use crate::access::Form;
use crate::app::Site;
use crate::problem::Problem;

const PAGE: usize = 50;
const HERE: &str = "/ui/dead-letters";
/// Letters that are driven again at once.
const MOST: usize = 1000;
/// So much of a message that nobody could read is shown.
const BODY: usize = 4096;

pub(crate) fn routes() -> Router<Site> {
    Router::new().route(HERE, get(list)).route("/ui/dead-letters/act", post(act))
}

#[derive(Debug, Default, Deserialize)]
struct Query {
    /// Where the page before ended.
    before: Option<String>,
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct ListPage {
    shell: Shell,
    t: &'static Words,
    /// How many there are, if there are any.
    count: Option<String>,
    rows: Vec<Row>,
    next: Option<String>,
    is_first: bool,
}

#[derive(Debug)]
struct Row {
    id: String,
    task: Option<(String, String)>,
    kind: String,
    reason: String,
    body: Option<String>,
    iso: String,
    ago: String,
}

async fn list(
    State(tasks): State<Tasks>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let shell = Shell::new(visitor, Section::Tasks, t.dead_letters);
    let shell = shell.follows("tasks").saying(said.text());
    let before = query.before.as_deref().and_then(|id| Uuid::parse_str(id).ok()).map(DeadLetterId);
    let is_first = before.is_none();
    let store = tasks.store();
    let (mut found, count) =
        tokio::try_join!(store.dead_letters(before, PAGE + 1), store.count_dead_letters())?;
    let more = found.len() > PAGE;
    found.truncate(PAGE);
    let next = found.last().filter(|_| more).map(|last| last.id.to_string());
    let rows = found.into_iter().map(|letter| Row::new(letter, &shell)).collect();
    let count = (count > 0).then(|| shell.f.number(count));
    Ok(show(&ListPage { shell, t, count, rows, next, is_first }))
}

impl Row {
    fn new(letter: DeadLetter, shell: &Shell) -> Self {
        Self {
            id: letter.id.to_string(),
            task: letter.task_id.map(|task| {
                let id = task.to_string();
                (id.clone(), short(&id).to_owned())
            }),
            kind: letter.kind.unwrap_or_default(),
            reason: shortened(letter.reason),
            body: letter.body.map(|body| json::lay_out(&body, BODY).text),
            iso: shell.f.iso(letter.created_at),
            ago: shell.f.ago(letter.created_at),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Redrive,
    Drop,
    RedriveAll,
}

#[derive(Debug, Deserialize)]
struct Wish {
    #[serde(rename = "do")]
    verb: Verb,
    id: Option<Uuid>,
    confirmed: Option<String>,
}

async fn act(
    State(tasks): State<Tasks>,
    visitor: Visitor,
    Form(wish): Form<Wish>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let is_confirmed = wish.confirmed.is_some();
    let letter = async || -> Result<DeadLetter, Problem> {
        let Some(id) = wish.id.map(DeadLetterId) else {
            return Err(Problem::field("id", "is needed"));
        };
        let found = tasks.store().dead_letter(id).await?;
        found.ok_or_else(|| Error::NoSuchDeadLetter(id).into())
    };
    let sure = |says: &str, count, how_many, fields: &[(&str, String)]| {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let shell = Shell::new(visitor, Section::Tasks, t.dead_letters);
        let action = "/ui/dead-letters/act".into();
        let fields = fields.chain([("confirmed".into(), "yes".into())]).collect();
        let back = HERE.to_owned();
        let says = says.to_owned();
        show(&ConfirmPage { shell, says, count, how_many, action, fields, back })
    };
    match wish.verb {
        Verb::Redrive => match tasks.redrive(&letter().await?).await {
            Ok(_) => Ok(back_to(HERE, &format!("1 {}", t.done_redriven))),
            Err(error @ (Error::Illegal(_) | Error::Invalid(_) | Error::NoSuchTask(_))) => {
                Ok(back_to(HERE, &error.to_string()))
            }
            Err(error) => Err(error.into()),
        },
        Verb::Drop => {
            let letter = letter().await?;
            if !is_confirmed {
                let fields = [("do", "drop".to_owned()), ("id", letter.id.to_string())];
                return Ok(sure(t.confirm_drop, shortened(letter.reason), "", &fields));
            }
            tasks.store().remove_dead_letter(letter.id).await?;
            Ok(back_to(HERE, t.done_dropped))
        }
        Verb::RedriveAll if !is_confirmed => {
            let count = tasks.store().count_dead_letters().await?.to_string();
            let fields = [("do", "redrive_all".to_owned())];
            Ok(sure(t.confirm_redrive_all, count, t.how_many_letters, &fields))
        }
        Verb::RedriveAll => {
            let done = tasks.redrive_all(MOST).await?;
            let mut said = format!("{} {}", done.done, t.done_redriven);
            if let Some(why) = done.why {
                said = format!("{said}; {} {}: {why}", done.refused, t.done_refused);
            }
            Ok(back_to(HERE, &said))
        }
    }
}
