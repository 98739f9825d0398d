//! One pass over a body: is it JSON, how many records has it, which totals does it announce, and
//! what is it worth as content.
//!
//! The same page comes with its keys in another order each time, so bytes say nothing of whether
//! it has changed. The content hash does: members of an object are summed, elements of a list are
//! chained. Nothing is built in memory, because a page is megabytes and thousands pass in a second.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::source::{Endpoint, Pointer, Source};

/// What a body holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Elements of the list of records, or of the lists within them that count.
    pub records: Option<i64>,
    pub total: Option<i64>,
    pub pages: Option<i64>,
    /// The same for the same content in any order of keys.
    pub content: u128,
}

/// Reads a body of `endpoint`. Fails where it is not JSON, whole.
pub fn digest(
    body: &[u8],
    source: &Source,
    endpoint: &Endpoint,
) -> Result<Digest, serde_json::Error> {
    let mut found = Digest::default();
    let response = &source.response;
    let wanted = Wanted {
        records: Some(parts(&response.records)),
        total: Some(parts(&response.total)),
        pages: response.pages.as_ref().map(parts),
        count: None,
    };
    // Once for the whole: from bytes, every text in it would be checked by itself.
    let text = std::str::from_utf8(body).map_err(serde_json::Error::custom)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let walk = Walk { found: &mut found, wanted, within: endpoint.count.as_ref().map(parts) };
    let content = walk.deserialize(&mut reader)?;
    reader.end()?;
    found.content = content;
    Ok(found)
}

fn parts(pointer: &Pointer) -> &[String] {
    &pointer.0
}

/// The pointers that lead through the value at hand, as what is left of them.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted<'a> {
    records: Option<&'a [String]>,
    total: Option<&'a [String]>,
    pages: Option<&'a [String]>,
    count: Option<&'a [String]>,
}

impl<'a> Wanted<'a> {
    fn is_empty(&self) -> bool {
        self.records.is_none()
            && self.total.is_none()
            && self.pages.is_none()
            && self.count.is_none()
    }

    fn below(self, key: &str) -> Self {
        if self.is_empty() {
            return self;
        }
        let step = |path: Option<&'a [String]>| match path {
            Some([first, rest @ ..]) if first == key => Some(rest),
            _ => None,
        };
        Self {
            records: step(self.records),
            total: step(self.total),
            pages: step(self.pages),
            count: step(self.count),
        }
    }
}

const ENDED: &[String] = &[];

fn is_here(path: Option<&[String]>) -> bool {
    path == Some(ENDED)
}

struct Walk<'a, 'f> {
    found: &'f mut Digest,
    wanted: Wanted<'a>,
    /// Where, in a record, the list stands that counts.
    within: Option<&'a [String]>,
}

impl Walk<'_, '_> {
    fn number(&mut self, value: i64) {
        if is_here(self.wanted.total) {
            self.found.total = Some(value);
        }
        if is_here(self.wanted.pages) {
            self.found.pages = Some(value);
        }
    }
}

/// Kinds of values, so that `1`, `"1"` and `[1]` differ.
const NULL: u64 = 1;
const BOOL: u64 = 2;
const NUMBER: u64 = 3;
const TEXT: u64 = 4;
const LIST: u64 = 5;
const OBJECT: u64 = 6;

fn hash(kind: u64, bytes: &[u8]) -> u128 {
    xxh3_128_with_seed(bytes, kind)
}

fn both(kind: u64, one: u128, other: u128) -> u128 {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&one.to_le_bytes());
    bytes[16..].copy_from_slice(&other.to_le_bytes());
    hash(kind, &bytes)
}

fn number(value: f64) -> u128 {
    hash(NUMBER, &value.to_bits().to_le_bytes())
}

/// The same number as one with a fraction of nothing, unless such a one has no room for all its digits.
fn whole(value: i128) -> u128 {
    let float = value as f64;
    if float as i128 == value { number(float) } else { hash(NUMBER, &value.to_le_bytes()) }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = u128;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u128, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = u128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<u128, E> {
        Ok(hash(NULL, &[]))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u128, E> {
        Ok(hash(BOOL, &[value.into()]))
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<u128, E> {
        self.number(value);
        Ok(whole(value.into()))
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<u128, E> {
        self.number(i64::try_from(value).unwrap_or(i64::MAX));
        Ok(whole(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u128, E> {
        Ok(number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u128, E> {
        Ok(hash(TEXT, value.as_bytes()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u128, A::Error> {
        let Self { found, wanted, within } = self;
        let are_records = is_here(wanted.records);
        let inner = Wanted { count: if are_records { within } else { None }, ..Wanted::default() };
        let (mut chain, mut length) = (hash(LIST, &[]), 0);
        while let Some(element) = list.next_element_seed(Walk { found, wanted: inner, within })? {
            chain = both(LIST, chain, element);
            length += 1;
        }
        let counts = if within.is_some() { is_here(wanted.count) } else { are_records };
        if counts || are_records {
            *found.records.get_or_insert(0) += if counts { length } else { 0 };
        }
        Ok(chain)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u128, A::Error> {
        let Self { found, wanted, within } = self;
        let mut sum = hash(OBJECT, &[]);
        while let Some((key, inner)) = map.next_key_seed(Key(wanted))? {
            let value = map.next_value_seed(Walk { found, wanted: inner, within })?;
            sum = sum.wrapping_add(both(OBJECT, key, value));
        }
        Ok(sum)
    }
}

/// A key: its hash, and what is wanted below it.
struct Key<'a>(Wanted<'a>);

impl<'de, 'a> DeserializeSeed<'de> for Key<'a> {
    type Value = (u128, Wanted<'a>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Key<'a> {
    type Value = (u128, Wanted<'a>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((hash(TEXT, key.as_bytes()), self.0.below(key)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn pncp() -> Source {
        Source::built_in("pncp").unwrap().unwrap()
    }

    fn of(name: &str, body: &str) -> Result<Digest, serde_json::Error> {
        let source = pncp();
        let series = source.series(name).unwrap();
        digest(body.as_bytes(), &source, series.endpoint)
    }

    #[test]
    fn records_and_totals_are_found_wherever_they_stand() {
        let body = r#"{"totalPaginas": 3, "data": [{"data": [1, 2], "totalRegistros": 9}, {}],
                       "empty": false, "totalRegistros": 1001}"#;
        let found = of("contratos_publicacao", body).unwrap();
        assert_eq!((found.records, found.total, found.pages), (Some(2), Some(1001), Some(3)));
        let none = of("contratos_publicacao", r#"{"message": "no"}"#).unwrap();
        assert_eq!((none.records, none.total, none.pages), (None, None, None));
        let empty = of("contratos_publicacao", r#"{"data": [], "totalRegistros": 0}"#).unwrap();
        assert_eq!((empty.records, empty.total), (Some(0), Some(0)));
    }

    #[test]
    fn where_items_count_those_of_all_records_do() {
        let body = r#"{"data": [{"itens": [1, 2, 3]}, {"itens": []}, {"itens": [{"itens": [5]}]}],
                       "totalRegistros": 4}"#;
        assert_eq!(of("pca_atualizacao", body).unwrap().records, Some(4));
        let none = r#"{"data": [], "totalRegistros": 0}"#;
        assert_eq!(of("pca_atualizacao", none).unwrap().records, Some(0));
    }

    #[test]
    fn what_is_not_json_whole_is_an_error() {
        for body in ["", "<html>", r#"{"data": ["#, r#"{"data": []} x"#, "{\"a\": \"\u{1}\"}"] {
            assert!(of("contratos_publicacao", body).is_err(), "{body:?}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_crash() {
        let body = "[".repeat(100_000);
        assert!(of("contratos_publicacao", &body).is_err());
    }

    #[test]
    fn what_differs_has_another_hash() {
        let different = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "1.5",
            r#""1""#,
            r#""""#,
            "[]",
            "{}",
            "[1]",
            "[[1]]",
            r#"{"a": 1}"#,
            r#"{"a": "1"}"#,
            r#"{"b": 1}"#,
            r#"{"a": 1, "b": 2}"#,
            r#"{"a": 2, "b": 1}"#,
            "[1, 2]",
            "[2, 1]",
            r#"{"a": {"b": 1}}"#,
            r#"{"a": {}, "b": 1}"#,
        ];
        let all: std::collections::BTreeSet<u128> = different
            .iter()
            .map(|body| of("contratos_publicacao", body).unwrap().content)
            .collect();
        assert_eq!(all.len(), different.len());
        let as_text = |body| of("contratos_publicacao", body).unwrap().content;
        assert_eq!(as_text("30000.0000"), as_text("30000"), "the same number");
    }

    #[test]
    fn whole_numbers_differ_in_their_last_digit_too() {
        let of = |body: &str| of("contratos_publicacao", body).unwrap().content;
        let different = [
            "9007199254740991",
            "9007199254740992",
            "9007199254740993",
            "9223372036854775806",
            "9223372036854775807",
            "18446744073709551614",
            "18446744073709551615",
            "-9007199254740993",
            "-9223372036854775807",
            "-9223372036854775808",
        ];
        let all: std::collections::BTreeSet<u128> = different.into_iter().map(of).collect();
        assert_eq!(all.len(), different.len());
        for (one, same) in
            [("0", "0.0"), ("-7", "-7.00"), ("9007199254740992", "9007199254740992.0")]
        {
            assert_eq!(of(one), of(same), "{one}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-zé\"\\\\]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,3}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    /// The same value with the members of each object from last to first.
    fn reversed(value: &Value) -> String {
        match value {
            Value::Object(members) => {
                let all = members.iter().rev();
                let all = all.map(|(key, value)| format!("{}:{}", json!(key), reversed(value)));
                format!("{{{}}}", all.collect::<Vec<_>>().join(" ,"))
            }
            Value::Array(all) => {
                format!("[{}]", all.iter().map(reversed).collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        }
    }

    proptest! {
        #[test]
        fn the_order_of_keys_does_not_count(value in any_json()) {
            let (one, other) = (value.to_string(), reversed(&value));
            prop_assert_eq!(of("contratos_publicacao", &one).unwrap(), of("contratos_publicacao", &other).unwrap());
        }
    }
}
