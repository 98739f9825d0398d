//! New missions: days × media × languages, or a CSV file.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::civil::Date;
use lavra_fleet::Fleet;
use lavra_fleet::bank::{Every, Wanted};
use lavra_fleet::model::MediaType;
use lavra_fleet::service::Made;
use serde::Deserialize;

use crate::access::Form;
use crate::problem::Problem;
use crate::ui::page::{Section, Shell, back_to, show_with};
use crate::ui::texts::Missions;
use crate::ui::visitor::Visitor;

/// What was typed, so that a mistake costs nobody the rest of it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Order {
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    #[serde(default)]
    every: String,
    #[serde(default)]
    media: Vec<String>,
    #[serde(default)]
    languages: String,
    queue: Option<String>,
}

impl Default for Order {
    fn default() -> Self {
        let text = String::new;
        Self {
            from: text(),
            to: text(),
            every: Every::Day.as_str().into(),
            media: vec![MediaType::All.as_str().into()],
            languages: "pt".into(),
            queue: None,
        }
    }
}

impl Order {
    fn wants(&self, media: &str) -> bool {
        self.media.iter().any(|wanted| wanted == media)
    }

    fn read(&self, m: &Missions) -> Result<Wanted, String> {
        let day = |text: &str, name: &str| -> Result<Date, String> {
            text.trim().parse().map_err(|_| format!("{name}: {text:?} · 2025-01-31"))
        };
        let media: Result<Vec<MediaType>, _> = self.media.iter().map(|it| it.parse()).collect();
        let lines = self.languages.lines().map(str::trim).filter(|line| !line.is_empty());
        let languages = lines.map(|line| {
            let codes = line.split([' ', ',', ';']).map(str::trim);
            codes.filter(|code| !code.is_empty()).map(str::to_owned).collect()
        });
        Ok(Wanted {
            from: day(&self.from, m.filter_from)?,
            to: day(&self.to, m.filter_to)?,
            every: self.every.parse().map_err(|error| format!("{}: {error}", m.new_every))?,
            media_types: media.map_err(|error| format!("{}: {error}", m.media))?,
            languages: languages.collect(),
        })
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Import {
    #[serde(default)]
    csv: String,
    queue: Option<String>,
}

#[derive(Template)]
#[template(path = "new_missions.html")]
struct NewPage {
    shell: Shell,
    m: &'static Missions,
    order: Order,
    import: Import,
    wrong: Option<String>,
}

impl NewPage {
    fn every(&self) -> [(&'static str, &'static str); 4] {
        let m = self.m;
        [
            (Every::Day.as_str(), m.every_day),
            (Every::Week.as_str(), m.every_week),
            (Every::Month.as_str(), m.every_month),
            (Every::Range.as_str(), m.every_range),
        ]
    }

    fn media(&self) -> [(&'static str, &'static str); 3] {
        let m = self.m;
        [
            (MediaType::All.as_str(), m.media_all),
            (MediaType::Video.as_str(), m.media_video),
            (MediaType::Image.as_str(), m.media_image),
        ]
    }
}

fn form(visitor: Visitor, order: Order, import: Import, wrong: Option<String>) -> Response {
    let m = Missions::of(visitor.language);
    let shell = Shell::new(visitor, Section::Missions, m.new_title);
    let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    show_with(status, &NewPage { shell, m, order, import, wrong })
}

pub(super) async fn page(visitor: Visitor) -> Response {
    form(visitor, Order::default(), Import::default(), None)
}

pub(super) async fn make(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Form(order): Form<Order>,
) -> Result<Response, Problem> {
    let m = Missions::of(visitor.language);
    let wanted = match order.read(m) {
        Ok(wanted) => wanted,
        Err(wrong) => return Ok(form(visitor, order, Import::default(), Some(wrong))),
    };
    match fleet.add(&wanted, order.queue.is_some()).await {
        Ok(made) => Ok(say(&made, m)),
        Err(lavra_fleet::Error::Invalid(wrong)) => {
            Ok(form(visitor, order, Import::default(), Some(wrong)))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn import(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Form(import): Form<Import>,
) -> Result<Response, Problem> {
    match fleet.import(&import.csv, import.queue.is_some()).await {
        Ok(made) => Ok(say(&made, Missions::of(visitor.language))),
        Err(lavra_fleet::Error::Invalid(wrong)) => {
            Ok(form(visitor, Order::default(), import, Some(wrong)))
        }
        Err(error) => Err(error.into()),
    }
}

fn say(made: &Made, m: &Missions) -> Response {
    let (added, known, queued) = (made.added.len(), made.known, made.queued);
    let said =
        format!("{added} {}, {known} {}, {queued} {}", m.made_added, m.made_known, m.made_queued);
    let state = if queued > 0 { "queued" } else { "bank" };
    back_to(&format!("/ui/missions?state={state}"), &said)
}
