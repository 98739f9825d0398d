//! One task of a plan: its state, what is missing, and its pages.

use std::ops::RangeInclusive;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use lavra_extract::Month;
use lavra_extract::look::{self, Outcome, PageLine, Shown, Which};
use lavra_extract::model::{ExtractionId, Status, Window};
use lavra_extract::source::Source;
use lavra_extract::store::{Scope, Slice, Store};
use serde::Deserialize;

use super::running::last_order;
use super::{extracted, say};
use crate::app::App;
use crate::path::Ids;
use crate::problem::{Code, Problem};
use crate::ui::asked::Asked;
use crate::ui::format::Format;
use crate::ui::json::shortened;
use crate::ui::page::{Said, Section, Shell, show as answer};
use crate::ui::texts::Extractions as Words;
use crate::ui::visitor::Visitor;

const PAGE: usize = 100;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Query {
    /// The last page of the part before.
    after: Option<i64>,
    /// Only those that are missing.
    missing: Option<String>,
}

#[derive(Template)]
#[template(path = "extraction.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is shown or not")]
struct TaskPage {
    shell: Shell,
    t: &'static Words,
    source: String,
    id: String,
    endpoint: String,
    month: String,
    slug: &'static str,
    state: &'static str,
    percent: i64,
    is_open: bool,
    verdict: String,
    error: Option<String>,
    facts: Vec<(&'static str, String)>,
    windows: Vec<WindowRow>,
    has_missing: bool,
    missing_count: String,
    missing_runs: String,
    has_more_runs: bool,
    rows: Vec<PageRow>,
    next: Option<i64>,
    is_first: bool,
    only_missing: bool,
    can_order: bool,
}

#[derive(Debug)]
struct WindowRow {
    number: i32,
    days: String,
    first_page: String,
    pages: String,
    records: String,
}

#[derive(Debug)]
struct PageRow {
    page: i64,
    number: String,
    tone: &'static str,
    outcome: &'static str,
    /// Stored, but not as it is announced now.
    is_stale: bool,
    failure: Option<String>,
    records: String,
    bytes: String,
    generation: String,
    iso: String,
    time: String,
    hash: String,
    has_body: bool,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Ids([source, id]): Ids<2>,
    visitor: Visitor,
    Asked(said): Asked<Said>,
    Asked(query): Asked<Query>,
) -> Result<Response, Problem> {
    let t = Words::of(visitor.language);
    let store = extracted(&app, &source).await?;
    let (shown, (pages, records, bytes)) = found(&*store, &source, ExtractionId(id)).await?;
    let only_missing = query.missing.is_some();
    let which = if only_missing { Which::Missing } else { Which::All };
    let after = query.after.unwrap_or(0);
    let part = look::pages(&*store, &shown.task.task_id, which, after, PAGE).await?;
    let last = last_order(&app.tasks, &source).await?;
    let task = &shown.task;
    let month = Month::of(task.data_date).to_string();
    let shell =
        Shell::new(visitor, Section::Extractions, format!("{} {month}", task.endpoint_name));
    let shell = shell.follows("extractions").saying(said.text());
    let f = &shell.f;
    let stored = format!(
        "{} {}, {} {}, {}",
        f.number(pages),
        t.cell_pages,
        f.number(records),
        t.cell_records,
        f.bytes(bytes)
    );
    let all = task.total_pages.unwrap_or(0);
    let percent =
        if task.status == Status::Complete { 100 } else { (pages * 100 / all.max(1)).min(99) };
    let page = TaskPage {
        slug: say::slug(task.status),
        state: say::name(task.status, t),
        percent,
        is_open: matches!(task.status, Status::Discovering | Status::Fetching),
        verdict: say::verdict(task.verdict.as_deref(), t, f),
        facts: facts(&shown, stored, t, &shell),
        windows: shown.windows.iter().map(|window| WindowRow::new(window, f)).collect(),
        has_missing: shown.missing > 0,
        missing_count: f.number(shown.missing),
        missing_runs: runs(&shown.missing_runs),
        has_more_runs: shown.missing > named(&shown.missing_runs),
        next: part.lines.last().filter(|_| part.has_more).map(|line| line.page),
        rows: part.lines.iter().map(|line| PageRow::new(line, t, f)).collect(),
        is_first: after <= 0,
        only_missing,
        can_order: Source::built_in_names().contains(&source.as_str())
            || last.is_some_and(|order| order.definition.is_some()),
        id: task.task_id.0.clone(),
        endpoint: task.endpoint_name.clone(),
        error: task.last_error.clone(),
        month,
        source,
        shell,
        t,
    };
    Ok(answer(&page))
}

/// The task, and how many pages, records and bytes of it are stored.
async fn found(
    store: &dyn Store,
    source: &str,
    id: ExtractionId,
) -> Result<(Shown, (i64, i64, i64)), Problem> {
    let Some(shown) = look::task(store, &id).await? else {
        let detail = format!("the plan of {source} has no task {:?}", id.0);
        return Err(Problem::new(Code::ExtractionNotFound, detail));
    };
    let (name, day) = (shown.task.endpoint_name.clone(), shown.task.data_date);
    let scope = Scope { endpoints: vec![name], from: day, to: day };
    let slice = Slice { status: None, after: None, limit: 1 };
    let progress = store.progress_slice(&scope, &slice).await?.pop();
    let sums = progress.map_or((0, 0, 0), |it| (it.pages, it.records, it.bytes));
    Ok((shown, sums))
}

fn facts(
    shown: &Shown,
    stored: String,
    t: &'static Words,
    shell: &Shell,
) -> Vec<(&'static str, String)> {
    let (task, f) = (&shown.task, &shell.f);
    let time = |at: Option<Timestamp>| at.map(|at| f.time(at));
    let announced = match (task.total_pages, task.total_records) {
        (Some(pages), Some(records)) => format!(
            "{} {}, {} {}",
            f.number(pages),
            t.cell_pages,
            f.number(records),
            t.cell_records
        ),
        _ => t.announced_unknown.to_owned(),
    };
    let yes_no = |yes: bool| if yes { shell.t.yes } else { shell.t.no };
    let all = [
        (t.announced, Some(announced)),
        (t.stored, Some(stored)),
        (t.is_final, Some(yes_no(task.is_final).to_owned())),
        (t.discoveries, Some(task.discoveries.to_string())),
        (t.attempts, (task.attempts > 0).then(|| task.attempts.to_string())),
        (t.failing_since, time(task.failing_since)),
        (t.next_attempt, time(task.next_attempt_at)),
        (t.discovered_at, time(task.discovered_at)),
        (t.updated, Some(f.time(task.updated_at))),
        (t.generation, Some(task.generation.to_string())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// `3, 7–12, 40`.
fn runs(runs: &[RangeInclusive<i64>]) -> String {
    let text = |run: &RangeInclusive<i64>| match (run.start(), run.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}–{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn named(runs: &[RangeInclusive<i64>]) -> i64 {
    runs.iter().map(|run| run.end() - run.start() + 1).sum()
}

impl WindowRow {
    fn new(window: &Window, f: &Format) -> Self {
        let total = |number: Option<i64>| number.map_or_else(|| "—".to_owned(), |n| f.number(n));
        Self {
            number: window.number,
            days: format!("{} – {}", window.first_day, window.last_day),
            first_page: f.number(window.base + 1),
            pages: total(window.totals.map(|totals| totals.pages)),
            records: total(window.totals.map(|totals| totals.records)),
        }
    }
}

impl PageRow {
    fn new(line: &PageLine, t: &Words, f: &Format) -> Self {
        let (tone, outcome) = match line.outcome {
            Outcome::Data => ("ok", t.outcome_data),
            Outcome::Empty => ("calm", t.outcome_empty),
            Outcome::Failed => ("bad", t.outcome_failed),
            Outcome::Missing => ("warn", t.outcome_missing),
        };
        let stored = line.stored.as_ref();
        let text = |of: fn(&lavra_extract::model::Page, &Format) -> String| {
            stored.map(|page| of(page, f)).unwrap_or_default()
        };
        Self {
            page: line.page,
            number: f.number(line.page),
            tone,
            outcome,
            is_stale: stored.is_some() && !line.counts,
            failure: line.failure.as_ref().map(|failure| {
                shortened(format_args!("{}: {}", f.time(failure.at), failure.error))
            }),
            records: text(|page, f| f.number(page.stored.records)),
            bytes: text(|page, f| f.bytes(page.bytes)),
            generation: text(|page, _| page.stored.generation.to_string()),
            iso: text(|page, f| f.iso(page.fetched_at)),
            time: text(|page, f| f.time(page.fetched_at)),
            hash: text(|page, _| page.content_hash.chars().take(12).collect()),
            has_body: stored.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_pages_are_named_as_ranges() {
        let all = [3..=3, 7..=12, 40..=40];
        assert_eq!(runs(&all), "3, 7–12, 40");
        assert_eq!(named(&all), 8);
        assert_eq!((runs(&[]).as_str(), named(&[])), ("", 0));
    }
}
