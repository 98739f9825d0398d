//! Settings: those that people change while it runs, and those that are fixed.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use jiff::SignedDuration;
use lavra_fleet::Fleet;
use lavra_fleet::settings::{Adjustable, ProxyFailures, Timing};
use serde::Deserialize;

use super::asked::Asked;
use super::format::Format;
use super::page::{Said, Section, Shell, back_to, show_with};
use super::texts::{Common, Settings};
use super::visitor::Visitor;
use crate::access::Form;
use crate::app::Site;
use crate::problem::Problem;

pub(crate) fn routes() -> Router<Site> {
    Router::new().route("/ui/settings", get(show).post(save))
}

/// What was typed, so that a mistake costs nobody the rest of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    session_limit: String,
    max_retries: String,
    proxy_failures: String,
}

impl Fields {
    fn of(settings: Adjustable) -> Self {
        Self {
            session_limit: settings.session_limit.to_string(),
            max_retries: settings.max_retries.to_string(),
            proxy_failures: settings.proxy_failures.as_str().to_owned(),
        }
    }

    fn read(&self, t: &Settings) -> Result<Adjustable, String> {
        let number = |text: &str, most: std::ops::RangeInclusive<i32>| {
            text.trim().parse().ok().filter(|number| most.contains(number))
        };
        let failures: Option<ProxyFailures> = self.proxy_failures.parse().ok();
        Ok(Adjustable {
            session_limit: number(&self.session_limit, 1..=1000).ok_or(t.wrong_limit)?,
            max_retries: number(&self.max_retries, 0..=20).ok_or(t.wrong_retries)?,
            proxy_failures: failures.ok_or(t.wrong_failures)?,
        })
    }
}

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    shell: Shell,
    t: &'static Settings,
    fields: Fields,
    wrong: Option<String>,
    timing: Vec<(&'static str, String, &'static str)>,
}

fn page(
    visitor: Visitor,
    fleet: &Fleet,
    fields: Fields,
    wrong: Option<String>,
    said: Said,
) -> Response {
    let language = visitor.language;
    let t = Settings::of(language);
    let shell = Shell::new(visitor, Section::Settings, Common::of(language).nav_settings);
    let shell = shell.saying(said.text());
    let status = if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let timing = timing(&fleet.timing, t, &shell.f);
    show_with(status, &SettingsPage { shell, t, fields, wrong, timing })
}

/// Each parameter as the file names it, its value, and what it means.
fn timing(
    timing: &Timing,
    t: &'static Settings,
    format: &Format,
) -> Vec<(&'static str, String, &'static str)> {
    let Timing {
        timeout_session,
        timeout_job,
        polling_session,
        polling_job,
        polling_queue,
        max_proxy_failures,
        close_patience,
        stop_patience,
        worker_patience,
        writer_silence,
        backoff: (first, last),
        progress_every,
        heartbeat,
        stale,
        call,
        test_every,
    } = *timing;
    let span = |time: Duration| format.span(SignedDuration::try_from(time).unwrap_or_default());
    vec![
        ("timeout_session_ms", span(timeout_session), t.timeout_session),
        ("timeout_job_ms", span(timeout_job), t.timeout_job),
        ("polling_session_ms", span(polling_session), t.polling_session),
        ("polling_job_ms", span(polling_job), t.polling_job),
        ("polling_queue_ms", span(polling_queue), t.polling_queue),
        ("max_proxy_failures", max_proxy_failures.to_string(), t.max_proxy_failures),
        ("close_patience_ms", span(close_patience), t.close_patience),
        ("stop_patience_ms", span(stop_patience), t.stop_patience),
        ("worker_patience_ms", span(worker_patience), t.worker_patience),
        ("writer_silence_ms", span(writer_silence), t.writer_silence),
        ("backoff_…_ms", format!("{} – {}", span(first), span(last)), t.backoff),
        ("progress_every_ms", span(progress_every), t.progress_every),
        ("heartbeat_ms", span(heartbeat), t.heartbeat),
        ("stale_ms", span(stale), t.stale),
        ("call_ms", span(call), t.call),
        ("test_every_ms", span(test_every), t.test_every),
    ]
}

async fn show(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
) -> Result<Response, Problem> {
    let settings = fleet.store.settings().await?;
    Ok(page(visitor, &fleet, Fields::of(settings), None, said))
}

async fn save(
    State(fleet): State<Fleet>,
    visitor: Visitor,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    let t = Settings::of(visitor.language);
    let saved = match fields.read(t) {
        Err(wrong) => Err(wrong),
        Ok(settings) => match fleet.set_settings(settings).await {
            Ok(()) => Ok(()),
            Err(lavra_fleet::Error::Invalid(wrong)) => Err(wrong),
            Err(error) => return Err(error.into()),
        },
    };
    match saved {
        Ok(()) => Ok(back_to("/ui/settings", t.saved)),
        Err(wrong) => Ok(page(visitor, &fleet, fields, Some(wrong), Said::default())),
    }
}
