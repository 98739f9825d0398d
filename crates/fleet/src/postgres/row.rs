//! Rows as JSON: what the types of `model` and the columns make of each other.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::error::{Error, Result};
use crate::model::{LogEntry, Mission, Proxy, Worker, Writer};

/// What stands for a time that SQL of others left out.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// A type that is read from a row of its table. The specification lets columns be NULL that have a default,
/// and an older program may have written words that we do not know: neither may hide the row.
pub(super) trait FromRow: DeserializeOwned {
    fn mend(row: &mut Map<String, Value>);
}

pub(super) fn read<T: FromRow>(text: &str) -> Result<T> {
    let unreadable = |error: serde_json::Error| Error::Unreadable(error.to_string());
    let mut row: Map<String, Value> = serde_json::from_str(text).map_err(unreadable)?;
    T::mend(&mut row);
    serde_json::from_value(Value::Object(row)).map_err(unreadable)
}

fn fill(row: &mut Map<String, Value>, column: &str, value: impl Into<Value>) {
    if row.get(column).is_none_or(Value::is_null) {
        row.insert(column.to_owned(), value.into());
    }
}

impl FromRow for Mission {
    fn mend(row: &mut Map<String, Value>) {
        fill(row, "retry_count", 0);
        fill(row, "created_at", LONG_AGO);
        let code = row.get("error_code").and_then(Value::as_str);
        if code.is_some_and(|code| code.parse::<ErrorCode>().is_err()) {
            row.insert("error_code".to_owned(), Value::Null);
        }
        if let Some(Value::Array(languages)) = row.get_mut("languages") {
            languages.retain(Value::is_string);
        }
    }
}

impl FromRow for Worker {
    fn mend(row: &mut Map<String, Value>) {
        fill(row, "active", false);
        fill(row, "created_at", LONG_AGO);
        fill(row, "updated_at", LONG_AGO);
    }
}

impl FromRow for Proxy {
    fn mend(row: &mut Map<String, Value>) {
        fill(row, "active", false);
        fill(row, "fail_count", 0);
        fill(row, "created_at", LONG_AGO);
    }
}

impl FromRow for Writer {
    fn mend(row: &mut Map<String, Value>) {
        fill(row, "active", false);
        fill(row, "created_at", LONG_AGO);
        fill(row, "updated_at", LONG_AGO);
    }
}

impl FromRow for LogEntry {
    fn mend(row: &mut Map<String, Value>) {
        fill(row, "timestamp", LONG_AGO);
        fill(row, "details", Map::new());
        if let Some(details) = row.get_mut("details").filter(|details| !details.is_object()) {
            let said = details.take();
            *details = Value::Object(Map::from_iter([("details".to_owned(), said)]));
        }
    }
}

/// The row of one step, for `jsonb_to_recordset`.
pub(super) fn of_step(number: usize, row: &impl Serialize) -> Result<Value> {
    let mut value =
        serde_json::to_value(row).map_err(|error| Error::Unreadable(error.to_string()))?;
    if let Value::Object(columns) = &mut value {
        columns.insert("n".to_owned(), number.into());
    }
    Ok(value)
}

/// Without U+0000, which PostgreSQL's texts cannot hold: answers of others may.
pub(super) fn clean(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', "\u{FFFD}"),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains('\0')) {
                let all = std::mem::take(fields).into_iter();
                *fields = all.map(|(k, v)| (k.replace('\0', "\u{FFFD}"), v)).collect();
            }
            fields.values_mut().for_each(clean);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_text_may_hold_is_replaced_wherever_it_stands() {
        let mut value = json!({ "a\0": ["b\0", { "c": "\0" }], "d": 1 });
        clean(&mut value);
        let expected = json!({ "a\u{FFFD}": ["b\u{FFFD}", { "c": "\u{FFFD}" }], "d": 1 });
        assert_eq!(value, expected);
    }
}
