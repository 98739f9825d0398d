//! Tables for spreadsheets.
//!
//! A spreadsheet takes a text that begins like a formula for one, and runs it. Such a text gets an
//! apostrophe before it, which spreadsheets do not show; everything else stands as it is. Rows are
//! read and sent a few at a time.

use std::future::Future;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::{Code, Problem};

/// How an answer is written; the header `Accept` says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    Json,
    Csv,
}

impl Format {
    /// What was asked for by the parameter, or else by the header.
    pub(crate) fn wanted(named: Option<Self>, headers: &HeaderMap) -> Self {
        let accepted =
            headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let kind = |part: &str| match part.split(';').next().unwrap_or_default().trim() {
            "text/csv" => Some(Self::Csv),
            "application/json" => Some(Self::Json),
            _ => None,
        };
        let first = accepted.flat_map(|value| value.split(',')).find_map(kind);
        named.or(first).unwrap_or(Self::Json)
    }
}

/// What stands in a field.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// A number, a time, a word of ours: as it is.
    Plain(String),
    /// What others have written.
    Text(String),
}

impl Cell {
    #[expect(clippy::needless_pass_by_value, reason = "numbers and words, which callers have")]
    pub(crate) fn plain(value: impl ToString) -> Self {
        Self::Plain(value.to_string())
    }

    pub(crate) fn text(value: impl Into<String>) -> Self {
        Self::Text(value.into())
    }

    /// Nothing, where there is nothing.
    pub(crate) fn maybe(value: Option<impl ToString>) -> Self {
        Self::Plain(value.map(|value| value.to_string()).unwrap_or_default())
    }

    pub(crate) fn maybe_text(value: Option<&str>) -> Self {
        Self::Text(value.unwrap_or_default().to_owned())
    }

    /// As JSON, which begins like no formula.
    pub(crate) fn json(value: impl Into<Value>) -> Self {
        Self::Plain(value.into().to_string())
    }

    fn written(self) -> String {
        match self {
            Self::Text(text) if begins_like_a_formula(&text) => format!("'{text}"),
            Self::Text(text) | Self::Plain(text) => text,
        }
    }
}

fn begins_like_a_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

pub(crate) type Row = Vec<Cell>;

/// Where rows come from, some at a time, until there are no more.
pub(crate) trait Rows: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Result<Vec<Row>, Problem>> + Send;
}

/// All of it at once.
pub(crate) struct Whole(pub(crate) Option<Vec<Row>>);

impl Rows for Whole {
    async fn next(&mut self) -> Result<Vec<Row>, Problem> {
        Ok(self.0.take().unwrap_or_default())
    }
}

/// Sends all rows under the names of their columns. What fails before the first row is a problem;
/// what fails later cuts the answer off, so that nobody takes a part for the whole.
pub(crate) async fn answer(
    name: &str,
    columns: &[&str],
    mut rows: impl Rows,
) -> Result<Response, Problem> {
    let mut first = written(vec![columns.iter().map(Cell::plain).collect()])?.to_vec();
    let some = rows.next().await?;
    let is_all = some.is_empty();
    first.extend_from_slice(&written(some)?);
    let rest = stream::unfold((rows, is_all), |(mut rows, is_over)| async move {
        if is_over {
            return None;
        }
        match rows.next().await {
            Ok(some) if some.is_empty() => None,
            Ok(some) => Some((written(some).map_err(cut_off), (rows, false))),
            Err(problem) => Some((Err(cut_off(problem)), (rows, true))),
        }
    });
    let body = Body::from_stream(stream::iter([Ok(Bytes::from(first))]).chain(rest));
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.csv\"")),
    ];
    Ok((headers, body).into_response())
}

#[expect(clippy::needless_pass_by_value, reason = "the stream hands it over like this")]
fn cut_off(problem: Problem) -> std::io::Error {
    tracing::error!(detail = problem.detail(), "a table was cut off");
    std::io::Error::other("the rest cannot be read")
}

fn written(rows: Vec<Row>) -> Result<Bytes, Problem> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::with_capacity(rows.len() * 200));
    for row in rows {
        let record = row.into_iter().map(Cell::written);
        writer.write_record(record).map_err(|error| unwritten(&error))?;
    }
    writer.into_inner().map(Bytes::from).map_err(|error| unwritten(&error))
}

fn unwritten(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Code::InternalError, format!("the table cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cells: Vec<Cell>) -> String {
        String::from_utf8(written(vec![cells]).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn what_begins_like_a_formula_is_made_a_text_and_the_rest_is_exact() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"] {
            assert!(Cell::text(text).written().starts_with('\''), "{text:?}");
        }
        assert_eq!(line(vec![Cell::plain(-5), Cell::text("a=1"), Cell::text("")]), "-5,a=1,\r\n");
        assert_eq!(line(vec![Cell::text("=cmd|' /C'!A0")]), "'=cmd|' /C'!A0\r\n");
    }

    #[test]
    fn quotes_commas_and_lines_stay_within_their_field() {
        let text = "a \"b\", c\r\nd";
        let bytes = line(vec![Cell::text(text), Cell::json(serde_json::json!({"a": "b,c"}))]);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes.as_bytes());
        let record = reader.records().next().unwrap().unwrap();
        assert_eq!((&record[0], &record[1]), (text, r#"{"a":"b,c"}"#));
    }

    #[test]
    fn the_parameter_wins_over_the_header_and_the_first_known_kind_over_others() {
        let accepting =
            |text: &'static str| HeaderMap::from_iter([(header::ACCEPT, text.parse().unwrap())]);
        for (text, wanted) in [
            ("text/csv", Format::Csv),
            ("text/html, text/csv;q=0.9, */*", Format::Csv),
            ("application/json, text/csv", Format::Json),
            ("*/*", Format::Json),
        ] {
            assert_eq!(Format::wanted(None, &accepting(text)), wanted, "{text}");
        }
        assert_eq!(Format::wanted(Some(Format::Json), &accepting("text/csv")), Format::Json);
    }
}
