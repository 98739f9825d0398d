//! Lists, structs and maps. DuckDB reads them from JSON, and what is a number there is a double to it: so
//! numbers go as strings, which it reads digit by digit. And it would round 1.5 to the whole number 2: so
//! that goes as what it takes for no number.

use crate::row::Fields;
use serde_json::value::RawValue;

/// What stands where in a nested value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    List(Box<Shape>),
    Struct(Vec<(String, Shape)>),
    Map(Box<Shape>, Box<Shape>),
    Whole,
    /// JSON, or one of several: what is a number there stays one.
    AsItCame,
    Other,
}

/// A nested value such that DuckDB reads it as it was meant.
pub(super) fn exact(kind: &str, json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 16);
    put(&Shape::of(kind), json, &mut text);
    text
}

fn put(shape: &Shape, json: &str, to: &mut String) {
    let parsed = |to: &mut String| -> Option<()> {
        match shape {
            Shape::List(each) => {
                let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
                separated(to, ['[', ']'], items.iter(), |item, to| put(each, item.get(), to));
            }
            Shape::Struct(_) | Shape::Map(..) => {
                let Fields(fields) = serde_json::from_str(json).ok()?;
                separated(to, ['{', '}'], fields.iter(), |(name, value), to| {
                    let (name, of_value) = match shape {
                        Shape::Map(key, value) if **key == Shape::Whole => (whole(name), &**value),
                        Shape::Map(_, value) => ((**name).to_owned(), &**value),
                        _ => ((**name).to_owned(), shape.field(name)),
                    };
                    to.push_str(&serde_json::Value::from(name).to_string());
                    to.push(':');
                    put(of_value, value.get(), to);
                });
            }
            Shape::Whole | Shape::AsItCame | Shape::Other => return None,
        }
        Some(())
    };
    if parsed(to).is_none() {
        to.push_str(&scalar(shape, json));
    }
}

/// A value that is not taken apart.
fn scalar(shape: &Shape, json: &str) -> String {
    let is_number = json.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    match shape {
        Shape::Whole if is_number => format!("\"{}\"", whole(json)),
        Shape::Whole => match serde_json::from_str::<String>(json) {
            Ok(text) => serde_json::Value::from(whole(&text)).to_string(),
            Err(_) => json.to_owned(),
        },
        Shape::Other if is_number => format!("\"{json}\""),
        _ => json.to_owned(),
    }
}

/// What stands for a whole number, or says that it is none.
fn whole(text: &str) -> String {
    if text.contains(['.', 'e', 'E']) {
        format!("no whole number: {text}")
    } else {
        text.to_owned()
    }
}

fn separated<T>(
    to: &mut String,
    [begin, end]: [char; 2],
    items: impl Iterator<Item = T>,
    each: impl Fn(T, &mut String),
) {
    to.push(begin);
    for (place, item) in items.enumerate() {
        if place > 0 {
            to.push(',');
        }
        each(item, to);
    }
    to.push(end);
}

impl Shape {
    /// Of a type's name, as the catalog has it.
    fn of(kind: &str) -> Self {
        let kind = kind.trim();
        if let Some(each) = kind.strip_suffix(']').and_then(|kind| kind.rsplit_once('[')) {
            return Self::List(Box::new(Self::of(each.0)));
        }
        let within = |word: &str| kind.strip_prefix(word)?.strip_suffix(')').map(parts);
        if let Some(fields) = within("STRUCT(") {
            return Self::Struct(fields.into_iter().map(field).collect());
        }
        if let Some([key, value]) = within("MAP(").as_deref() {
            return Self::Map(Box::new(Self::of(key)), Box::new(Self::of(value)));
        }
        if kind == "JSON" || kind == "VARIANT" || kind.starts_with("UNION(") {
            return Self::AsItCame;
        }
        if super::sql::is_whole(kind) { Self::Whole } else { Self::Other }
    }

    fn field(&self, name: &str) -> &Self {
        let Self::Struct(fields) = self else { return &Self::Other };
        let found = fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or(&Self::Other, |(_, shape)| shape)
    }
}

/// What commas separate, other than those within parentheses and quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut quote, mut start) = (Vec::new(), 0_i32, None, 0);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            (None, ',') if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            (Some(_) | None, _) => {}
        }
    }
    found.push(&text[start..]);
    found
}

/// `name TYPE`, of which the name may be quoted.
fn field(text: &str) -> (String, Shape) {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('"') {
        let mut end = 0;
        while let Some(next) = rest[end..].find('"') {
            end += next;
            if !rest[end + 1..].starts_with('"') {
                return (rest[..end].replace("\"\"", "\""), Shape::of(&rest[end + 1..]));
            }
            end += 2;
        }
    }
    let (name, kind) = text.split_once(' ').unwrap_or((text, ""));
    (name.to_owned(), Shape::of(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_as_strings_and_fractions_are_no_whole_numbers() {
        for (kind, json, expected) in [
            ("DECIMAL(30,10)[]", "[1.50, null, \"a\"]", r#"["1.50",null,"a"]"#),
            ("INTEGER[][2]", "[[1],[2.5]]", r#"[["1"],["no whole number: 2.5"]]"#),
            (
                "STRUCT(a INTEGER, b VARCHAR)",
                r#"{"a":1.5,"b":1.5}"#,
                r#"{"a":"no whole number: 1.5","b":"1.5"}"#,
            ),
            (r#"STRUCT("a "", b" BIGINT)"#, r#"{"a \", b":-7}"#, r#"{"a \", b":"-7"}"#),
            ("STRUCT(a STRUCT(b UTINYINT[]))", r#"{"a":{"b":[7]}}"#, r#"{"a":{"b":["7"]}}"#),
            ("MAP(VARCHAR, INTEGER)", r#"{"1.5":"1.5"}"#, r#"{"1.5":"no whole number: 1.5"}"#),
            ("MAP(INTEGER, DOUBLE)", r#"{"1.5":1}"#, r#"{"no whole number: 1.5":"1"}"#),
            ("JSON[]", "[1.50,{\"a\":2}]", "[1.50,{\"a\":2}]"),
            ("VARCHAR[]", "[{\"a\":1}]", "[{\"a\":1}]"),
            ("UNION(n INTEGER, t VARCHAR)", "1.5", "1.5"),
            ("INTEGER[]", "\"no list\"", "\"no list\""),
        ] {
            assert_eq!(exact(kind, json), expected, "{kind}");
        }
    }
}
