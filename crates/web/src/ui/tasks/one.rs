//! One task: its facts, why it waits, what it was given and what it left, and all its events.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use lavra_tasks::keeper;
use lavra_tasks::model::{Actor, Event, Status, Task, TaskId};
use lavra_tasks::store::Process;
use serde::Deserialize;
use serde_json::Value;

use super::say::{Badge, badge, step};
use crate::app::App;
use crate::path::Id;
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::json::{self, Shown};
use crate::ui::page::{Said, Section, Shell, show as answer};
use crate::ui::texts::Tasks as Words;
use crate::ui::visitor::Visitor;

/// Events on a page.
const PAGE: usize = 50;
/// So much of an input, of metadata and of a result is shown.
const MOST: usize = 64 * 1024;
/// So many tasks before a waiting one are counted.
const AHEAD: usize = 1000;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Query {
    /// Where the page of events before ended, in microseconds.
    before: Option<i64>,
}

#[derive(Template)]
#[template(path = "task.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is shown or not")]
struct TaskPage {
    shell: Shell,
    t: &'static Words,
    id: String,
    kind: String,
    badge: Badge,
    step: String,
    progress: i16,
    is_running: bool,
    waits: Option<String>,
    error: Option<String>,
    facts: Vec<(&'static str, String)>,
    /// The schedule that made it.
    schedule: Option<String>,
    /// Where what it does can be seen.
    about: Option<(String, &'static str)>,
    /// Not for those who may only look: it may hold a credential for someone else.
    input: Option<Shown>,
    metadata: Option<Shown>,
    result: Option<Shown>,
    events: Vec<EventRow>,
    is_newest: bool,
    next: Option<i64>,
    can_retry: bool,
    can_cancel: bool,
}

#[derive(Debug)]
struct EventRow {
    id: String,
    iso: String,
    time: String,
    ago: String,
    badge: Badge,
    step: String,
    actor: &'static str,
    details: Vec<(String, String)>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Id(id): Id<TaskId>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let task = app.tasks.task(id).await?;
    let before = query.before.and_then(|micros| Timestamp::from_microsecond(micros).ok());
    let store = app.tasks.store();
    let (input, result, mut events, living) = tokio::try_join!(
        store.input(id),
        store.result(id),
        store.events_before(id, before.unwrap_or(Timestamp::MAX), PAGE + 1),
        store.living(keeper::Config::default().stale),
    )?;
    let ahead = match task.status {
        Status::Pending => store.ahead_of(&task, AHEAD).await?,
        Status::InProgress | Status::Completed | Status::Failed | Status::Cancelled => 0,
    };
    let t = Words::of(visitor.language);
    let shell = Shell::new(visitor, Section::Tasks, format!("{} {}", t.task, task.kind));
    let shell = shell.follows("tasks").saying(said.text());
    let more = events.len() > PAGE;
    events.truncate(PAGE);
    let next = events.last().filter(|_| more).map(|last| last.created_at.as_microsecond());
    let has_metadata = task.metadata.as_object().is_some_and(|fields| !fields.is_empty());
    let page = TaskPage {
        badge: badge(task.status, t),
        step: step(&task.state, t).into_owned(),
        progress: task.progress,
        is_running: task.status == Status::InProgress,
        waits: why(&task, ahead, &living, t, &shell),
        facts: facts(&task, &living, t, &shell),
        schedule: task.metadata.get("schedule").and_then(Value::as_str).map(str::to_owned),
        about: about(&task, input.as_ref(), t),
        input: input.filter(|_| shell.visitor.may_operate).map(|it| json::value(&it, MOST)),
        metadata: has_metadata.then(|| json::value(&task.metadata, MOST)),
        result: result.map(|result| json::value(&result.payload, MOST)),
        events: events.into_iter().map(|event| EventRow::new(event, t, &shell)).collect(),
        is_newest: before.is_none(),
        next,
        can_retry: matches!(task.status, Status::Failed | Status::Cancelled),
        can_cancel: matches!(task.status, Status::Pending | Status::InProgress),
        id: task.id.to_string(),
        kind: task.kind,
        error: task.error,
        shell,
        t,
    };
    Ok(answer(&page))
}

/// What the task waits for, in a sentence.
fn why(task: &Task, ahead: i64, living: &[Process], t: &Words, shell: &Shell) -> Option<String> {
    let clock = |at: Timestamp| format!("{} UTC", shell.f.time(at));
    match task.status {
        Status::Completed | Status::Failed => None,
        Status::Cancelled => Some(format!("{} {}", t.wait_stop, clock(task.stop_by?))),
        Status::InProgress => {
            let is_alive = living.iter().any(|process| Some(process.id) == task.process);
            (!is_alive).then(|| t.wait_takeover.to_owned())
        }
        Status::Pending => {
            if let Some(at) = task.run_at.filter(|at| *at > shell.f.now()) {
                let what = if task.retry_count > 0 { t.wait_retry } else { t.wait_time };
                let left = shell.f.span(at.duration_since(shell.f.now()));
                return Some(format!("{what} {} ({} {left})", clock(at), t.wait_in));
            }
            if !living.iter().any(|process| process.kinds.contains(&task.kind)) {
                return Some(t.wait_nobody.to_owned());
            }
            Some(match ahead {
                0 => t.wait_next.to_owned(),
                _ if ahead as usize >= AHEAD => {
                    format!("{} {} {}", t.wait_ahead, t.wait_more_than, shell.f.number(ahead))
                }
                _ => format!("{} {}", t.wait_ahead, shell.f.number(ahead)),
            })
        }
    }
}

fn facts(
    task: &Task,
    living: &[Process],
    t: &'static Words,
    shell: &Shell,
) -> Vec<(&'static str, String)> {
    let process = task.process.filter(|_| task.status == Status::InProgress).map(|id| {
        let found = living.iter().find(|process| process.id == id);
        found.map_or_else(|| format!("{id} ({})", t.silent_process), |it| it.name.clone())
    });
    let end = if task.status.is_terminal() { task.updated_at } else { shell.f.now() };
    let all = [
        (t.priority, Some(task.priority.to_string())),
        (t.attempts, Some(task.attempts.to_string())),
        (t.retries, Some(format!("{} {} {}", task.retry_count, t.of, task.max_retries))),
        (shell.t.created, Some(shell.f.time(task.created_at))),
        (t.updated, Some(shell.f.time(task.updated_at))),
        (t.duration, Some(shell.f.span(end.duration_since(task.created_at)))),
        (t.process, process),
        (t.version, Some(task.version.to_string())),
        (t.input_hash, task.input_hash.clone()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The page of what a task of the program works on.
fn about(task: &Task, input: Option<&Value>, t: &'static Words) -> Option<(String, &'static str)> {
    match task.kind.as_str() {
        "extract" | "extract_audit" | "extract_export" => {
            let source = input?.get("source")?.as_str()?;
            let source: String = form_urlencoded::byte_serialize(source.as_bytes()).collect();
            Some((format!("/ui/extractions/{source}"), t.see_extraction))
        }
        "fleet" => Some(("/ui".into(), t.see_fleet)),
        _ => None,
    }
}

impl EventRow {
    fn new(event: Event, t: &Words, shell: &Shell) -> Self {
        let actor = match event.actor {
            Actor::Api => t.actor_api,
            Actor::Worker => t.actor_worker,
            Actor::System => t.actor_system,
        };
        let state = event.state.unwrap_or_default();
        Self {
            id: event.id.to_string(),
            iso: shell.f.iso(event.created_at),
            time: shell.f.time(event.created_at),
            ago: shell.f.ago(event.created_at),
            badge: badge(event.status, t),
            step: json::shortened(step(&state, t)),
            actor,
            details: event.detail.as_ref().map(json::fields).unwrap_or_default(),
        }
    }
}
