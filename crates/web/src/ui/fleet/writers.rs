//! The writers: which takes new jobs, what each stores, and whether it answers.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use lavra_fleet::Fleet;
use lavra_fleet::model::Writer;
use lavra_fleet::store::WriterLoad;

use super::shown::{ListQuery, TestView, paged};
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::page::{Said, Section, Shell, show};
use crate::ui::texts::{Common, Things};
use crate::ui::visitor::Visitor;

const DAY: SignedDuration = SignedDuration::from_hours(24);

#[derive(Template)]
#[template(path = "writers.html")]
struct ListPage {
    shell: Shell,
    t: &'static Things,
    rows: Vec<Row>,
    is_first: bool,
    next: Option<String>,
}

#[derive(Debug)]
struct Row {
    id: String,
    name: String,
    url: String,
    active: bool,
    slug: &'static str,
    state: &'static str,
    jobs: String,
    completed: i64,
    failed: i64,
    test: Option<TestView>,
}

pub(super) async fn list(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(query): Asked<ListQuery>,
) -> Result<Response, Problem> {
    let language = visitor.language;
    let t = Things::of(language);
    let shell = Shell::new(visitor, Section::Writers, Common::of(language).nav_writers);
    let shell = shell.follows("fleet missions").saying(said.text());
    let since = fleet.store.clock().now().saturating_sub(DAY).unwrap_or(Timestamp::MIN);
    let store = &fleet.store;
    let (writers, loads) = tokio::try_join!(store.writers(), store.writer_loads(since))?;
    // They come oldest first, and the oldest active one is taken.
    let chosen = writers.iter().find(|writer| writer.active).map(|writer| writer.id.clone());
    let (shown, next) = paged(writers, query.after.as_deref(), |writer| &writer.id.0);
    let row = |writer: Writer| {
        let load = loads.iter().find(|load| load.writer == writer.id);
        let is_chosen = chosen.as_ref() == Some(&writer.id);
        Row::new(writer, is_chosen, load, t, &shell)
    };
    let page = ListPage {
        rows: shown.into_iter().map(row).collect(),
        is_first: query.after.is_none(),
        next,
        shell,
        t,
    };
    Ok(show(&page))
}

impl Row {
    fn new(
        writer: Writer,
        is_chosen: bool,
        load: Option<&WriterLoad>,
        t: &Things,
        shell: &Shell,
    ) -> Self {
        let (slug, state) = match (writer.active, is_chosen) {
            (true, true) => ("active", t.chosen),
            (true, false) => ("ready", t.in_reserve),
            (false, _) => ("inactive", t.inactive),
        };
        Self {
            slug,
            state,
            jobs: shell.f.number(load.map_or(0, |load| load.under_way)),
            completed: load.map_or(0, |load| load.completed),
            failed: load.map_or(0, |load| load.failed),
            test: TestView::new(writer.last_test_at, writer.last_test_ok, t, shell),
            id: writer.id.0,
            name: writer.name,
            url: writer.url,
            active: writer.active,
        }
    }
}
