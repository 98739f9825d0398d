//! What a table must be like to take elements like these.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::order::Destination;
use crate::row::{Caps, examine};

/// Columns that a table is made with at most.
const COLUMNS: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    /// Whole numbers of 64 bits.
    Integer,
    Number(Digits),
    Text,
    Json,
}

/// What numbers need to be kept with every digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// Before the point, and after it.
    pub(crate) whole: usize,
    pub(crate) fraction: usize,
    /// Some are written with an exponent.
    pub(crate) has_exponent: bool,
}

impl Digits {
    /// Those of a whole number of 64 bits.
    const OF_INTEGER: Self = Self { whole: 19, fraction: 0, has_exponent: false };

    fn of(number: &str) -> Self {
        let has_exponent = number.contains(['e', 'E']);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        Self { whole: whole.trim_start_matches('-').len(), fraction: fraction.len(), has_exponent }
    }

    fn and(self, other: Self) -> Self {
        Self {
            whole: self.whole.max(other.whole),
            fraction: self.fraction.max(other.fraction),
            has_exponent: self.has_exponent || other.has_exponent,
        }
    }
}

/// Columns with their types, those of the key first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) columns: Vec<(String, Kind)>,
}

pub(crate) fn shape(
    destination: &Destination,
    sample: &[String],
    caps: &Caps,
) -> Result<Shape, Failure> {
    let mut kinds: BTreeMap<String, Option<Kind>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for text in sample {
        for (name, value) in examine(text, caps).unwrap_or_default() {
            if !is_plain(&name) {
                continue;
            }
            let name = name.into_owned();
            let kind = kinds.entry(name.clone()).or_insert_with(|| {
                order.push(name);
                None
            });
            *kind = both(*kind, kind_of(value));
        }
    }
    let key = &destination.conflict_key;
    if let Some(missing) = key.iter().find(|name| !kinds.contains_key(*name)) {
        let text = format!("no table can be made: the elements have no {missing:?}, the key");
        return Err(Failure::schema(text));
    }
    order.sort_by_key(|name| !key.contains(name));
    order.truncate(COLUMNS);
    let columns: Vec<(String, Kind)> = order
        .into_iter()
        .map(|name| {
            let kind = kinds.get(&name).copied().flatten().unwrap_or(Kind::Text);
            (name, kind)
        })
        .collect();
    if columns.is_empty() {
        return Err(Failure::schema("no table can be made: the source has no elements with keys"));
    }
    Ok(Shape { columns })
}

/// Names that a table or a column is made with: nothing that needs thought when it is quoted.
pub(crate) fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    begins && name.len() <= 63 && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn kind_of(value: &RawValue) -> Option<Kind> {
    let text = value.get();
    match text.as_bytes().first()? {
        b'n' => None,
        b't' | b'f' => Some(Kind::Boolean),
        b'"' => Some(Kind::Text),
        b'{' | b'[' => Some(Kind::Json),
        _ if text.parse::<i64>().is_ok() => Some(Kind::Integer),
        _ => Some(Kind::Number(Digits::of(text))),
    }
}

fn both(one: Option<Kind>, other: Option<Kind>) -> Option<Kind> {
    match (one, other) {
        (None, kind) | (kind, None) => kind,
        (Some(one), Some(other)) if one == other => Some(one),
        (Some(Kind::Number(one)), Some(Kind::Number(other))) => Some(Kind::Number(one.and(other))),
        (Some(Kind::Number(digits)), Some(Kind::Integer))
        | (Some(Kind::Integer), Some(Kind::Number(digits))) => {
            Some(Kind::Number(digits.and(Digits::OF_INTEGER)))
        }
        (Some(Kind::Json), _) | (_, Some(Kind::Json)) => Some(Kind::Json),
        _ => Some(Kind::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Operation;

    fn inferred(elements: &[&str]) -> Result<Shape, Failure> {
        let sample: Vec<String> = elements.iter().map(|text| (*text).to_owned()).collect();
        let destination = Destination {
            schema: "public".into(),
            table: "things".into(),
            operation: Operation::Upsert,
            conflict_key: vec!["id".into()],
            create_table: true,
        };
        shape(&destination, &sample, &Caps::default())
    }

    #[test]
    fn columns_take_what_all_elements_have() {
        let shape = inferred(&[
            r#"{"n": 1, "id": "a", "b": true, "x": null, "mixed": 1, "j": [1], "bad name": 1}"#,
            r#"{"n": 1.5, "id": "b", "b": false, "x": null, "mixed": "1", "j": {"a": 1}}"#,
        ]);
        let expected = [
            ("id", Kind::Text),
            ("n", Kind::Number(Digits { whole: 19, fraction: 1, has_exponent: false })),
            ("b", Kind::Boolean),
            ("x", Kind::Text),
            ("mixed", Kind::Text),
            ("j", Kind::Json),
        ];
        let expected = expected.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
        assert_eq!(shape.unwrap().columns, expected);
    }

    #[test]
    fn a_key_that_no_element_has_makes_no_table() {
        assert!(inferred(&[r#"{"a": 1}"#]).unwrap_err().message.contains("\"id\""));
        assert!(inferred(&[]).is_err());
    }
}
