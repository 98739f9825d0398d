//! The timeline of one mission, by its id: the first of the four reports.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use lavra_fleet::model::MissionId;
use lavra_fleet::store::LogFilter;
use lavra_fleet::{Error, Fleet};
use serde::Deserialize;

use super::Tab;
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::entry::EntryRow;
use crate::ui::page::{self, Section, Shell};
use crate::ui::texts::{Audit, Missions};
use crate::ui::visitor::Visitor;
use crate::ui::words::{self, State as MissionState};

const MOST: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Query {
    mission: Option<String>,
}

#[derive(Template)]
#[template(path = "audit_timeline.html")]
struct TimelinePage {
    shell: Shell,
    t: &'static Audit,
    tabs: [(&'static str, &'static str, bool); 5],
    asked: String,
    found: Option<Found>,
    entries: Vec<EntryRow>,
    is_cut: bool,
}

#[derive(Debug)]
struct Found {
    id: String,
    days: String,
    slug: &'static str,
    state: &'static str,
}

pub(super) async fn show(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let t = Audit::of(visitor.language);
    let m = Missions::of(visitor.language);
    let shell = Shell::new(visitor, Section::Audit, t.timeline_title).follows("missions");
    let asked = query.mission.as_deref().unwrap_or_default().trim().to_owned();
    let (mut found, mut log, mut workers) = (None, Vec::new(), Vec::new());
    if !asked.is_empty() {
        let id = MissionId(asked.clone());
        match fleet.mission(&id).await {
            Ok(mission) => {
                let filter = LogFilter {
                    mission: Some(id),
                    oldest_first: true,
                    limit: MOST + 1,
                    ..LogFilter::default()
                };
                (log, workers) = tokio::try_join!(fleet.store.log(&filter), fleet.store.workers())?;
                let state = MissionState::of(&mission);
                let (slug, state) = (state.slug(), state.name(m));
                found = Some(Found { days: words::days(&mission), id: mission.id.0, slug, state });
            }
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let is_cut = log.len() > MOST;
    log.truncate(MOST);
    let page = TimelinePage {
        tabs: Tab::Timeline.all(t),
        asked,
        found,
        entries: log.into_iter().map(|it| EntryRow::new(it, &shell).naming(&workers)).collect(),
        is_cut,
        shell,
        t,
    };
    Ok(page::show(&page))
}
