//! From the file to a source that cannot be wrong, with all mistakes and their lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use jiff::civil::date;
use jiff::tz::TimeZone;
use toml::Spanned;
use url::Url;

use super::answer::Rule;
use super::{
    Column, End, Endpoint, FanOut, Header, Limits, Period, Pointer, Request, Response, Source, file,
};

const MOST_IN_FLIGHT: i64 = 256;
const LONGEST_NAME: usize = 40;
/// PostgreSQL cuts longer names off.
const LONGEST_VIEW: usize = 63;
/// What the tables of a source end with.
const TABLES: [&str; 5] =
    ["extraction_tasks", "extraction_windows", "pages", "raw_responses", "missing_pages"];

/// A mistake in a source file, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub text: String,
}

/// All the mistakes of a source file, from top to bottom.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, mistake) in self.0.iter().enumerate() {
            let separator = if place == 0 { "" } else { "\n" };
            write!(f, "{separator}line {}: {}", mistake.line, mistake.text)?;
        }
        Ok(())
    }
}

pub(super) fn source(text: &str) -> Result<Source, Mistakes> {
    let file: file::File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line(text, span.start));
        Mistakes(vec![Mistake { line, text: error.message().to_owned() }])
    })?;
    let mut check = Check { text, mistakes: Vec::new() };
    let source = check.source(file);
    let Check { mut mistakes, .. } = check;
    mistakes.sort_by_key(|mistake| mistake.line);
    if mistakes.is_empty() { Ok(source) } else { Err(Mistakes(mistakes)) }
}

fn line(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// What the variables are named that a source may have sent.
const VARIABLES: &str = "LAVRA_SOURCE_";

/// Notes mistakes and goes on with something harmless, so that all are found at once.
struct Check<'a> {
    text: &'a str,
    mistakes: Vec<Mistake>,
}

impl Check<'_> {
    fn wrong(&mut self, span: &Range<usize>, text: impl Into<String>) {
        let line = line(self.text, span.start);
        self.mistakes.push(Mistake { line, text: text.into() });
    }

    fn source(&mut self, file: file::File) -> Source {
        self.name("a source", &file.name);
        let base_url = self.base_url(&file.base_url);
        let time_zone = file.time_zone.as_ref().map_or(TimeZone::UTC, |name| self.zone(name));
        let limits = self.limits(&file.limits);
        if file.endpoint.is_empty() {
            self.wrong(&(0..0), "there is no [[endpoint]]");
        }
        let mut names = BTreeSet::new();
        for endpoint in &file.endpoint {
            if !names.insert(endpoint.name.get_ref().clone()) {
                let text = format!("there are two endpoints {:?}", endpoint.name.get_ref());
                self.wrong(&endpoint.name.span(), text);
            }
        }
        for endpoint in &file.endpoint {
            self.view(&file.name, &endpoint.name);
            self.apart(endpoint, &file.endpoint);
        }
        let columns = file.columns.into_iter();
        let columns = columns.map(|(name, list)| (name, self.columns(&list))).collect();
        let endpoints = file.endpoint.into_iter();
        let endpoints =
            endpoints.map(|e| self.endpoint(e, &file.request, &limits, &columns)).collect();
        let date_format = file.request.date_format.as_ref();
        Source {
            title: if file.title.is_empty() { file.name.get_ref().clone() } else { file.title },
            name: file.name.into_inner(),
            base_url,
            time_zone,
            grace_days: self.whole(file.grace_days.as_ref(), 1, 0..=366, "grace_days"),
            request: Request {
                headers: self.headers(file.request.headers),
                date_format: date_format.map_or_else(|| "%Y-%m-%d".into(), |f| self.date_format(f)),
                page: file.request.page,
                page_size: file.request.page_size,
            },
            response: Response {
                records: self.pointer(&file.response.records),
                total: self.pointer(&file.response.total),
                pages: file.response.pages.as_ref().map(|pages| self.pointer(pages)),
            },
            filters: file.filters,
            rules: file.answer.into_iter().map(|answer| self.rule(answer)).collect(),
            limits,
            endpoints,
            text: self.text.to_owned(),
        }
    }

    fn endpoint(
        &mut self,
        file: file::Endpoint,
        request: &file::Request,
        limits: &Limits,
        columns: &BTreeMap<String, Vec<Column>>,
    ) -> Endpoint {
        self.name("an endpoint", &file.name);
        let path = file.path.get_ref();
        if !path.starts_with('/') || path.contains(['?', '#']) {
            let text = format!("path {path:?} must begin with / and has no query of its own");
            self.wrong(&file.path.span(), text);
        }
        let range = file.page_size_range.as_ref().map_or((1, 1_000_000), |range| {
            let (least, most) = *range.get_ref();
            if least < 1 || most < least {
                self.wrong(&range.span(), "page_size_range is [least, most], from 1 on");
            }
            (least, most)
        });
        let page_size = *file.page_size.get_ref();
        if page_size < range.0 || page_size > range.1 {
            let text = format!("page_size {page_size} is outside of {} to {}", range.0, range.1);
            self.wrong(&file.page_size.span(), text);
        }
        let first_month = file.first_month.get_ref().parse().unwrap_or_else(|error| {
            self.wrong(&file.first_month.span(), format!("first_month: {error}"));
            crate::Month::of(date(2000, 1, 1))
        });
        let in_flight = file.in_flight.as_ref().map(|n| {
            self.whole(Some(n), 1, 1..=limits.in_flight as i64, "in_flight of an endpoint") as usize
        });
        Endpoint {
            period: self.period(&file, request),
            first_month,
            page_size,
            page_size_range: range,
            in_flight,
            opt_in: file.opt_in,
            query: file.query.into_iter().map(|(name, value)| (name, value.to_string())).collect(),
            fan_out: file.fan_out.map(|fan_out| self.fan_out(fan_out)),
            count: file.count.as_ref().map(|count| self.pointer(count)),
            key: file.key.iter().map(|key| self.pointer(key)).collect(),
            columns: file.columns.map_or_else(Vec::new, |name| {
                columns.get(name.get_ref()).cloned().unwrap_or_else(|| {
                    let text = format!("there is no list {:?} under [columns]", name.get_ref());
                    self.wrong(&name.span(), text);
                    Vec::new()
                })
            }),
            rules: file.answer.into_iter().map(|answer| self.rule(answer)).collect(),
            path: file.path.into_inner(),
            name: file.name.into_inner(),
        }
    }

    /// The records of an endpoint are a view, `psa.{source}_{endpoint}`.
    fn view(&mut self, source: &Spanned<String>, endpoint: &Spanned<String>) {
        let (source, name) = (source.get_ref(), endpoint.get_ref());
        if TABLES.contains(&name.as_str()) {
            let text = format!("{name:?} cannot name an endpoint: psa.{source}_{name} is a table");
            self.wrong(&endpoint.span(), text);
        }
        if source.len() + 1 + name.len() > LONGEST_VIEW {
            let text = format!(
                "psa.{source}_{name} is too long for a view's name: at most {LONGEST_VIEW} letters"
            );
            self.wrong(&endpoint.span(), text);
        }
    }

    /// A view takes the tasks of a fan-out by how their names begin, so no other's may begin like that.
    fn apart(&mut self, endpoint: &file::Endpoint, all: &[file::Endpoint]) {
        let parts = |of: &file::Endpoint| {
            let label = of.fan_out.as_ref()?.label.get_ref();
            Some(format!("{}_{label}_", of.name.get_ref()))
        };
        let name = endpoint.name.get_ref();
        let own = parts(endpoint).unwrap_or_else(|| name.clone());
        for other in all.iter().filter(|other| other.name.get_ref() != name) {
            if let Some(parts) = parts(other).filter(|parts| own.starts_with(parts.as_str())) {
                let text = format!(
                    "{name:?} cannot name an endpoint: what begins with {parts:?} is of the fan-out of {:?}",
                    other.name.get_ref()
                );
                self.wrong(&endpoint.name.span(), text);
            }
        }
    }

    fn columns(&mut self, list: &[file::Column]) -> Vec<Column> {
        let mut seen = BTreeSet::new();
        for column in list {
            let name = column.name.get_ref();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !name.starts_with(|c: char| c.is_ascii_alphabetic())
                || name.len() > LONGEST_NAME
                || !name.chars().all(is_plain)
            {
                let text = format!(
                    "{name:?} cannot name a column: letters, digits and _, beginning with a \
                     letter, at most {LONGEST_NAME}"
                );
                self.wrong(&column.name.span(), text);
            }
            let name = name.to_ascii_lowercase();
            if crate::views::OWN_COLUMNS.contains(&name.as_str()) {
                let text = format!("each view has a column {name} already");
                self.wrong(&column.name.span(), text);
            } else if !seen.insert(name) {
                let text = format!("the column {} stands twice", column.name.get_ref());
                self.wrong(&column.name.span(), text);
            }
        }
        let all = list.iter().map(|column| Column {
            name: column.name.get_ref().clone(),
            at: match &column.at {
                Some(at) => self.pointer(at),
                None => Pointer(vec![column.name.get_ref().clone()]),
            },
            kind: column.kind,
        });
        all.collect()
    }

    fn period(&mut self, file: &file::Endpoint, request: &file::Request) -> Period {
        let at = file.period.as_ref().map_or_else(|| file.name.span(), Spanned::span);
        let period = file.period.as_ref().map_or(file::Period::Month, |period| *period.get_ref());
        let from = file.from.clone().or_else(|| request.from.clone());
        let to = file.to.clone().or_else(|| request.to.clone());
        let mut needed = |value: Option<String>, name: &str| {
            value.unwrap_or_else(|| {
                self.wrong(&at, format!("{name} is missing: the name of its parameter"));
                String::new()
            })
        };
        let found = match period {
            file::Period::Month => Period::Month {
                from: needed(from, "from"),
                to: needed(to, "to"),
                end: match file.end.as_ref().map(|end| *end.get_ref()) {
                    Some(file::End::Exclusive) => End::Exclusive,
                    Some(file::End::Inclusive) | None => End::Inclusive,
                },
            },
            file::Period::Year => Period::Year {
                parameter: needed(file.year.as_ref().map(|year| year.get_ref().clone()), "year"),
            },
            file::Period::Snapshot => Period::Snapshot {
                to: needed(to, "to"),
                horizon_days: file.horizon_days.as_ref().map_or(0, |days| *days.get_ref()),
            },
        };
        self.only(period == file::Period::Month, file.end.as_ref(), "end", "month");
        self.only(period == file::Period::Year, file.year.as_ref(), "year", "year");
        let horizon = file.horizon_days.as_ref();
        self.only(period == file::Period::Snapshot, horizon, "horizon_days", "snapshot");
        self.whole(horizon, 0, 0..=3660, "horizon_days");
        found
    }

    fn only<T>(&mut self, is_its: bool, value: Option<&Spanned<T>>, key: &str, period: &str) {
        if let (false, Some(value)) = (is_its, value) {
            self.wrong(&value.span(), format!("{key} is for period = {period:?} alone"));
        }
    }

    fn fan_out(&mut self, file: file::FanOut) -> FanOut {
        self.name("a label", &file.label);
        let mut seen = BTreeSet::new();
        for value in &file.values {
            let text = value.get_ref().to_string();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(is_plain) {
                let what = format!("a value of a fan-out is part of a name: {text:?} cannot be");
                self.wrong(&value.span(), what);
            } else if !seen.insert(text.clone()) {
                self.wrong(&value.span(), format!("the value {text} stands twice"));
            }
        }
        FanOut {
            parameter: file.parameter,
            label: file.label.into_inner(),
            values: file.values.iter().map(|value| value.get_ref().to_string()).collect(),
        }
    }

    fn rule(&mut self, file: file::Answer) -> Rule {
        let status = self.whole(Some(&file.status), 0, 100..=599, "status");
        if file.contains.as_ref().is_some_and(|text| text.get_ref().is_empty()) {
            self.wrong(&file.status.span(), "contains has no text");
        }
        Rule {
            status: status as u16,
            page: file.page,
            contains: file.contains.map(Spanned::into_inner),
            without_body: file.body.is_some(),
            means: file.means,
            after: file.after,
        }
    }

    fn limits(&mut self, file: &file::Limits) -> Limits {
        let mut whole = |value: &Option<Spanned<i64>>, usual, most, name| {
            self.whole(value.as_ref(), usual, 1..=most, name)
        };
        Limits {
            in_flight: whole(&file.in_flight, 4, MOST_IN_FLIGHT, "in_flight") as usize,
            timeout: seconds(whole(&file.timeout_seconds, 60, 3600, "timeout_seconds")),
            connect: seconds(whole(&file.connect_seconds, 10, 600, "connect_seconds")),
            max_pages: whole(&file.max_pages, 100_000, 1_000_000, "max_pages"),
            max_body: (whole(&file.max_body_mb, 64, 1024, "max_body_mb") as usize) << 20,
        }
    }

    fn whole(
        &mut self,
        value: Option<&Spanned<i64>>,
        usual: i64,
        range: std::ops::RangeInclusive<i64>,
        name: &str,
    ) -> i64 {
        let Some(value) = value else { return usual };
        if !range.contains(value.get_ref()) {
            let text = format!(
                "{name} {} is outside of {} to {}",
                value.get_ref(),
                range.start(),
                range.end()
            );
            self.wrong(&value.span(), text);
        }
        *value.get_ref()
    }

    /// Names become names of tables and files.
    fn name(&mut self, what: &str, name: &Spanned<String>) {
        let text = name.get_ref();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !text.starts_with(|c: char| c.is_ascii_lowercase())
            || text.len() > LONGEST_NAME
            || !text.chars().all(is_plain)
        {
            let text = format!(
                "{text:?} cannot name {what}: small letters, digits and _, beginning with a \
                 letter, at most {LONGEST_NAME}"
            );
            self.wrong(&name.span(), text);
        }
    }

    fn base_url(&mut self, text: &Spanned<String>) -> Url {
        match Url::parse(text.get_ref()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.query().is_none() => url,
            Ok(_) => {
                self.wrong(&text.span(), "base_url is http:// or https://, without a query");
                nowhere()
            }
            Err(error) => {
                self.wrong(&text.span(), format!("base_url is no URL: {error}"));
                nowhere()
            }
        }
    }

    fn zone(&mut self, name: &Spanned<String>) -> TimeZone {
        TimeZone::get(name.get_ref()).unwrap_or_else(|_| {
            let text = format!("there is no time zone {:?}", name.get_ref());
            self.wrong(&name.span(), text);
            TimeZone::UTC
        })
    }

    fn date_format(&mut self, format: &Spanned<String>) -> String {
        let text = format.get_ref();
        let day = jiff::fmt::strtime::format(text, date(2024, 2, 29));
        if day.as_ref().is_ok_and(|day| day == text) || day.is_err() {
            let what = format!("date_format {text:?} writes no date: %Y%m%d, %Y-%m-%d, …");
            self.wrong(&format.span(), what);
        }
        text.clone()
    }

    /// A definition may come from somebody else, and what it names is sent to wherever it says: so of the
    /// environment only what is meant for sources.
    fn headers(&mut self, headers: BTreeMap<String, Spanned<String>>) -> BTreeMap<String, Header> {
        let read = |(name, value): (String, Spanned<String>)| {
            let header = match value.get_ref().strip_prefix("env:") {
                Some(variable) if variable.starts_with(VARIABLES) => {
                    Header::Variable(variable.to_owned())
                }
                Some(variable) => {
                    let what = format!(
                        "env:{variable}: only variables whose names begin with {VARIABLES} are sent, such as \
                         env:{VARIABLES}{variable}"
                    );
                    self.wrong(&value.span(), what);
                    Header::Plain(String::new())
                }
                None => Header::Plain(value.into_inner()),
            };
            (name, header)
        };
        headers.into_iter().map(read).collect()
    }

    fn pointer(&mut self, text: &Spanned<String>) -> Pointer {
        let path = text.get_ref();
        if path.is_empty() {
            return Pointer(Vec::new());
        }
        let Some(parts) = path.strip_prefix('/') else {
            let what = format!("{path:?} is no JSON pointer: it begins with /, as in /data");
            self.wrong(&text.span(), what);
            return Pointer(Vec::new());
        };
        Pointer(parts.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.max(1) as u64)
}

/// Stands in for a URL that was wrong.
fn nowhere() -> Url {
    #[expect(clippy::expect_used, reason = "a constant")]
    Url::parse("http://localhost").expect("a URL")
}
