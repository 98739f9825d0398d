//! How values travel: as the text that each engine reads as the type of the column, with every digit that
//! came.

use std::borrow::Cow;

use crate::batch::{Part, Row};
use crate::table::{Column, Sameness, Signature, Table};

/// The values of a row, with the whole element last where a column takes that.
pub(crate) fn of<'a>(
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
