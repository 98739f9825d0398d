//! The one place that decides what reaches stdout and stderr.

use std::io::{IsTerminal, Write};

pub(crate) use comfy_table::{Cell, Color};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Printer {
    json: bool,
}

#[expect(clippy::unused_self, reason = "whoever prints must have been given the printer")]
impl Printer {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person watches, so that bars make sense.
    pub(crate) fn is_watched(&self) -> bool {
        !self.json && std::io::stderr().is_terminal()
    }

    /// Data. A closed pipe (`| head`) is the reader's right.
    pub(crate) fn data(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _closed_pipe = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    pub(crate) fn json(&self, value: &Value) {
        let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
        self.data(&text);
    }

    /// As JSON if that was asked for, as a table otherwise.
    pub(crate) fn table(&self, value: &Value, head: &[&str], rows: Vec<Vec<String>>) {
        let cells = rows.into_iter().map(|row| row.into_iter().map(Cell::new).collect());
        self.cells(value, head, cells.collect());
    }

    /// The same with cells that may have a colour, for a terminal.
    pub(crate) fn cells(&self, value: &Value, head: &[&str], rows: Vec<Vec<Cell>>) {
        if self.json {
            self.json(value);
            return;
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if !std::io::stdout().is_terminal() {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        table.set_header(head);
        table.add_rows(rows);
        self.data(&table.to_string());
    }

    /// The columns of the terminal that data goes to, if it is one.
    pub(crate) fn width(&self) -> Option<usize> {
        let is_shown = !self.json && std::io::stdout().is_terminal();
        if is_shown { Table::new().width().map(usize::from) } else { None }
    }

    /// Anything that is not data.
    pub(crate) fn note(&self, text: &str) {
        let _closed = writeln!(std::io::stderr(), "{text}");
    }

    pub(crate) fn error(&self, error: &anyhow::Error) {
        let code = crate::exit::code(error);
        let detail = told(error);
        if self.json {
            let value = serde_json::json!({ "error": { "code": code, "detail": detail } });
            let _closed = writeln!(std::io::stderr(), "{value}");
        } else {
            let _closed = writeln!(std::io::stderr(), "error[{code}]: {detail}");
        }
    }
}

/// An error and what led to it, each said once: some tell their cause in their own words already.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // What DuckDB's C interface says of every failure, beside its words.
        let says_nothing = cause.starts_with("Error code ");
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) && !says_nothing {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = anyhow::anyhow!("no such file");
        let told_already = cause.context("could not open x: no such file; make it");
        assert_eq!(told(&told_already), "could not open x: no such file; make it");
        assert_eq!(
            told(&told_already.context("the start")),
            "the start: could not open x: no such file; make it"
        );
        let of_duckdb = anyhow::anyhow!("Error code 1: Unknown error code").context("IO Error");
        assert_eq!(told(&of_duckdb), "IO Error");
    }
}
