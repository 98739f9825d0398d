//! Objects that say a key twice. DuckDB stores both and reads the first; PostgreSQL and everybody else take
//! the last. So the others are left out before they are stored.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::row::{Fields, Key};

/// JSON in which every key of an object stands once, all else as it came.
pub(super) fn once(json: &str) -> Cow<'_, str> {
    match serde_json::from_str(json) {
        Ok(Twice(true)) => Cow::Owned(without_earlier(json)),
        Ok(Twice(false)) | Err(_) => Cow::Borrowed(json),
    }
}

fn without_earlier(json: &str) -> String {
    if let Ok(Fields(fields)) = serde_json::from_str(json) {
        let mut said = HashSet::new();
        let mut kept: Vec<String> = Vec::new();
        for (key, value) in fields.iter().rev().filter(|(key, _)| said.insert(key.clone())) {
            let key = serde_json::Value::from(&**key);
            kept.push(format!("{key}:{}", without_earlier(value.get())));
        }
        kept.reverse();
        return format!("{{{}}}", kept.join(","));
    }
    match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(items) => {
            let items: Vec<String> = items.iter().map(|item| without_earlier(item.get())).collect();
            format!("[{}]", items.join(","))
        }
        Err(_) => json.to_owned(),
    }
}

/// Whether an object in it has a key twice.
struct Twice(bool);

impl<'de> Deserialize<'de> for Twice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Look;

        impl<'de> Visitor<'de> for Look {
            type Value = Twice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Twice, A::Error> {
                let (mut keys, mut is_twice) = (HashSet::new(), false);
                while let Some((Key(key), Twice(within))) = map.next_entry()? {
                    is_twice |= within | !keys.insert(key);
                }
                Ok(Twice(is_twice))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Twice, A::Error> {
                let mut is_twice = false;
                while let Some(Twice(within)) = seq.next_element()? {
                    is_twice |= within;
                }
                Ok(Twice(is_twice))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Twice, E> {
                Ok(Twice(false))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Twice, E> {
                Ok(Twice(false))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Twice, E> {
                Ok(Twice(false))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Twice, E> {
                Ok(Twice(false))
            }

            fn visit_str<E>(self, _: &str) -> Result<Twice, E> {
                Ok(Twice(false))
            }

            fn visit_unit<E>(self) -> Result<Twice, E> {
                Ok(Twice(false))
            }
        }

        deserializer.deserialize_any(Look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_key_stays_and_what_has_none_twice_is_as_it_came() {
        for (json, expected) in [
            (r#"{"a":1, "b":2,"a":3.50}"#, r#"{"b":2,"a":3.50}"#),
            (r#"{"a":1,"\u0061":"\u00e9"}"#, r#"{"a":"\u00e9"}"#),
            (r#"[{"a":{"x\"":1,"x\"":[ 2 ]}}]"#, r#"[{"a":{"x\"":[2]}}]"#),
            (
                r#"{"a": {"a": 1}, "b":[{"a":1},{"a":2}]}"#,
                r#"{"a": {"a": 1}, "b":[{"a":1},{"a":2}]}"#,
            ),
            (" 12345678901234567890.12 ", " 12345678901234567890.12 "),
        ] {
            assert_eq!(once(json), expected);
        }
    }
}
