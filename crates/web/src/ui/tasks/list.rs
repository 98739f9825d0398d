//! The list of tasks: state counts are the filters, and the address has all of it.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_tasks::model::{Status, Task, TaskId};
use lavra_tasks::store::{Count, ListFilter};
use lavra_tasks::{Tasks, check_kind};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::say::{Badge, badge, plural, slug, step};
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::json::shortened;
use crate::ui::page::{Said, Section, Shell, show};
use crate::ui::texts::Tasks as Words;
use crate::ui::visitor::Visitor;
use crate::ui::words::short;

const PAGE: usize = 50;

/// What the address asks for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Query {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Where the page before ended.
    #[serde(skip_serializing)]
    before: Option<String>,
}

impl Query {
    fn status(&self) -> Option<Status> {
        Status::ALL.into_iter().find(|status| self.status.as_deref() == Some(slug(*status)))
    }

    fn text(&self) -> String {
        serde_html_form::to_string(self).unwrap_or_default()
    }

    /// The address of the same list in another state.
    fn in_state(&self, status: Option<Status>) -> String {
        let status = status.map(|status| slug(status).to_owned());
        format!("/ui/tasks?{}", Self { status, ..self.clone() }.text())
    }
}

#[derive(Template)]
#[template(path = "tasks.html")]
struct ListPage {
    shell: Shell,
    t: &'static Words,
    query: Query,
    query_text: String,
    all: Tile,
    tiles: Vec<Tile>,
    kinds: Vec<KindOption>,
    rows: Vec<Row>,
    next: Option<String>,
    is_first: bool,
    has_any: bool,
    /// How many dead letters there are, if there are any.
    letters: Option<String>,
}

#[derive(Debug)]
struct Tile {
    slug: &'static str,
    name: &'static str,
    count: String,
    is_here: bool,
    href: String,
}

#[derive(Debug)]
struct KindOption {
    kind: String,
    count: String,
    is_chosen: bool,
}

#[derive(Debug)]
struct Row {
    id: String,
    short: String,
    kind: String,
    badge: Badge,
    step: String,
    error: Option<String>,
    progress: i16,
    is_running: bool,
    retries: String,
    has_retries: bool,
    created: String,
    age: String,
    iso: String,
    ago: String,
}

pub(super) async fn list(
    State(tasks): State<Tasks>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let shell = Shell::new(visitor, Section::Tasks, t.tasks);
    let shell = shell.follows("tasks").saying(said.text());
    let before = query.before.as_deref().and_then(|id| Uuid::parse_str(id).ok()).map(TaskId);
    let is_first = before.is_none();
    let filter = ListFilter {
        kind: query.kind.clone(),
        status: query.status(),
        before,
        limit: PAGE + 1,
        ..ListFilter::default()
    };
    // What cannot be a type has no tasks, and need not be asked for.
    let is_asked = query.kind.as_deref().is_none_or(|kind| check_kind(kind).is_ok());
    let store = tasks.store();
    let found = async { if is_asked { store.list(filter).await } else { Ok(Vec::new()) } };
    let (counts, mut found, letters) =
        tokio::try_join!(store.counts(), found, store.count_dead_letters())?;
    let more = found.len() > PAGE;
    found.truncate(PAGE);
    let next = found.last().filter(|_| more).map(|last| last.id.to_string());
    let page = ListPage {
        all: Tile {
            slug: "",
            name: t.all,
            count: shell.f.number(total(&counts, &query, None)),
            is_here: query.status().is_none(),
            href: query.in_state(None),
        },
        tiles: tiles(&counts, &query, t, &shell),
        kinds: kinds(&counts, &query, &shell),
        rows: found.into_iter().map(|task| Row::new(task, t, &shell)).collect(),
        next,
        is_first,
        has_any: !counts.is_empty(),
        letters: (letters > 0).then(|| shell.f.number(letters)),
        query_text: query.text(),
        query,
        shell,
        t,
    };
    Ok(show(&page))
}

/// How many there are of the type that is asked for, in a state or in any.
fn total(counts: &[Count], query: &Query, status: Option<Status>) -> i64 {
    let of_kind = |count: &&Count| query.kind.as_ref().is_none_or(|kind| count.kind == *kind);
    let in_state = |count: &&Count| status.is_none_or(|status| count.status == status);
    counts.iter().filter(of_kind).filter(in_state).map(|count| count.count).sum()
}

fn tiles(counts: &[Count], query: &Query, t: &'static Words, shell: &Shell) -> Vec<Tile> {
    let tile = |status: Status| Tile {
        slug: slug(status),
        name: plural(status, t),
        count: shell.f.number(total(counts, query, Some(status))),
        is_here: query.status() == Some(status),
        href: query.in_state(Some(status)),
    };
    Status::ALL.into_iter().map(tile).collect()
}

/// The types that there are tasks of, with how many in the state that is asked for.
fn kinds(counts: &[Count], query: &Query, shell: &Shell) -> Vec<KindOption> {
    let mut names: Vec<&str> = counts.iter().map(|count| count.kind.as_str()).collect();
    names.dedup();
    let option = |kind: &str| {
        let of = Query { kind: Some(kind.to_owned()), ..query.clone() };
        KindOption {
            count: shell.f.number(total(counts, &of, query.status())),
            is_chosen: query.kind.as_deref() == Some(kind),
            kind: kind.to_owned(),
        }
    };
    names.into_iter().map(option).collect()
}

impl Row {
    fn new(task: Task, t: &Words, shell: &Shell) -> Self {
        let id = task.id.to_string();
        Self {
            short: short(&id).to_owned(),
            badge: badge(task.status, t),
            step: shortened(step(&task.state, t)),
            error: task.error.filter(|_| task.status != Status::InProgress).map(shortened),
            progress: task.progress,
            is_running: task.status == Status::InProgress,
            retries: format!("{} {} {}", task.retry_count, t.of, task.max_retries),
            has_retries: task.retry_count > 0,
            created: shell.f.iso(task.created_at),
            age: shell.f.age(task.created_at),
            iso: shell.f.iso(task.updated_at),
            ago: shell.f.ago(task.updated_at),
            kind: task.kind,
            id,
        }
    }
}
