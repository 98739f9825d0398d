//! One source: how far it is, what is under way, and its heat map.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_extract::Month;
use lavra_extract::model::{Cell, Status};
use lavra_extract::source::{Period, Source};
use lavra_extract::store::Scope;
use serde::{Deserialize, Serialize};

use super::grid::{Filter, Grid, Maker};
use super::running::{Run, last_order, runs};
use super::{extracted, say};
use crate::app::App;
use crate::path::Id;
use crate::problem::{Code, Problem};
use crate::ui::asked::Asked;
use crate::ui::page::{Said, Section, Shell, show as answer};
use crate::ui::texts::Extractions as Words;
use crate::ui::visitor::Visitor;

/// What the address asks for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Query {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

impl Query {
    fn status(&self) -> Option<Status> {
        self.status.as_deref().and_then(say::parse)
    }

    fn scope(&self) -> Scope {
        let month = |text: &Option<String>, otherwise: Month| {
            let month = text.as_deref().and_then(|text| text.parse().ok());
            month.unwrap_or(otherwise).max(Month::FIRST)
        };
        Scope {
            endpoints: Vec::new(),
            from: month(&self.from, Month::FIRST).first(),
            to: month(&self.to, Month::LAST).last(),
        }
    }

    fn has_conditions(&self) -> bool {
        self.endpoint.is_some() || self.from.is_some() || self.to.is_some()
    }

    /// The query of the same page in another state.
    fn in_state(&self, status: Option<Status>) -> String {
        let status = status.map(|status| say::slug(status).to_owned());
        serde_html_form::to_string(Self { status, ..self.clone() }).unwrap_or_default()
    }
}

#[derive(Template)]
#[template(path = "source.html")]
struct SourcePage {
    shell: Shell,
    t: &'static Words,
    name: String,
    title: String,
    query: Query,
    is_untouched: bool,
    all: Tile,
    tiles: Vec<Tile>,
    summary: Summary,
    open: Vec<Run>,
    ended: Vec<Run>,
    grid: Grid,
    can_order: bool,
    /// Where the last run went, if not where the source says; not for those who may only look.
    base_url: Option<String>,
    legend: Vec<(&'static str, &'static str, &'static str)>,
}

#[derive(Debug, Default)]
struct Tile {
    slug: &'static str,
    name: &'static str,
    count: String,
    is_here: bool,
    query: String,
}

#[derive(Debug, Default)]
struct Summary {
    complete: String,
    all: String,
    percent: i64,
    pages: String,
    records: String,
    bytes: String,
    has_rest: bool,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Id(name): Id<String>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let built_in = Source::built_in(&name).transpose().map_err(lavra_extract::Error::from)?;
    let shell = Shell::new(visitor, Section::Extractions, name.clone());
    let shell = shell.follows("extractions").saying(said.text());
    let (runs, last) =
        tokio::try_join!(runs(&app.tasks, &name, t, &shell), last_order(&app.tasks, &name))?;
    // One whose first run has not begun has no tables yet.
    let is_known = built_in.is_some() || !runs.is_empty();
    let store = match extracted(&app, &name).await {
        Ok(store) => Some(store),
        Err(problem) if problem.code() == Code::SourceNotFound && is_known => None,
        Err(problem) => return Err(problem),
    };
    let (cells, volume, statuses) = match &store {
        Some(store) => {
            let scope = query.scope();
            tokio::try_join!(store.grid(&scope), store.volume(), store.statuses())?
        }
        None => Default::default(),
    };
    let (open, ended): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.is_open);
    let all: i64 = statuses.values().sum();
    let complete = statuses.get(&Status::Complete).copied().unwrap_or(0);
    let is_yearly = |endpoint: &str| {
        let series = built_in.as_ref().and_then(|source| source.series(endpoint));
        series.is_some_and(|series| matches!(series.endpoint.period, Period::Year { .. }))
    };
    let maker = Maker {
        source: &name,
        language: shell.visitor.language,
        t,
        format: &shell.f,
        is_yearly: &is_yearly,
    };
    let endpoint = query.endpoint.as_deref().unwrap_or_default().trim().to_lowercase();
    let page = SourcePage {
        title: built_in.as_ref().map(|source| source.title.clone()).unwrap_or_default(),
        is_untouched: store.is_none(),
        all: Tile {
            name: t.many_all,
            count: shell.f.number(cells.len() as i64),
            is_here: query.status().is_none(),
            query: query.in_state(None),
            ..Tile::default()
        },
        tiles: tiles(&cells, &query, t, &shell),
        summary: Summary {
            complete: shell.f.number(complete),
            all: shell.f.number(all),
            percent: complete * 100 / all.max(1),
            pages: shell.f.number(volume.pages),
            records: shell.f.number(volume.records),
            bytes: shell.f.bytes(volume.bytes),
            has_rest: complete < all,
        },
        grid: maker.grid(&cells, &Filter { status: query.status(), endpoint }),
        can_order: built_in.is_some() || last.as_ref().is_some_and(|it| it.definition.is_some()),
        base_url: last.and_then(|order| order.base_url).filter(|_| shell.visitor.may_operate),
        legend: Status::ALL
            .map(|status| (say::slug(status), say::sign(status), say::name(status, t)))
            .into(),
        open,
        ended,
        name,
        query,
        shell,
        t,
    };
    Ok(answer(&page))
}

fn count(cells: &[Cell], status: Status) -> usize {
    cells.iter().filter(|cell| cell.status == status).count()
}

fn tiles(cells: &[Cell], query: &Query, t: &'static Words, shell: &Shell) -> Vec<Tile> {
    let tile = |status: Status| Tile {
        slug: say::slug(status),
        name: say::plural(status, t),
        count: shell.f.number(count(cells, status) as i64),
        is_here: query.status() == Some(status),
        query: query.in_state(Some(status)),
    };
    Status::ALL.into_iter().map(tile).collect()
}
