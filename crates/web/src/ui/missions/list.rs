//! The list of missions: state counts are the filters, and the address has all of it.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use lavra_fleet::Fleet;
use lavra_fleet::code::ErrorCode;
use lavra_fleet::model::{MediaType, Mission, MissionId, Mode, Waiting, WorkerId};
use lavra_fleet::store::{Filter, WaitsFor};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::time::Day;
use crate::ui::asked::Asked;
use crate::ui::overview::{Tile, tiles};
use crate::ui::page::{Said, Section, Shell, show};
use crate::ui::texts::Missions;
use crate::ui::visitor::Visitor;
use crate::ui::words::{self, State as MissionState};

const PAGE: usize = 50;

/// What the address asks for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Query {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) q: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) media: Option<MediaType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<Day>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<Day>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<Waiting>,
    /// Where the page before ended.
    #[serde(skip_serializing)]
    before: Option<String>,
}

impl Query {
    pub(super) fn state(&self) -> Option<MissionState> {
        self.state.as_deref().and_then(MissionState::parse)
    }

    pub(super) fn filter(&self) -> Filter {
        let mut filter = Filter {
            error_code: self.error,
            media_type: self.media,
            language: self.language.clone(),
            worker: self.worker.clone().map(WorkerId),
            from: self.from.map(|day| day.0),
            to: self.to.map(|day| day.0),
            waiting: self.waiting,
            search: self.q.clone(),
            ..Filter::default()
        };
        if let Some(state) = self.state() {
            state.narrow(&mut filter);
        }
        filter
    }

    /// The same as the query of an address.
    pub(super) fn text(&self) -> String {
        serde_html_form::to_string(self).unwrap_or_default()
    }

    /// Each field with its value, for a form to carry.
    pub(super) fn fields(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.text().as_bytes()).into_owned().collect()
    }

    fn slug(&self) -> &str {
        self.state.as_deref().unwrap_or_default()
    }

    fn has_conditions(&self) -> bool {
        let without_state = Self { state: None, ..self.clone() };
        without_state.filter() != Filter::default()
    }
}

#[derive(Template)]
#[template(path = "missions.html")]
struct ListPage {
    shell: Shell,
    m: &'static Missions,
    heading: &'static str,
    total: String,
    tiles: Vec<Tile>,
    query: Query,
    query_text: String,
    fields: Vec<(String, String)>,
    rows: Vec<Row>,
    workers: Vec<(String, String)>,
    next: Option<String>,
    is_first: bool,
    can: Can,
}

/// What can be done with those that are shown.
#[derive(Debug)]
struct Can {
    queue: bool,
    cancel: bool,
    retry: bool,
}

#[derive(Debug)]
struct Row {
    id: String,
    short: String,
    days: String,
    media: &'static str,
    languages: String,
    slug: &'static str,
    state: &'static str,
    waits: Option<String>,
    code: Option<ErrorCode>,
    error: String,
    worker: Option<String>,
    ads: Option<String>,
    retries: i32,
    iso: String,
    ago: String,
}

pub(super) async fn list(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(mut query): Asked<Query>,
) -> Result<Response, Problem> {
    if let Some(text) = query.q.take() {
        let text = text.trim().to_owned();
        if text.starts_with("mis_") {
            let id: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
            return Ok(Redirect::to(&format!("/ui/missions/{id}")).into_response());
        }
        match text.to_ascii_uppercase().parse() {
            Ok(code) => query.error = Some(code),
            Err(_) => query.q = Some(text).filter(|text| !text.is_empty()),
        }
    }
    let m = Missions::of(visitor.language);
    let state = query.state();
    let heading = if state == Some(MissionState::Bank) { m.bank_title } else { m.missions };
    let shell = Shell::new(visitor, Section::Missions, heading);
    let shell = shell.follows("missions").saying(said.text());
    let filter = query.filter();
    let before = query.before.clone().map(MissionId);
    let is_first = before.is_none();
    let store = &fleet.store;
    let (counts, control, mut found, workers) = tokio::try_join!(
        store.counts(),
        store.control(),
        store.missions(&filter, before, PAGE + 1),
        store.workers(),
    )?;
    let more = found.len() > PAGE;
    found.truncate(PAGE);
    let next = found.last().filter(|_| more).map(|last| last.id.0.clone());
    let names: Vec<(String, String)> =
        workers.into_iter().map(|worker| (worker.id.0, worker.name)).collect();
    let is = |wanted: &[MissionState]| state.is_none_or(|state| wanted.contains(&state));
    let page = ListPage {
        heading,
        total: shell.f.number(MissionState::ALL.iter().map(|it| it.count(&counts)).sum::<i64>()),
        tiles: tiles(&counts, state, m, &shell.f),
        query_text: query.text(),
        fields: query.fields(),
        rows: found.into_iter().map(|it| Row::new(it, control.mode, &names, m, &shell)).collect(),
        workers: names,
        next,
        is_first,
        can: Can {
            queue: is(&[MissionState::Bank]),
            cancel: state.is_none_or(MissionState::is_open),
            retry: is(&[MissionState::Failed]),
        },
        query,
        shell,
        m,
    };
    Ok(show(&page))
}

impl Row {
    fn new(
        mission: Mission,
        mode: Mode,
        workers: &[(String, String)],
        m: &Missions,
        shell: &Shell,
    ) -> Self {
        let state = MissionState::of(&mission);
        let moved = mission.finished_at.or(mission.phase_started_at).or(mission.queued_at);
        let moved = moved.unwrap_or(mission.created_at);
        let named = |id: &WorkerId| {
            let found = workers.iter().find(|(known, _)| *known == id.0);
            found.map_or_else(|| id.0.clone(), |(_, name)| name.clone())
        };
        Self {
            short: words::short(&mission.id.0).to_owned(),
            days: words::days(&mission),
            media: words::media(mission.media_type, m),
            languages: mission.languages.join(" "),
            slug: state.slug(),
            state: state.name(m),
            waits: WaitsFor::of(&mission).map(|what| {
                let what = words::waits_for(what, mode, shell.words);
                match mission.next_attempt_at {
                    Some(at) => format!("{what} {} {}", shell.words.wait_until, shell.f.clock(at)),
                    None => what.to_owned(),
                }
            }),
            error: mission.error_code.map_or("", |code| words::error(code, shell.words)).to_owned(),
            code: mission.error_code,
            worker: mission.worker_id.as_ref().map(named),
            ads: mission.ads_count.map(|count| shell.f.number(count)),
            retries: mission.retry_count,
            iso: shell.f.iso(moved),
            ago: shell.f.ago(moved),
            id: mission.id.0,
        }
    }
}
