//! How values travel: as the text that the input functions of their types read.

use std::borrow::Cow;

use crate::batch::{Part, Row};
use crate::table::{Column, Sameness, Signature, Table};

/// The values of a row, with the whole element last where a column takes that.
pub(super) fn texts<'a>(
    table: &'a Table,
    part: &'a Part<'_>,
    signature: &'a Signature,
    row: &'a Row,
) -> impl Iterator<Item = Option<Cow<'a, str>>> {
    let columns = signature.iter().map(|place| &table.columns[*place]);
    let values = columns.zip(part.batch.values(row)).map(|(column, value)| text(column, value));
    let whole = table.whole.map(|_| Some(Cow::Borrowed(part.batch.text(row))));
    values.chain(whole)
}

/// A JSON value as text: without its quotes where it is a string, unless the column is JSON itself.
fn text<'a>(column: &Column, value: &'a str) -> Option<Cow<'a, str>> {
    if value == "null" {
        return None;
    }
    if column.is_json || column.is_list || !value.starts_with('"') {
        let is_whole = column.sameness == Sameness::Integer;
        return Some(Cow::Borrowed(if is_whole { whole(value) } else { value }));
    }
    let inner = &value[1..value.len() - 1];
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    // It was looked at when it came.
    serde_json::from_str::<String>(value).ok().map(Cow::Owned)
}

/// A number without a fraction of zeros, which many programs write after whole numbers.
fn whole(number: &str) -> &str {
    match number.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole,
        _ => number,
    }
}

/// Adds a row in the text format of COPY.
pub(super) fn line<'a>(values: impl Iterator<Item = Option<Cow<'a, str>>>, lines: &mut Vec<u8>) {
    for (place, value) in values.enumerate() {
        if place > 0 {
            lines.push(b'\t');
        }
        match value {
            None => lines.extend_from_slice(b"\\N"),
            Some(text) => escape(text.as_bytes(), lines),
        }
    }
    lines.push(b'\n');
}

fn escape(text: &[u8], lines: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r'))
    {
        lines.extend_from_slice(&rest[..at]);
        lines.push(b'\\');
        lines.push(match rest[at] {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            other => other,
        });
        rest = &rest[at + 1..];
    }
    lines.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_copy_is_escaped() {
        let mut lines = Vec::new();
        let values = [Some("a\tb\\.\r\n"), None, Some(""), Some("\\N")];
        line(values.into_iter().map(|value| value.map(Cow::Borrowed)), &mut lines);
        assert_eq!(String::from_utf8(lines).unwrap(), "a\\tb\\\\.\\r\\n\t\\N\t\t\\\\N\n");
    }
}
