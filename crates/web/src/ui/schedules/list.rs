//! The schedules, and the form of one.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use lavra_tasks::next_time;
use lavra_tasks::store::Schedule;
use serde::Deserialize;

use super::cron::in_words;
use crate::app::App;
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::json;
use crate::ui::page::{Said, Section, Shell, show, show_with};
use crate::ui::texts::{Schedules as Words, Tasks};
use crate::ui::visitor::Visitor;
use crate::ui::words::short;

/// Due times that are named.
const NEXT: usize = 3;
const PAYLOAD: usize = 64 * 1024;

#[derive(Template)]
#[template(path = "schedules.html")]
struct ListPage {
    shell: Shell,
    t: &'static Words,
    tasks: &'static Tasks,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    kind: String,
    cron: String,
    words: Option<String>,
    is_enabled: bool,
    /// For machines, for people, and how long until then.
    next: Vec<(String, String, String)>,
    last: Option<(String, String)>,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    let (t, tasks) = (Words::of(visitor.language), Tasks::of(visitor.language));
    let shell = Shell::new(visitor, Section::Tasks, t.schedules);
    let shell = shell.follows("tasks").saying(said.text());
    let schedules = app.tasks.store().schedules().await?;
    let rows = schedules.into_iter().map(|schedule| Row::new(schedule, &shell)).collect();
    Ok(show(&ListPage { shell, t, tasks, rows }))
}

impl Row {
    fn new(schedule: Schedule, shell: &Shell) -> Self {
        let now = shell.f.now();
        let until = |at: Timestamp| shell.f.span(at.duration_since(now));
        let shown = |at: Timestamp| (shell.f.iso(at), shell.f.time(at), until(at));
        let next = if schedule.enabled { due_times(&schedule) } else { Vec::new() };
        Self {
            words: in_words(&schedule.cron, shell.visitor.language),
            is_enabled: schedule.enabled,
            next: next.into_iter().map(shown).collect(),
            last: schedule.last_task.map(|task| {
                let id = task.to_string();
                (id.clone(), short(&id).to_owned())
            }),
            name: schedule.name,
            kind: schedule.kind,
            cron: schedule.cron,
        }
    }
}

/// The next one as it is stored, and those after it.
fn due_times(schedule: &Schedule) -> Vec<Timestamp> {
    let later = |at: &Timestamp| next_time(&schedule.cron, *at).ok();
    std::iter::successors(Some(schedule.next_at), later).take(NEXT).collect()
}

/// What was typed, so that a mistake costs nobody the rest of it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Order {
    #[serde(default)]
    pub(super) name: String,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) cron: String,
    #[serde(default)]
    pub(super) payload: String,
    pub(super) enabled: Option<String>,
    /// Whether it is one that is there already.
    pub(super) known: Option<String>,
}

#[derive(Template)]
#[template(path = "schedule.html")]
struct EditPage {
    shell: Shell,
    t: &'static Words,
    tasks: &'static Tasks,
    types: Vec<String>,
    order: Order,
    wrong: Option<String>,
}

pub(super) async fn form(
    app: &App,
    visitor: Visitor,
    order: Order,
    wrong: Option<String>,
) -> Result<Response, Problem> {
    let (t, tasks) = (Words::of(visitor.language), Tasks::of(visitor.language));
    let title = if order.known.is_some() { t.edit } else { t.new };
    let shell = Shell::new(visitor, Section::Tasks, title);
    let mut types = app.tasks.store().declared().await?;
    types.sort();
    let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(show_with(status, &EditPage { shell, t, tasks, types, order, wrong }))
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    name: Option<String>,
}

/// The form, empty or of a schedule that is there. Payloads are not for those who may only look.
pub(super) async fn edit(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(which): Asked<Which>,
) -> Result<Response, Problem> {
    let order = match which.name {
        Some(name) => {
            let schedule = app.tasks.schedule_of(&name).await?;
            let payload = json::value(&schedule.payload, PAYLOAD).text;
            Order {
                name,
                kind: schedule.kind,
                cron: schedule.cron,
                payload: if visitor.may_operate { payload } else { String::new() },
                enabled: schedule.enabled.then(|| "yes".into()),
                known: Some("yes".into()),
            }
        }
        None => {
            let (payload, enabled) = ("{}".into(), Some("yes".into()));
            Order { payload, enabled, ..Order::default() }
        }
    };
    form(&app, visitor, order, None).await
}
