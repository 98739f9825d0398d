//! How values travel: as the text that the input functions of their types read.

use std::borrow::Cow;

use crate::batch::{Part, Row};
use crate::table::{Column, Signature, Table};

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
        return Some(Cow::Borrowed(value));
    }
    let inner = &value[1..value.len() - 1];
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    // It was looked at when it came.
    serde_json::from_str::<String>(value).ok().map(Cow::Owned)
}
