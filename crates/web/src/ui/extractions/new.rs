//! A new run: what is wanted, then the plan and what it costs, then its start.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lavra_extract::forecast::{Forecast, forecast};
use lavra_extract::model::Status;
use lavra_extract::source::Source;
use lavra_extract::task::{Extract, Order};
use lavra_extract::{Error, Month};
use serde::Deserialize;

use super::order::{make, month};
use super::running::last_order;
use crate::access::Form;
use crate::app::App;
use crate::problem::Problem;
use crate::ui::asked::Asked;
use crate::ui::page::{Section, Shell, back_to, show_with};
use crate::ui::texts::Extractions as Words;
use crate::ui::visitor::Visitor;

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Verb {
    #[default]
    Plan,
    Start,
}

/// What was typed, so that a mistake costs nobody the rest of it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Typed {
    #[serde(rename = "do", default)]
    verb: Verb,
    #[serde(default)]
    source: String,
    /// A source that does not come with the program.
    other: Option<String>,
    #[serde(default)]
    definition: String,
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    #[serde(default)]
    endpoint: Vec<String>,
    refresh: Option<String>,
    #[serde(default)]
    base_url: String,
}

impl Typed {
    fn definition(&self) -> Option<&str> {
        Some(self.definition.as_str()).filter(|text| !text.trim().is_empty())
    }

    /// The source that is meant, as far as it is known.
    fn source(&self) -> Option<Result<Source, Error>> {
        match self.definition() {
            Some(text) => Some(Source::parse(text).map_err(Error::from)),
            None => Source::built_in(&self.source).map(|source| source.map_err(Error::from)),
        }
    }

    fn order(&self) -> Result<Order, Error> {
        let source = self.source().unwrap_or_else(|| {
            Err(Error::Invalid(format!("there is no source {:?}", self.source)))
        })?;
        let needed = |text: &str| {
            let missing = || Error::Invalid("from and to are needed, as 2024-01".into());
            month(text)?.ok_or_else(missing)
        };
        Ok(Order {
            source: source.name,
            definition: self.definition().map(str::to_owned),
            from: needed(&self.from)?,
            to: needed(&self.to)?,
            endpoints: self.endpoint.clone(),
            refresh: self.refresh.is_some(),
            retry: false,
            base_url: Some(self.base_url.trim().to_owned()).filter(|url| !url.is_empty()),
        })
    }

    fn has_more(&self) -> bool {
        self.refresh.is_some() || !self.base_url.is_empty()
    }

    /// Each field with its value, for the start to be what was planned.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("source", self.source.clone()),
            ("definition", self.definition.clone()),
            ("from", self.from.clone()),
            ("to", self.to.clone()),
            ("base_url", self.base_url.clone()),
        ];
        fields.extend(self.other.iter().map(|other| ("other", other.clone())));
        fields.extend(self.refresh.iter().map(|yes| ("refresh", yes.clone())));
        fields.extend(self.endpoint.iter().map(|name| ("endpoint", name.clone())));
        fields
    }
}

#[derive(Template)]
#[template(path = "new_extraction.html")]
struct NewPage {
    shell: Shell,
    t: &'static Words,
    /// Those that can be chosen, and whether it is the one.
    sources: Vec<(String, bool)>,
    typed: Typed,
    endpoints: Vec<EndpointBox>,
    plan: Option<PlanView>,
    wrong: Option<String>,
}

#[derive(Debug)]
struct EndpointBox {
    name: String,
    /// How many tasks a month has of it.
    series: usize,
    /// Why it is only read when it is named.
    opt_in: Option<String>,
    is_chosen: bool,
}

#[derive(Debug)]
struct PlanView {
    tasks: String,
    new: String,
    requests: String,
    at_once: usize,
    is_nothing: bool,
    rows: Vec<PlanRow>,
}

#[derive(Debug)]
struct PlanRow {
    endpoint: String,
    months: String,
    new: String,
    complete: String,
    requests: String,
}

async fn form(
    app: &App,
    visitor: Visitor,
    typed: Typed,
    plan: Result<Option<Forecast>, String>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let shell = Shell::new(visitor, Section::Extractions, t.new_extraction);
    let is_other = typed.other.is_some();
    let known = lavra_extract::sources(&app.database).await?;
    let sources = known.into_iter().map(|known| {
        let is_chosen = !is_other && known.name == typed.source;
        (known.name, is_chosen)
    });
    let endpoints = match typed.source() {
        Some(Ok(source)) => boxes(&source, &typed.endpoint),
        Some(Err(_)) | None => Vec::new(),
    };
    let status = if plan.is_err() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let (plan, wrong) = match plan {
        Ok(plan) => (plan.map(|forecast| PlanView::new(&forecast, &shell)), None),
        Err(wrong) => (None, Some(wrong)),
    };
    let page = NewPage { sources: sources.collect(), shell, t, typed, endpoints, plan, wrong };
    Ok(show_with(status, &page))
}

fn boxes(source: &Source, chosen: &[String]) -> Vec<EndpointBox> {
    let a_box = |endpoint: &lavra_extract::source::Endpoint| EndpointBox {
        series: endpoint.all_series().count(),
        opt_in: endpoint.opt_in.clone(),
        is_chosen: chosen.contains(&endpoint.name),
        name: endpoint.name.clone(),
    };
    source.endpoints.iter().map(a_box).collect()
}

/// What a plan has of one endpoint.
#[derive(Default)]
struct Sums {
    months: i64,
    new: i64,
    complete: i64,
    requests: i64,
}

impl PlanView {
    fn new(forecast: &Forecast, shell: &Shell) -> Self {
        let f = &shell.f;
        let mut of_endpoint: BTreeMap<&str, Sums> = BTreeMap::new();
        for task in &forecast.tasks {
            let sums = of_endpoint.entry(&task.planned.endpoint_name).or_default();
            sums.months += 1;
            sums.new += i64::from(task.status.is_none());
            sums.complete += i64::from(task.status == Some(Status::Complete));
            sums.requests += task.requests;
        }
        let rows = of_endpoint.into_iter().map(|(endpoint, sums)| PlanRow {
            endpoint: endpoint.to_owned(),
            months: f.number(sums.months),
            new: f.number(sums.new),
            complete: f.number(sums.complete),
            requests: f.number(sums.requests),
        });
        Self {
            tasks: f.number(forecast.tasks.len() as i64),
            new: f.number(forecast.new_tasks() as i64),
            requests: f.number(forecast.requests()),
            at_once: forecast.in_flight,
            is_nothing: forecast.requests() == 0,
            rows: rows.collect(),
        }
    }
}

/// The form for a source: where its last run went, and for the month that is over.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(mut typed): Asked<Typed>,
) -> Result<Response, Problem> {
    if typed.source.is_empty() && typed.other.is_none() {
        let first = Source::built_in_names().first().copied().unwrap_or_default();
        first.clone_into(&mut typed.source);
    }
    let last = last_order(&app.tasks, &typed.source).await?;
    if let Some(last) = last.filter(|_| visitor.may_operate) {
        typed.definition = last.definition.unwrap_or_default();
        typed.base_url = last.base_url.unwrap_or_default();
    }
    let today = app.database.clock().now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let before = today.first_of_month().yesterday().map_or(today, |day| day);
    for month in [&mut typed.from, &mut typed.to] {
        if month.is_empty() {
            *month = Month::of(before).to_string();
        }
    }
    form(&app, visitor, typed, Ok(None)).await
}

pub(super) async fn act(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Form(typed): Form<Typed>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    match carry_out(&app, &typed).await {
        Ok(Outcome::Planned(plan)) => form(&app, visitor, typed, Ok(Some(plan))).await,
        Ok(Outcome::Started { source }) => {
            Ok(back_to(&format!("/ui/extractions/{source}"), t.done_started))
        }
        Err(error @ (Error::Invalid(_) | Error::Source(_))) => {
            form(&app, visitor, typed, Err(error.to_string())).await
        }
        Err(error) => Err(error.into()),
    }
}

enum Outcome {
    Planned(Forecast),
    Started { source: String },
}

async fn carry_out(app: &App, typed: &Typed) -> Result<Outcome, Error> {
    let order = typed.order()?;
    // What makes no sense is told before a task is made of it.
    let plan = forecast(&app.database, &order).await?;
    match typed.verb {
        Verb::Plan => Ok(Outcome::Planned(plan)),
        Verb::Start => {
            make::<Extract>(app, &order).await?;
            Ok(Outcome::Started { source: order.source })
        }
    }
}
