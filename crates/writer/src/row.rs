//! One element: whether it can be a row at all, and its keys.
//!
//! What PostgreSQL's jsonb refuses or makes enormous is found here, before it can spoil a batch: a
//! NUL, half a surrogate pair, a number with a hundred thousand digits (13 bytes may be enough for
//! that), a nesting that exhausts a stack.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How much one element may be.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    pub bytes: usize,
    pub depth: usize,
    /// All keys, of the objects within as well.
    pub keys: usize,
    /// Characters of a number.
    pub number: usize,
    pub exponent: u32,
}

impl Default for Caps {
    fn default() -> Self {
        Self { bytes: 1 << 20, depth: 64, keys: 10_000, number: 40, exponent: 308 }
    }
}

/// A key of an element with its value as it stands.
pub(crate) type Field<'a> = (Cow<'a, str>, &'a RawValue);

/// The fields of an element, which is valid JSON, or why it cannot be stored.
pub(crate) fn examine<'a>(text: &'a str, caps: &Caps) -> Result<Vec<Field<'a>>, String> {
    if !text.starts_with('{') {
        return Err("it is not an object".into());
    }
    measure(text.as_bytes(), caps)?;
    match serde_json::from_str(text) {
        Ok(Fields(fields)) => Ok(fields),
        Err(_) => Err("one of its keys is not Unicode".into()),
    }
}

fn measure(bytes: &[u8], caps: &Caps) -> Result<(), String> {
    let (mut at, mut depth, mut keys) = (0, 0_usize, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string(bytes, at + 1)?;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > caps.depth {
                    return Err(format!("it is nested more than {} deep", caps.depth));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b':' => {
                keys += 1;
                if keys > caps.keys {
                    return Err(format!("it has more than {} keys", caps.keys));
                }
            }
            b'-' | b'0'..=b'9' => {
                at = number(bytes, at, caps)?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The place after the string whose text begins at `at`.
fn string(bytes: &[u8], mut at: usize) -> Result<usize, String> {
    let mut high = None;
    while let Some(next) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        if next > 0 && high.is_some() {
            break;
        }
        at += next;
        if bytes[at] == b'"' {
            return if high.is_none() { Ok(at + 1) } else { Err(half()) };
        }
        if bytes.get(at + 1) != Some(&b'u') {
            if high.is_some() {
                break;
            }
            at += 2;
            continue;
        }
        let unit = bytes.get(at + 2..at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = unit.and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or(0);
        high = match (high, unit) {
            (None, 0) => return Err("it has a NUL (\\u0000) in a text".into()),
            (None, 0xD800..=0xDBFF) => Some(unit),
            (None, 0xDC00..=0xDFFF) => return Err(half()),
            (Some(_), 0xDC00..=0xDFFF) | (None, _) => None,
            (Some(_), _) => return Err(half()),
        };
        at += 6;
    }
    Err(half())
}

fn half() -> String {
    "it has half of a Unicode character (a lone surrogate)".into()
}

fn number(bytes: &[u8], at: usize, caps: &Caps) -> Result<usize, String> {
    let is_of_it = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = bytes[at..].iter().take_while(|byte| is_of_it(byte)).count();
    if length > caps.number {
        return Err(format!("it has a number of {length} characters; {} are allowed", caps.number));
    }
    let text = &bytes[at..at + length];
    if let Some(e) = text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        let digits = text[e + 1..].iter().filter(|byte| byte.is_ascii_digit());
        let power = digits.fold(0_u64, |sum, digit| {
            sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        });
        if power > u64::from(caps.exponent) {
            return Err(format!("it has a number with an exponent beyond {}", caps.exponent));
        }
    }
    Ok(at + length)
}

pub(crate) struct Fields<'a>(pub(crate) Vec<Field<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(16);
                while let Some(Key(key)) = map.next_key()? {
                    fields.push((key, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

/// A key that is borrowed where nothing in it is escaped.
pub(crate) struct Key<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<String> {
        examine(text, &Caps::default()).err()
    }

    #[test]
    fn a_plain_element_gives_its_fields_as_they_stand() {
        let fields =
            examine(r#"{"id": "a", "n": 1.50, "\u006f": {"x": [1]}}"#, &Caps::default()).unwrap();
        let plain: Vec<(&str, &str)> =
            fields.iter().map(|(key, value)| (&**key, value.get())).collect();
        assert_eq!(plain, [("id", "\"a\""), ("n", "1.50"), ("o", r#"{"x": [1]}"#)]);
    }

    #[test]
    fn what_jsonb_would_choke_on_is_refused_by_name() {
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(64), "]".repeat(64));
        let many = format!("{{{}\"z\":1}}", "\"k\":1,".repeat(10_000));
        for (text, why) in [
            ("[1]", "not an object"),
            (r#"{"a": "x\u0000y"}"#, "NUL"),
            (r#"{"a": "\ud800"}"#, "surrogate"),
            (r#"{"a": "\ud800x"}"#, "surrogate"),
            (r#"{"a": "\ud800\n"}"#, "surrogate"),
            (r#"{"a": "\udc00"}"#, "surrogate"),
            (r#"{"a": "\ud800\ud800"}"#, "surrogate"),
            (r#"{"\ud800": 1}"#, "surrogate"),
            (r#"{"a": 1e400000}"#, "exponent"),
            (r#"{"a": 1E-999999999999999999999}"#, "exponent"),
            (&format!("{{\"a\": {}}}", "9".repeat(41)), "41 characters"),
            (&deep, "64 deep"),
            (&many, "10000 keys"),
        ] {
            let said = refused(text).unwrap_or_default();
            assert!(said.contains(why), "{why}: {said:?}");
        }
    }

    #[test]
    fn what_only_looks_like_it_passes() {
        for text in [
            r#"{"a": "\\u0000"}"#,
            r#"{"a": "\ud83d\ude00\u00e9"}"#,
            r#"{"a": "[[[{{{\"", "b": -1.5e+30}"#,
            &format!("{{\"a\": {}{}}}", "[".repeat(63), "]".repeat(63)),
            &format!("{{\"a\": \"{}\"}}", "9".repeat(100)),
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }
}
