//! The sources: those that come with the program, and those that were extracted here.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_extract::Known;
use lavra_extract::model::Status;
use lavra_extract::store::Volume;

use super::running::{Run, runs};
use super::say;
use crate::app::App;
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::page::{Said, Section, Shell, show};
use crate::ui::texts::Extractions as Words;
use crate::ui::visitor::Visitor;

#[derive(Template)]
#[template(path = "sources.html")]
struct SourcesPage {
    shell: Shell,
    t: &'static Words,
    sources: Vec<SourceCard>,
}

#[derive(Debug)]
struct SourceCard {
    name: String,
    title: String,
    is_built_in: bool,
    endpoints: usize,
    /// What there is of it; nothing where nothing was extracted.
    there: Option<There>,
}

#[derive(Debug)]
struct There {
    complete: String,
    all: String,
    percent: i64,
    /// The states that tasks are in, with how many.
    states: Vec<(&'static str, &'static str, String)>,
    pages: String,
    records: String,
    bytes: String,
    open: Vec<Run>,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let shell = Shell::new(visitor, Section::Extractions, t.extractions);
    let shell = shell.follows("extractions").saying(said.text());
    let mut sources = Vec::new();
    for known in lavra_extract::sources(&app.database).await? {
        sources.push(card(&app, known, t, &shell).await?);
    }
    Ok(show(&SourcesPage { shell, t, sources }))
}

async fn card(
    app: &App,
    known: Known,
    t: &'static Words,
    shell: &Shell,
) -> Result<SourceCard, Problem> {
    let there = match &known.tasks {
        Some(tasks) => {
            let store = lavra_extract::store_of(&app.database, &known.name);
            let Volume { pages, records, bytes } = store.volume().await?;
            let all: i64 = tasks.values().sum();
            let complete = tasks.get(&Status::Complete).copied().unwrap_or(0);
            let open = runs(&app.tasks, &known.name, t, shell).await?;
            Some(There {
                complete: shell.f.number(complete),
                all: shell.f.number(all),
                percent: complete * 100 / all.max(1),
                states: tasks
                    .iter()
                    .map(|(status, count)| {
                        (say::slug(*status), say::plural(*status, t), shell.f.number(*count))
                    })
                    .collect(),
                pages: shell.f.number(pages),
                records: shell.f.number(records),
                bytes: shell.f.bytes(bytes),
                open: open.into_iter().filter(|run| run.is_open).collect(),
            })
        }
        None => None,
    };
    let (title, endpoints) = match known.built_in.as_ref() {
        Some(built_in) => (built_in.title.clone(), built_in.endpoints.len()),
        None => (String::new(), 0),
    };
    let is_built_in = known.built_in.is_some();
    Ok(SourceCard { name: known.name, title, is_built_in, endpoints, there })
}
