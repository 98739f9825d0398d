//! Which keys are one: `5`, `5.0` and `"5"` are the same whole number, and `"\u00e9"` is `"é"`.
//!
//! Rows of one key are written in their order, others as it suits. So two texts that may stand for one
//! value must not be taken for two; where that cannot be told, it is said so.

use std::borrow::Cow;

use crate::table::Sameness;

/// A value of a key: its text, which is the same exactly where the value is, or, where that is not known,
/// as it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value<'a> {
    Known(Cow<'a, str>),
    Open(&'a str),
}

impl Value<'_> {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}

/// A JSON value as one of a column.
pub(crate) fn value(sameness: Sameness, json: &str) -> Value<'_> {
    let known = match sameness {
        Sameness::Text => text(json),
        Sameness::Integer => integer(json),
        Sameness::Uuid => uuid(json),
        Sameness::Date => date(json),
        Sameness::Unknown => None,
    };
    known.map_or(Value::Open(json), Value::Known)
}

/// What a string says.
fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(json).ok().map(Cow::Owned)
}

/// Strings, and what every engine writes as it came.
fn text(json: &str) -> Option<Cow<'_, str>> {
    let is_plain = matches!(json, "true" | "false") || is_digits(json);
    if is_plain { Some(Cow::Borrowed(json)) } else { string(json) }
}

/// A whole number in its only form.
fn is_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_short = (1..=18).contains(&digits.len());
    let is_first = !digits.starts_with('0') || text == "0";
    is_short && is_first && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn integer(json: &str) -> Option<Cow<'_, str>> {
    if is_digits(json) {
        return Some(Cow::Borrowed(json));
    }
    let given = match string(json) {
        Some(text) => text,
        None => match json.split_once('.') {
            Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole.into(),
            _ => json.into(),
        },
    };
    let trimmed = given.trim();
    if let Ok(number) = trimmed.parse::<i128>() {
        return Some(number.to_string().into());
    }
    // No engine reads a number that does not begin like one; others, as 0x1f and 1_000, some do.
    let begins =
        trimmed.trim_start_matches(['-', '+']).starts_with(|first: char| first.is_ascii_digit());
    if begins { None } else { Some(json.into()) }
}

/// Its digits, however they are written.
fn uuid(json: &str) -> Option<Cow<'_, str>> {
    let text = string(json)?;
    let digits: String = text
        .chars()
        .filter(|letter| !matches!(letter, '-' | '{' | '}') && !letter.is_whitespace())
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    Some(digits.into())
}

/// `2026-11-17`, and no other form.
fn date(json: &str) -> Option<Cow<'_, str>> {
    let text = string(json)?;
    let is_iso = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_iso.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_text() {
        for (sameness, same) in [
            (Sameness::Integer, &["5", "5.0", "5.", "\"5\"", "\" 5 \"", "\"05\"", "\"+5\""][..]),
            (Sameness::Integer, &["0", "-0", "\"-0\"", "0.00"]),
            (Sameness::Text, &["\"\u{e9}\"", r#""\u00e9""#, r#""\u00E9""#]),
            (Sameness::Text, &["7", "\"7\"", r#""\u0037""#]),
            (
                Sameness::Uuid,
                &[
                    "\"67e55044-10b1-426f-9247-bb680e5fe0c8\"",
                    "\"67E5504410B1426F9247BB680E5FE0C8\"",
                    "\"{67e5-5044-10b1-426f-9247-bb68-0e5f-e0c8}\"",
                ],
            ),
            (Sameness::Date, &["\"2026-11-17\"", r#""2026-11-1\u0037""#]),
        ] {
            for json in same {
                assert_eq!(value(sameness, json), value(sameness, same[0]), "{sameness:?} {json}");
                assert!(!value(sameness, json).is_open(), "{sameness:?} {json}");
            }
        }
        for (sameness, one, other) in [
            (Sameness::Text, "\"5\"", "\"05\""),
            (Sameness::Text, "\"a\"", "\"A\""),
            (Sameness::Integer, "5", "\"five\""),
            (Sameness::Integer, "5", "-5"),
        ] {
            assert_ne!(value(sameness, one), value(sameness, other), "{sameness:?} {one} {other}");
        }
    }

    #[test]
    fn what_may_be_another_ones_value_is_open() {
        for (sameness, json) in [
            (Sameness::Integer, "\"0x5\""),
            (Sameness::Integer, "\"1_000\""),
            (Sameness::Integer, "1e2"),
            (Sameness::Text, "1.50"),
            (Sameness::Text, "{\"a\": 1}"),
            (Sameness::Date, "\"2026-11-17T00:00:00Z\""),
            (Sameness::Unknown, "\"a\""),
        ] {
            assert!(value(sameness, json).is_open(), "{sameness:?} {json}");
        }
    }
}
