//! The records of a body, each as it stands there, to the byte: numbers keep their decimals.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use crate::source::{Column, Endpoint, Pointer, Source};

/// A record of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// In the page's list, from 1.
    pub position: i64,
    /// In the list within, where those count, with the element that has the list.
    pub within: Option<(i64, &'a str)>,
    pub text: &'a str,
}

/// The records of a body of `endpoint`; none where it is something else.
pub fn records<'a>(body: &'a str, source: &Source, endpoint: &Endpoint) -> Vec<Record<'a>> {
    let elements = list(body, &source.response.records);
    let numbered = elements.into_iter().zip(1..);
    match &endpoint.count {
        None => numbered.map(|(text, position)| Record { position, within: None, text }).collect(),
        Some(count) => numbered
            .flat_map(|(parent, position)| {
                let items = list(parent, count).into_iter().zip(1..);
                items.map(move |(text, item)| Record {
                    position,
                    within: Some((item, parent)),
                    text,
                })
            })
            .collect(),
    }
}

/// What names each record, hashed. A part that is not in the record is looked for around it.
pub fn keys(body: &str, source: &Source, endpoint: &Endpoint) -> Vec<u128> {
    if endpoint.key.is_empty() {
        return Vec::new();
    }
    let key = |record: Record<'_>| {
        let mut name = String::new();
        for part in &endpoint.key {
            let around = || record.within.and_then(|(_, parent)| at(parent, &part.0));
            name.push_str(at(record.text, &part.0).or_else(around).unwrap_or("null"));
            name.push('\n');
        }
        xxh3_128(name.as_bytes())
    };
    records(body, source, endpoint).into_iter().map(key).collect()
}

/// What columns hold of a record, as text: a string is its content, anything else is JSON.
pub(crate) fn parts(record: &str, columns: &[Column]) -> Vec<Option<String>> {
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(record) else {
        return vec![None; columns.len()];
    };
    let part = |column: &Column| {
        let (first, rest) = column.at.0.split_first()?;
        let value = at(members.get(first)?.get(), rest)?;
        match value.as_bytes().first()? {
            b'n' => None,
            b'"' => serde_json::from_str(value).ok(),
            _ => Some(value.to_owned()),
        }
    };
    columns.iter().map(part).collect()
}

fn list<'a>(text: &'a str, pointer: &Pointer) -> Vec<&'a str> {
    let list = at(text, &pointer.0).and_then(|text| serde_json::from_str(text).ok());
    let list: Vec<&RawValue> = list.unwrap_or_default();
    list.into_iter().map(RawValue::get).collect()
}

/// What a pointer's parts lead to, through objects.
fn at<'a>(text: &'a str, parts: &[String]) -> Option<&'a str> {
    parts.iter().try_fold(text, |text, part| {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        members.get(part).map(|value| value.get())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_they_stand() {
        let pncp = Source::built_in("pncp").unwrap().unwrap();
        let body = r#"{"totalRegistros":2,"data":[{"valor":30000.0000, "é":"ã"},{"valor":1e5}]}"#;
        let found = records(body, &pncp, &pncp.endpoints[0]);
        let texts: Vec<&str> = found.iter().map(|record| record.text).collect();
        assert_eq!(texts, [r#"{"valor":30000.0000, "é":"ã"}"#, r#"{"valor":1e5}"#]);
        assert_eq!((found[1].position, found[1].within), (2, None));
        for nothing in ["", "<html>", "{}", r#"{"data":{}}"#, r#"{"data":null}"#, "[1]"] {
            assert_eq!(records(nothing, &pncp, &pncp.endpoints[0]), [], "{nothing}");
        }
    }

    #[test]
    fn where_items_count_they_are_the_records() {
        let pncp = Source::built_in("pncp").unwrap().unwrap();
        let plans = pncp.endpoints.iter().find(|e| e.name == "pca_atualizacao").unwrap();
        let body = r#"{"data":[{"idPcaPncp":"a","itens":[{"numeroItem":1},{"numeroItem":2}]},
                               {"idPcaPncp":"b","itens":[{"numeroItem":1}]},{"idPcaPncp":"c"}]}"#;
        let found = records(body, &pncp, plans);
        let places: Vec<_> = found.iter().map(|r| (r.position, r.within.unwrap().0)).collect();
        assert_eq!(places, [(1, 1), (1, 2), (2, 1)]);
        let mut keys = keys(body, &pncp, plans);
        assert_eq!(keys.len(), 3);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 3, "the plan is part of an item's key");
    }
}
